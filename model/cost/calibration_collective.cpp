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
      row("collective.pcie_efficiency", "", &C::pcie_efficiency, 0.1, 1.0),
      row("collective.network_efficiency", "", &C::network_efficiency, 0.1, 1.0),
      row("collective.nvls_efficiency", "", &C::nvls_efficiency, 0.1, 1.0),
      row("collective.tree_efficiency", "", &C::tree_efficiency, 0.1, 1.0),
      row("collective.low_latency_share", "", &C::low_latency_share, 0.01, 1.0),
      row("collective.early_low_latency_share", "", &C::early_low_latency_share, 0.01, 1.0),
      row("collective.ll128_share", "", &C::ll128_share, 0.01, 1.0),
      row("collective.launch_us", "us", &C::launch_us, 0.0, 1000.0),
      row("collective.early_launch_us", "us", &C::early_launch_us, 0.0, 1000.0),
      row("collective.nvls_us", "us", &C::nvls_us, 0.0, 1000.0),
      row("collective.ll_step_us", "us", &C::ll_step_us, 0.0, 1000.0),
      row("collective.ll128_step_us", "us", &C::ll128_step_us, 0.0, 1000.0),
      row("collective.simple_step_us", "us", &C::simple_step_us, 0.0, 1000.0),
      row("collective.pcie_step_factor", "", &C::pcie_step_factor, 0.1, 10.0),
      row("collective.network_ll_step_us", "us", &C::network_ll_step_us, 0.0, 1000.0),
      row("collective.network_ll128_step_us", "us", &C::network_ll128_step_us, 0.0, 1000.0),
      row("collective.network_simple_step_us", "us", &C::network_simple_step_us, 0.0, 1000.0),
      row("collective.peer_us", "us", &C::peer_us, 0.0, 1000.0),
      row("collective.peer_channel_gbps", "GB/s", &C::peer_channel_gbps, 0.1, 1000.0),
      row("collective.local_copy_traffic", "", &C::local_copy_traffic, 0.0, 10.0),
      row("collective.overlap_slowdown", "", &C::overlap_slowdown, 0.0, 1.0),
  };
}

}  // namespace foretrain
