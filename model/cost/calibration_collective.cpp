#include "model/cost/calibration.hpp"

namespace foretrain {

std::vector<ConstantRow> collective_calibration_rows() {
  using C = CollectiveConstants;
  const auto row = [](std::string name, std::string unit, double C::*field, double minimum, double maximum) {
    return ConstantRow{std::move(name), std::move(unit),
                       [field](Calibration& calibration) -> double& { return calibration.collective.*field; }, minimum,
                       maximum};
  };
  return {
      row("collective.nvlink_efficiency", "", &C::nvlink_efficiency, 0.1, 1.0),
      row("collective.network_efficiency", "", &C::network_efficiency, 0.1, 1.0),
      row("collective.pcie_efficiency", "", &C::pcie_efficiency, 0.1, 1.0),
      row("collective.launch_us", "us", &C::launch_us, 0.0, 1000.0),
      row("collective.nvlink_step_us", "us", &C::nvlink_step_us, 0.0, 1000.0),
      row("collective.network_step_us", "us", &C::network_step_us, 0.0, 1000.0),
      row("collective.simple_step_us", "us", &C::simple_step_us, 0.0, 1000.0),
      row("collective.low_latency_efficiency", "", &C::low_latency_efficiency, 0.05, 1.0),
      row("collective.ll128_efficiency", "", &C::ll128_efficiency, 0.05, 1.0),
      row("collective.overlap_slowdown", "", &C::overlap_slowdown, 0.0, 1.0),
  };
}

}  // namespace foretrain
