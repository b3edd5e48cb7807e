// Enumerations as scenarios, options and results spell them.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "model/base/constant.hpp"
#include "model/base/words.hpp"
#include "model/result.hpp"

namespace foretrain {

/// The formula of CommunicationRatio::formula, and what it leaves out.
inline constexpr std::string_view communication_ratio_formula =
    "(2 · gradient bytes / ring bandwidth) / (FLOPs per GPU / peak FLOP/s)";
inline constexpr std::string_view communication_ratio_leaves_out =
    "the (n-1)/n of a ring, latency per message, efficiency below the peak of GPUs, recomputation and "
    "compression. Neither counts overlap";

/// "parameter server" for parameter_server.
inline std::string spoken(std::string word) {
  std::ranges::replace(word, '_', ' ');
  return word;
}

/// The parts of a step in the order of tables and pictures, with their names there and in JSON and CSV.
struct BreakdownPart {
  std::string_view name, key;
  Seconds Breakdown::*time;
};
inline constexpr std::array<BreakdownPart, 6> breakdown_parts = {
    {{"compute", "compute", &Breakdown::compute},
     {"exposed communication", "exposed_communication", &Breakdown::exposed_communication},
     {"pipeline bubble", "pipeline_bubble", &Breakdown::pipeline_bubble},
     {"data stall", "data_stall", &Breakdown::data_stall},
     {"host overhead", "host_overhead", &Breakdown::host_overhead},
     {"optimizer", "optimizer", &Breakdown::optimizer}}};

/// The parts of GPU memory, likewise.
struct FootprintPart {
  std::string_view name, key;
  Bytes MemoryFootprint::*size;
};
inline constexpr std::array<FootprintPart, 5> footprint_parts = {
    {{"weights", "weights", &MemoryFootprint::weights},
     {"gradients", "gradients", &MemoryFootprint::gradients},
     {"optimizer states", "optimizer", &MemoryFootprint::optimizer},
     {"activations", "activations", &MemoryFootprint::activations},
     {"workspace", "workspace", &MemoryFootprint::workspace}}};

}  // namespace foretrain
