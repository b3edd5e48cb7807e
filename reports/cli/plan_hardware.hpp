// The machines that `foretrain plan` compares: kinds of nodes, their number, networks, and how many of a machine's GPUs
// train.
#pragma once

#include <string>
#include <vector>

namespace foretrain {

/// What the user asks to compare.
struct HardwareChoice {
  std::string nodes;                  ///< "8..64"
  std::string node;                   ///< "dgx-h100@2.5,dgx-b200@4"
  std::vector<std::string> networks;  ///< "nic_bandwidth=200 Gbit/s,400 Gbit/s"
};

/// One kind of hardware, and the values by which it differs from the scenario's.
struct Hardware {
  std::vector<std::string> machines;   ///< overrides that say which these are
  std::vector<std::string> overrides;  ///< these, and how many of their GPUs train
  std::string label;
  std::string name;  ///< the label without how many of their GPUs train
  int all_gpus = 0;  ///< of a machine that may train
};

/// All combinations of nodes, their number and networks; one without anything where nothing varies. Throws UsageError.
std::vector<Hardware> hardware_of(const HardwareChoice& choice);

/// The same machines of a scenario, with all their GPUs or fewer; with all alone where the user fixes that.
std::vector<Hardware> uses_of(const Hardware& hardware, const std::string& file,
                              const std::vector<std::string>& overrides, bool all_alone);

}  // namespace foretrain
