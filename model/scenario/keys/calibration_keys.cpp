// Calibrations, settings of frameworks, and the kinds of files that there are.
#include "model/base/constant.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/precision.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/trainer_code.hpp"
#include "model/workload/training.hpp"

namespace foretrain::keys {

namespace {

constexpr Value a_constant = number | quantity("us") | text;
constexpr Key constant_keys[] = {
    {"value", a_constant, "needed", "The number, in the constant's unit."},
    {"kind", word<ConstantKind>, "needed", "Kind of source: published, measured, fitted or assumed."},
    {"source", text, "needed", "Source."},
};

constexpr IntegerRange measured_size{1, 1'000'000'000};
constexpr Key measured_matmul_keys[] = {
    needed<&MeasuredMatmul::gpu>("The GPU's name in the catalogue."),
    needed<&MeasuredMatmul::precision>("The format of the operands."),
    needed<&MeasuredMatmul::m>("Rows of A and of the result.", {.range = measured_size}),
    needed<&MeasuredMatmul::n>("Columns of B and of the result.", {.range = measured_size}),
    needed<&MeasuredMatmul::k>("Columns of A, rows of B.", {.range = measured_size}),
    member<&MeasuredMatmul::batch>("Batch of GEMMs.", {.range = measured_size}),
    needed<&MeasuredMatmul::time>("us", "Measured time."),
    member<&MeasuredMatmul::transpose_a>("A is stored as [k, m] (transposed)."),
    member<&MeasuredMatmul::transpose_b>("B is stored as [n, k] (transposed)."),
    {"source", text, "needed", "Source of the measurement."},
};

constexpr Key calibration_keys[] = {
    {"kind", text, "needed", "Kind of file: calibration."},
    {"name", text, "needed", "Name of the calibration in results."},
    {"description", text, "", "A line about the calibration."},
    {"constants", by_name(mapping_of<constant_keys, "constant">), "needed",
     "Every constant of the cost models, by name."},
    {"measured_matmuls", list(mapping_of<measured_matmul_keys, "measured GEMM">), "none", "Measured GEMMs."},
};

constexpr Key fitted_constant_keys[] = {
    {"value", a_constant, "needed", "The number, in the constant's unit."},
    {"kind", word<ConstantKind>, "needed", "Kind of source: measured, fitted or assumed."},
    {"standard_error", number, "", "Uncertainty; not read."},
    {"published", number, "", "Value of the base; not read."},
    {"at_bound", flag, "", "The fit ended at a bound; not read."},
    {"source", text, "needed", "The measurements behind it."},
};

constexpr Key covariance_keys[] = {
    {"constants", list(text), "needed", "The names of rows and columns."},
    {"rows", shaped(number, Form::Shape::list_of_lists), "needed", "The matrix."},
};

constexpr Key measured_gpu_keys[] = {
    needed<&CalibratedGpu::name>("Its name in the catalogue."),
    {"device", text, "", "Name by the driver; not read."},
    needed<&CalibratedGpu::compute_capability>("CUDA's number of its generation.", above_zero),
    member<&CalibratedGpu::memory_latency>("ns", "the catalogue's", "As measured."),
    member<&CalibratedGpu::l2_bandwidth>("TB/s", "the catalogue's", "As measured."),
    {"description", text, "", "A line about the GPU; not read."},
};

constexpr Key machine_calibration_keys[] = {
    {"format", text, "needed", "The format's name, as `foretrain calibrate` writes it."},
    {"kind", text, "needed", "Kind of file: calibration."},
    {"name", text, "needed", "Name of the calibration in results."},
    {"description", text, "", "A line about the calibration."},
    {"base", named(Catalogue::calibration), "needed", "Calibration with all other constants."},
    {"gpu", mapping_of<measured_gpu_keys, "measured GPU">, "needed", "The GPU that was measured."},
    {"node", text | mapping(node), "", "Measured machine; not read."},
    {"constants", by_name(mapping_of<fitted_constant_keys, "fitted constant">), "needed",
     "The constants that were fitted, by name."},
    {"undetermined", text | list(text), "", "Constants that the measurements leave open; not read."},
    {"covariance", mapping_of<covariance_keys, "covariance">, "none", "Uncertainty of fitted constants."},
    {"spread", by_name(number), "none", "Errors of the fit, by kind of operator."},
    {"residuals", text, "", "All measurements with the fit; not read."},
    {"bars", text, "", "Validation of the fit; not read."},
    {"provenance", text, "", "Date and tools of the measurement; not read."},
    {"measured_matmuls", list(mapping_of<measured_matmul_keys, "measured GEMM">), "none", "Measured GEMMs."},
};

constexpr Key learned_keys[] = {
    {"from", text, "needed", "The tables of runs."},
    {"runs", whole, "needed", "Number of runs it was learned from."},
    {"nodes", list(whole), "needed", "Smallest and largest number of nodes of these runs."},
    {"groups", list(whole), "", "Largest data, tensor and pipeline group of these runs."},
    {"error", quantity("%"), "needed", "Mean cross-validation error of steps."},
    {"median_error", quantity("%"), "needed", "The median of the same."},
    {"error_of_other_scales", quantity("%"), "", "Cross-validation error of steps, by number of nodes left out."},
    {"pairs_right", quantity("%"), "",
     "Pairs of runs left out, choices for one task, that are predicted in their order."},
    {"regret", quantity("%"), "", "Expected regret: mean excess of the predicted best choice over the measured best."},
    {"memory_error", quantity("%"), "", "Mean cross-validation error of memory."},
    {"memory_shortfall", quantity("%"), "", "Nine of ten runs left out need no more memory than predicted and this."},
    {"spread", quantity("%"), "needed", "90 % of left-out steps lie within this of their prediction."},
    {"likely", by_name(list(text | number)), "none",
     "Interval of each learned setting: one standard deviation to either side."},
    {"unexplained", list(text), "none", "Runs that no setting explains, by name."},
};

constexpr Key condition_keys[] = {
    Key{"zero", one_or_list(whole), "all", "Levels of ZeRO."}.in({0, 3}),
    {"servers", flag, "both", "Gradients go to parameter servers."},
    {"interleaved", flag, "both", "Interleaved pipeline."},
    {"split_backward", flag, "both", "Deferred weight gradients (schedule: zero_bubble or dualpipe)."},
    {"precision", one_or_list(word<Precision>), "all", "Number formats of GEMMs."},
    {"optimizer", one_or_list(word<Optimizer>), "all", "Optimizers of the training."},
    {"adapters", flag, "both", "LoRA adapters are trained."},
    {"master_weights", flag, "both", "fp32 master weights (workload.train.master_weights)."},
    {"kernels", word<KernelSet>, "both", "Kernel fusion (workload.train.kernels)."},
    {"attention", one_or_list(word<AttentionKind>), "all", "Attention kernels (workload.train.attention)."},
    {"execution", word<ExecutionMode>, "all", "Kernel launch mode (plan.execution)."},
    {"architecture", one_or_list(text), "all", "Generations of the GPUs."},
    {"context", flag, "both", "Context parallelism."},
};

constexpr Key refusal_keys[] = {
    {"key", text, "needed", "The factor of the plan, such as plan.pipeline, that may not exceed 1."},
    {"when", mapping_of<condition_keys, "condition of a setting">, "always", "Plans in which the framework refuses."},
    {"instead", text, "needed", "Remedy."},
    {"source", text, "needed", "Source: documentation or code of the framework."},
};

constexpr Key trainer_keys[] = {
    {"kind", text, "needed", "Kind of file: framework."},
    {"name", text, "", "Name of the framework."},
    {"description", text, "", "One-line description for `foretrain frameworks list`."},
    {"base", named(Catalogue::trainer), "", "Framework of all other settings."},
    {"settings", mapping(framework_settings), "needed", "Settings by dotted key, for keys that a scenario leaves out."},
    {"refuses", list(mapping_of<refusal_keys, "refusal of a framework">), "nothing",
     "Plan factors that the framework refuses."},
    {"constants", by_name(mapping_of<constant_keys, "constant">), "none",
     "Learned model constants, which override the calibration's, by name."},
    {"cluster", mapping(learned_cluster), "none", "Values of its cluster, for keys that a scenario leaves out."},
    {"learned", mapping_of<learned_keys, "learned">, "",
     "Runs behind a learned profile, and its cross-validation errors."},
};

constexpr Key framework_setting_keys[] = {
    {"value", text | number | flag, "needed", "The value that the key then has."},
    {"when", mapping_of<condition_keys, "condition of a setting">, "always", "Plans to which it applies."},
    {"kind", word<ConstantKind>, "needed", "Kind of source: published, measured, fitted or assumed."},
    {"source", text, "needed", "Source: documentation or code of the framework."},
};

constexpr std::string_view of_the_key = "Framework's value of the scenario key of this name.";
std::span<const Key> framework_settings_keys() {
  static const std::vector<Key> rows = [] {
    std::vector<Key> all;
    for (const FrameworkKey& key : framework_keys()) {
      all.push_back({key.name, one_or_list(mapping_of<framework_setting_keys, "setting">), "", of_the_key});
    }
    return all;
  }();
  return rows;
}

constexpr Key learned_cluster_keys[] = {
    {"network.efficiency", mapping_of<framework_setting_keys, "setting">, "", of_the_key},
    {"network.latency", mapping_of<framework_setting_keys, "setting">, "", of_the_key},
    {"network.scaling", mapping_of<framework_setting_keys, "setting">, "", of_the_key},
};

}  // namespace

constinit const Mapping calibration = {"calibration", calibration_keys};
constinit const Mapping machine_calibration = {"calibration of a machine", machine_calibration_keys};
constinit const Mapping trainer = {"framework", trainer_keys};
const Mapping framework_settings = {"settings", framework_settings_keys()};
constinit const Mapping learned_cluster = {"settings of a cluster", learned_cluster_keys};

std::span<const FileKind> files() {
  static constexpr const Mapping* scenarios[] = {&scenario};
  static constexpr const Mapping* hardware[] = {
      &node,          &gpu,        &fabric,         &links_file,         &cards_file,
      &storage_file,  &hierarchy,  &matrix_library, &architectures_file, &energy_file,
      &failures_file, &prices_file};
  static constexpr const Mapping* models[] = {&model};
  static constexpr const Mapping* calibrations[] = {&calibration, &machine_calibration};
  static constexpr const Mapping* frameworks[] = {&trainer, &buckets_file};
  static constexpr FileKind all[] = {{"scenario", scenarios},
                                     {"hardware", hardware},
                                     {"model", models},
                                     {"calibration", calibrations},
                                     {"framework", frameworks}};
  return all;
}

}  // namespace foretrain::keys
