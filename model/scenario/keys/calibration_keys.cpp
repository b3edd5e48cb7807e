// Calibrations, trainers' habits, and the kinds of files that there are.
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

constexpr Key calibration_keys[] = {
    {"kind", text, "needed", "What the file describes: calibration."},
    {"name", text, "needed", "What results call the calibration."},
    {"description", text, "", "A line about the calibration."},
    {"constants", by_name(mapping(constant)), "needed", "Every constant of the cost models, by name."},
    {"measured_matmuls", list(mapping(measured_matmul)), "none", "Matrix products whose times were measured."},
};

constexpr Value a_constant = number | quantity("us") | text;
constexpr Key constant_keys[] = {
    {"value", a_constant, "needed", "The number, in the constant's unit."},
    {"kind", word<ConstantKind>, "needed", "Whether it is published, measured, fitted or assumed."},
    {"source", text, "needed", "Where it comes from."},
};

constexpr IntegerRange measured_size{1, 1'000'000'000};
constexpr Key measured_matmul_keys[] = {
    {"gpu", text, "needed", "The GPU's name in the catalogue."},
    needed<&MeasuredMatmul::precision>("The format of the operands."),
    needed<&MeasuredMatmul::m>("Rows of A and of the result.", {.range = measured_size}),
    needed<&MeasuredMatmul::n>("Columns of B and of the result.", {.range = measured_size}),
    needed<&MeasuredMatmul::k>("Columns of A, rows of B.", {.range = measured_size}),
    member<&MeasuredMatmul::batch>("Products side by side.", {.range = measured_size}),
    needed<&MeasuredMatmul::time>("us", "What it took."),
    member<&MeasuredMatmul::transpose_a>("Whether A is stored as [k, m]."),
    member<&MeasuredMatmul::transpose_b>("Whether B is stored as [n, k]."),
    {"source", text, "needed", "Where it was measured."},
};

constexpr Key machine_calibration_keys[] = {
    {"format", text, "needed", "The format's name, as `foretrain calibrate` writes it."},
    {"kind", text, "needed", "What the file describes: calibration."},
    {"name", text, "needed", "What results call the calibration."},
    {"description", text, "", "A line about the calibration."},
    {"base", named(Catalogue::calibration), "needed",
     "The calibration whose constants hold for all that was not fitted."},
    {"gpu", mapping(measured_gpu), "needed", "The GPU that was measured."},
    {"node", text | mapping(node), "", "The machine that was measured; not read."},
    {"constants", by_name(mapping(fitted_constant)), "needed", "The constants that were fitted, by name."},
    {"undetermined", text | list(text), "", "Constants that the measurements leave open; not read."},
    {"covariance", mapping(covariance), "none", "How certain the fitted constants are."},
    {"spread", by_name(number), "none", "How far measurements lie from the fit, by kind of operator."},
    {"residuals", text, "", "Every measurement beside the fit; not read."},
    {"bars", text, "", "What the fit was held against; not read."},
    {"provenance", text, "", "When and with what it was measured; not read."},
    {"measured_matmuls", list(mapping(measured_matmul)), "none", "Matrix products whose times were measured."},
};

constexpr Key fitted_constant_keys[] = {
    {"value", a_constant, "needed", "The number, in the constant's unit."},
    {"kind", word<ConstantKind>, "needed", "Whether it is measured, fitted or assumed."},
    {"standard_error", number, "", "How certain it is; not read."},
    {"published", number, "", "What the base says; not read."},
    {"at_bound", flag, "", "Whether the fit ended at the bound of what is sensible; not read."},
    {"source", text, "needed", "The measurements behind it."},
};

constexpr Key covariance_keys[] = {
    {"constants", list(text), "needed", "The names of rows and columns."},
    {"rows", shaped(number, Form::Shape::list_of_lists), "needed", "The matrix."},
};

constexpr Key measured_gpu_keys[] = {
    {"name", text, "needed", "Its name in the catalogue."},
    {"device", text, "", "What the driver calls it; not read."},
    needed<&CalibratedGpu::compute_capability>("CUDA's number of its generation.", {.zero = Zero::refused}),
    member<&CalibratedGpu::memory_latency>("ns", "the catalogue's", "As measured."),
    member<&CalibratedGpu::l2_bandwidth>("TB/s", "the catalogue's", "As measured."),
    {"description", text, "", "A line about the GPU; not read."},
};

constexpr Key trainer_keys[] = {
    {"kind", text, "needed", "What the file describes: trainer."},
    {"name", text, "", "What people call the trainer."},
    {"description", text, "", "A line about the trainer for people who list trainers."},
    {"base", named(Catalogue::trainer), "", "The framework whose settings apply to keys that this file leaves out."},
    {"habits", mapping(habits), "needed", "Its settings where a scenario leaves them out, by dotted key."},
    {"refuses", list(mapping(refusal)), "nothing", "Factors of a plan that it does not run."},
    {"constants", by_name(mapping(constant)), "none",
     "Constants of the cost models that its runs taught, in place of the calibration's, by name."},
    {"cluster", mapping(learned_cluster), "none",
     "Figures of the cluster on which it ran, for keys that a scenario leaves out."},
    {"learned", mapping(learned), "", "From which runs, and how well it predicts those that it had not seen."},
};

constexpr std::string_view of_the_key = "The trainer's value for the scenario's key of this name.";
std::span<const Key> habits_keys() {
  static const std::vector<Key> rows = [] {
    std::vector<Key> all;
    for (const FrameworkKey& key : framework_keys()) {
      all.push_back({key.name, one_or_list(mapping(habit)), "", of_the_key});
    }
    return all;
  }();
  return rows;
}

constexpr Key habit_keys[] = {
    {"value", text | number | flag, "needed", "The value that the key then has."},
    {"when", mapping(condition), "always", "For which plans it holds."},
    {"kind", word<ConstantKind>, "needed", "Whether it is published, measured, fitted or assumed."},
    {"source", text, "needed", "Where the trainer says or does so."},
};

constexpr Key learned_cluster_keys[] = {
    {"network.efficiency", mapping(habit), "", of_the_key},
    {"network.latency", mapping(habit), "", of_the_key},
    {"network.scaling", mapping(habit), "", of_the_key},
};

constexpr Key learned_keys[] = {
    {"from", text, "needed", "The tables of runs."},
    {"runs", whole, "needed", "How many it was learned from."},
    {"nodes", list(whole), "needed", "The least and the most machines that they used."},
    {"error", quantity("%"), "needed", "Mean error of the steps of runs left out, in turn."},
    {"median_error", quantity("%"), "needed", "The median of the same."},
    {"error_of_other_scales", quantity("%"), "",
     "Mean error of the steps of each number of machines, left out in turn."},
    {"pairs_right", quantity("%"), "",
     "Pairs of runs left out, choices for one task, that are predicted in their order."},
    {"regret", quantity("%"), "",
     "By how much the choice predicted best of those left out takes longer than the best one, on average."},
    {"memory_error", quantity("%"), "", "Mean error of the memory of runs left out."},
    {"memory_shortfall", quantity("%"), "", "Nine of ten runs left out need no more memory than predicted and this."},
    {"spread", quantity("%"), "needed", "Nine of ten steps left out lie within this of their prediction."},
    {"likely", by_name(list(text | number)), "none",
     "Of each trait that moves a step, between which values it likely lies: one standard deviation to either side."},
    {"unexplained", list(text), "none", "Runs that no setting explains, by name."},
};

constexpr Key condition_keys[] = {
    {"zero", one_or_list(whole), "all", "Levels of ZeRO.", "", "", {0, 3}},
    {"servers", flag, "both", "Whether gradients go to parameter servers."},
    {"interleaved", flag, "both", "Whether a pipeline's stages have several chunks of layers each."},
    {"split_backward", flag, "both", "Whether gradients of weights are put off (schedule: zero_bubble or dualpipe)."},
    {"precision", one_or_list(word<Precision>), "all", "Formats of the training's products."},
    {"optimizer", one_or_list(word<Optimizer>), "all", "Optimizers of the training."},
    {"adapters", flag, "both", "Whether adapters are trained (lora)."},
    {"master_weights", flag, "both", "Whether 2-byte weights have an fp32 copy (workload.train.master_weights)."},
    {"kernels", word<KernelSet>, "both", "How kernels are cut (workload.train.kernels)."},
    {"attention", one_or_list(word<AttentionKind>), "all", "Attention kernels (workload.train.attention)."},
    {"execution", word<ExecutionMode>, "all", "How operators are launched (plan.execution)."},
    {"architecture", one_or_list(text), "all", "Generations of the GPUs."},
    {"context", flag, "both", "Whether sequences are divided among context ranks."},
};

constexpr Key refusal_keys[] = {
    {"key", text, "needed", "The factor of the plan, such as plan.pipeline, that may not exceed 1."},
    {"when", mapping(condition), "always", "In which plans."},
    {"instead", text, "needed", "What would be right."},
    {"source", text, "needed", "Where the trainer says so."},
};

}  // namespace

