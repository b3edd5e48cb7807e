// A GPU's memory over a step: as a page of text, as JSON, as a picture.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/memory/memory_parts.hpp"
#include "model/result.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// Memory of one scenario.
struct MemoryReport {
  std::string scenario, gpu;
  MemoryFootprint footprint;
  MemoryTimeline timeline;
  int stages = 1;  ///< of the pipeline
  int block = 0;   ///< number of the peak's block behind the embedding, from 1; 0: of another layer
  std::int64_t micro_batch = 1;
  std::int64_t largest_micro_batch = 0;  ///< with which the plan fits; 0: none
  std::int64_t largest_of_batch = 0;     ///< of these, one that divides the global batch
  std::vector<std::string> remedies;     ///< in words; empty where it fits
};

/// The peak and what makes it up, the fullest moment of each phase, the largest micro-batch, what would make it fit.
std::string to_text(const MemoryReport& report);

/// As JSON calls the parts.
inline constexpr std::array<const char*, memory_part_count> memory_part_keys = {
    "weights", "gradients", "optimizer",     "activations", "recomputed", "temporaries",
    "loss",    "gathered",  "communication", "context",     "allocator"};

/// One object, sizes in bytes; "timeline" has every moment.
std::string to_json(const MemoryReport& report);

/// Stacked areas over the step with the peak marked and the capacity as a line.
Figure to_figure(const MemoryReport& report);

}  // namespace foretrain
