// Provenance: every number that a prediction depends on says where it comes from.
#pragma once

#include <string>

namespace foretrain {

enum class ConstantKind { datasheet, measurement, fit, assumption };

/// A named constant as stated in a data file, for the provenance of a result.
struct Constant {
  std::string name;    ///< dotted, e.g. "gemm.mainloop_efficiency"
  double value = 0.0;  ///< in `unit`
  std::string unit;    ///< "" for plain numbers
  ConstantKind kind = ConstantKind::assumption;
  std::string source;
  bool operator==(const Constant&) const = default;
};

/// A value of a prediction: stated by the scenario, by the file of its trainer, by nobody, or on the command line.
struct ResolvedSetting {
  enum class From { scenario, trainer, assumed, command_line };

  std::string key;  ///< dotted, e.g. "plan.sync.bucket"
  std::string value;
  From from = From::assumed;
  std::string source;  ///< citation, framework source, or reason of an assumption
  bool operator==(const ResolvedSetting&) const = default;
};

}  // namespace foretrain
