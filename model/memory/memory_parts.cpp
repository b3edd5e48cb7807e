#include "model/memory/memory_parts.hpp"

namespace foretrain {

std::string_view name(MemoryPart part) {
  static constexpr std::array<std::string_view, memory_part_count> names = {"weights",
                                                                            "gradients",
                                                                            "optimizer states",
                                                                            "activations",
                                                                            "recomputed activations",
                                                                            "temporaries",
                                                                            "logits and loss",
                                                                            "gathered weights",
                                                                            "communication",
                                                                            "CUDA context, NCCL",
                                                                            "reserved, unallocated"};
  return names.at(static_cast<std::size_t>(part));
}

std::string_view verdict(const MemoryFootprint& memory) {
  return memory.fits() ? "fits" : memory.fits_barely() ? "fits barely" : "DOES NOT FIT";
}

Bytes MemoryParts::total() const {
  Bytes sum;
  for (const Bytes part : size) sum += part;
  return sum;
}

}  // namespace foretrain
