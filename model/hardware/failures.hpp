// Failure rates of the parts of a cluster.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"
#include "model/base/words.hpp"

namespace foretrain {

/// Failing parts, and their units: GPUs; machines, with all in them that has no name here; NICs; cables, one
/// a card; switches of the fabric's edge; machines' software. The first four take a machine out of the job until it is
/// repaired; a switch stops all until it is replaced; software is started again where it was.
enum class FailingPart { gpu, node, nic, link, fabric_switch, software };
template <>
constexpr std::string_view enumerator_word<FailingPart::fabric_switch>() {
  return "switch";
}
inline constexpr std::size_t failing_parts = names_of<FailingPart>.size();

constexpr bool takes_machine(FailingPart part) {
  return part != FailingPart::fabric_switch && part != FailingPart::software;
}

struct Failures {
  /// A GPU that becomes slow and is still there: all wait for it until somebody notices and the machine is replaced.
  struct Stragglers {
    Seconds mtbf;        ///< of one GPU
    double speed = 1.0;  ///< remaining share
    Seconds noticed;     ///< after this time
    bool operator==(const Stragglers&) const = default;
  };

  /// Mean time between failures of one part, by FailingPart; infinite: it never fails. Failures are independent and as
  /// likely at any time (exponentially distributed).
  std::array<Seconds, failing_parts> mtbf = [] {
    std::array<Seconds, failing_parts> never;
    never.fill(Seconds::infinity());
    return never;
  }();
  std::optional<int> switches;  ///< their number, if stated
  std::optional<Stragglers> stragglers;
  int seed = 1;
  std::vector<Constant> constants;
  bool operator==(const Failures&) const = default;
};

/// Overhead of a data centre's electricity, and emissions per kilowatt-hour.
struct Energy {
  double pue = 1.0;
  double rest_watts = 0.0;              ///< of all machines, without their GPUs' boards
  std::optional<double> grams_per_kwh;  ///< of CO2
  std::vector<Constant> constants;
  bool operator==(const Energy&) const = default;
};

}  // namespace foretrain