constinit const Mapping calibration = {"calibration", calibration_keys};
constinit const Mapping constant = {"constant", constant_keys};
constinit const Mapping measured_matmul = {"measured matrix product", measured_matmul_keys};
constinit const Mapping machine_calibration = {"calibration of a machine", machine_calibration_keys};
constinit const Mapping fitted_constant = {"fitted constant", fitted_constant_keys};
constinit const Mapping covariance = {"covariance", covariance_keys};
constinit const Mapping measured_gpu = {"measured GPU", measured_gpu_keys};
constinit const Mapping trainer = {"trainer", trainer_keys};
const Mapping habits = {"habits", habits_keys()};
constinit const Mapping habit = {"habit", habit_keys};
constinit const Mapping learned_cluster = {"figures of a cluster", learned_cluster_keys};
constinit const Mapping learned = {"learned", learned_keys};
constinit const Mapping refusal = {"refusal of a trainer", refusal_keys};
constinit const Mapping condition = {"condition of a habit", condition_keys};

std::span<const FileKind> files() {
  static constexpr const Mapping* scenarios[] = {&scenario};
  static constexpr const Mapping* hardware[] = {
      &node,          &gpu,        &fabric,         &links_file,         &cards_file,
      &storage_file,  &hierarchy,  &matrix_library, &architectures_file, &energy_file,
      &failures_file, &prices_file};
  static constexpr const Mapping* models[] = {&model};
  static constexpr const Mapping* calibrations[] = {&calibration, &machine_calibration};
  static constexpr const Mapping* trainers[] = {&trainer, &buckets_file};
  static constexpr FileKind all[] = {{"scenario", scenarios},
                                     {"hardware", hardware},
                                     {"model", models},
                                     {"calibration", calibrations},
                                     {"trainer", trainers}};
  return all;
}

}  // namespace foretrain::keys
