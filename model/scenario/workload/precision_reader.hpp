// Formats of numbers: those that a training casts to, and whether a GPU multiplies them.
#pragma once

#include "model/hardware/gpu.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/operator.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// Keys that read_training_precision looks at, beside `precision`.
inline constexpr std::array<std::string_view, 3> recipe_keys = {"fp8", "mxfp8", "nvfp4"};

/// `precision:` of a training: a word, or a format with its recipe, `{ fp8: { scaling: block } }`. The recipe may also
/// stand beside it: `precision: fp8` and `fp8: { scaling: block }`, or the latter alone. The model must be read.
void read_training_precision(const MappingReader& train, TrainWorkload& workload);

/// Complains where the GPU has no units for the format, or no kernels with block-scaled operands do such work.
void check_training_precision(const MappingReader& train, const TrainWorkload& workload, const Gpu& gpu);
void check_precision(const Operator& op, const Gpu& gpu, const Field& field);
void check_precision(Precision precision, const ModelConfig& model, const Gpu& gpu, const Field& field);

/// "v100-sxm2-16gb has no units for bf16".
std::string no_units(const Gpu& gpu, Precision precision);

}  // namespace foretrain
