// `nccl:` of a cluster or of a node: the version of the collective library.
#pragma once

#include "model/hardware/cluster.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// "2.29", "2.21.5" or "none".
NcclVersion read_nccl(const Field& field);

}  // namespace foretrain
