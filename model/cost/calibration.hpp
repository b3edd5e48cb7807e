// The constants of the cost models that no datasheet states (calibration.def), and what else a calibration holds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/error.hpp"
#include "model/base/quantity.hpp"
#include "model/base/reads.hpp"
#include "model/base/shared_vector.hpp"
#include "model/hardware/precision.hpp"

namespace foretrain {

/// A family of chips of one process, from its first compute capability on.
struct ChipGeneration {
  std::string_view name;
  double compute_capability;
  double process_nm;  ///< the foundry's name of the process (datasheets, architecture whitepapers)
};
/// Generations whose energy per operation is known, oldest first. A chip belongs to the last one that is not newer than
/// itself, so that one newer than all is priced like the newest. AMD states no compute capability: its chips are known
/// by their architecture, behind all others.
inline constexpr std::array<ChipGeneration, 14> chip_generations = {{{"kepler", 3.0, 28.0},
                                                                     {"pascal", 6.0, 16.0},
                                                                     {"volta", 7.0, 12.0},
                                                                     {"turing", 7.5, 12.0},
                                                                     {"ampere", 8.0, 7.0},
                                                                     {"ampere_8nm", 8.6, 8.0},
                                                                     {"ada", 8.9, 4.0},
                                                                     {"hopper", 9.0, 4.0},
                                                                     {"blackwell", 10.0, 4.0},
                                                                     {"blackwell_ultra", 10.3, 4.0},
                                                                     {"blackwell_rtx", 12.0, 4.0},
                                                                     {"cdna2", 1000.0, 6.0},
                                                                     {"cdna3", 1001.0, 5.0},
                                                                     {"cdna4", 1002.0, 3.0}}};

/// Picojoules per operation (watts per TFLOP/s) at the voltage of 1 GHz. Zero: not known; of tensor cores it then
/// follows from other generations (cost/power.hpp), fp32 has no limit.
struct GenerationPower {
  TrackedNumber vector_pj{0.0};  ///< CUDA cores, fp32
  TrackedNumber tensor_pj{0.0};  ///< tensor cores, 2-byte operands
  bool operator==(const GenerationPower&) const = default;
};

// A struct for each part of calibration.def.
#define PART(Type, part) struct Type {
#define CONSTANT(name, unit, minimum, maximum) TrackedNumber name{minimum};
#define GENERATIONS(minimum, most_vector, most_tensor) \
  std::array<GenerationPower, chip_generations.size()> generation{};
#define END_PART(Type, part)                    \
  bool operator==(const Type&) const = default; \
  }                                             \
  ;
#include "model/cost/calibration.def"

/// Natural logarithms of a product's sizes.
struct LogSizes {
  double batch = 0.0, m = 0.0, n = 0.0, k = 0.0;
};

/// A GEMM that was measured (cost/measured_matmul.cpp).
struct MeasuredMatmul {
  std::string gpu;  ///< catalogue name
  Precision precision = Precision::fp32;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  Seconds time;
  bool transpose_a = false, transpose_b = false;
  double log_residual = 0.0;  ///< ln(measured / model); known once the GPU is, as what follows
  LogSizes log_sizes;
  SourcePosition where;  ///< position of its time
};

/// Accuracy with which a machine's own measurements determine the constants that were fitted to them.
struct FittedUncertainty {
  std::vector<std::string> names;               ///< rows of calibration_rows()
  std::vector<std::vector<double>> covariance;  ///< theirs, in their units
  /// Standard deviation of ln(measured / predicted), by family of operators ("matmul", "streaming", …) and
  /// "collective".
  std::map<std::string, double> spread;
};

/// The machine that a calibration was fitted on (calibration files of `foretrain calibrate`).
struct CalibratedGpu {
  std::string name;  ///< the catalogue's, or that of the machine's own description
  double compute_capability = 0.0;
  std::string base;                      ///< the calibration whose constants the fitted ones replace
  std::string file;                      ///< the file read
  Seconds memory_latency;                ///< zero: not measured
  BytesPerSecond l2_bandwidth;           ///< zero: not measured
  std::vector<std::string> fitted = {};  ///< names of the constants that replace those of the base
};

struct Calibration {
  std::string name;
#define PART(Type, part) Type part;
#define CONSTANT(name, unit, minimum, maximum)
#define GENERATIONS(minimum, most_vector, most_tensor)
#define END_PART(Type, part)
#include "model/cost/calibration.def"
  SharedVector<Constant> constants;  ///< loaded constants, with sources
  std::vector<MeasuredMatmul> measured_matmuls;
  std::optional<CalibratedGpu> calibrated;
  std::optional<FittedUncertainty> fitted;
  std::vector<std::string> warnings;  ///< warnings on its use
  ReadSet read_before;                ///< constants that decided the scenario itself, beside what is predicted of it
};

/// One constant of the table: where its value goes, and what is sensible.
struct ConstantRow {
  std::string name;  ///< dotted, "matmul.tensor_efficiency"
  std::string unit;
  std::function<TrackedNumber&(Calibration&)> noted;
  [[nodiscard]] double& field(Calibration& calibration) const { return noted(calibration).unnoted(); }
  double minimum;
  double maximum;
  bool optional = false;  ///< zero where no file states it
};

/// Every constant that a calibration file must (or may) state, in the order of calibration.def.
const std::vector<ConstantRow>& calibration_rows();

/// Has each constant note its reads by its place in calibration_rows().
void number_constants(Calibration& calibration);

/// Nothing where none has this name.
const ConstantRow* find_constant(std::string_view name);
/// The one with the nearest name, for complaints about an unknown one.
std::optional<std::string> nearest_constant(std::string_view name);

}  // namespace foretrain
