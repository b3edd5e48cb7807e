// What the layers of a transformer do: which keys they attend to, and, in hybrid models, what stands in their place.
#pragma once

#include "model/scenario/yaml_reader.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain {

/// `attention_kind: full | sliding | mla` with the keys of each. Where it is left out, `window` says sliding and
/// `kv_lora_rank` says mla. Heads must be read.
void read_attention_kind(const MappingReader& model, TransformerConfig& config);

/// `layer_pattern: M-M*-…` and the keys of Mamba-2 layers. Layers and experts must be read.
void read_layer_kinds(const MappingReader& model, TransformerConfig& config);

}  // namespace foretrain
