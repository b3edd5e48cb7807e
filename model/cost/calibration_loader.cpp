#include "model/cost/calibration.hpp"

namespace foretrain {

std::vector<ConstantRow> loader_calibration_rows() {
  using C = LoaderConstants;
  const auto row = [](std::string name, std::string unit, double C::*field, double minimum, double maximum) {
    return ConstantRow{std::move(name), std::move(unit),
                       [field](Calibration& calibration) -> double& { return calibration.loader.*field; }, minimum,
                       maximum};
  };
  return {
      row("loader.copy_gbps", "GB/s", &C::copy_gbps, 0.01, 1000.0),
      row("loader.open_us", "us", &C::open_us, 0.0, 10'000.0),
      row("loader.page_fault_us", "us", &C::page_fault_us, 0.0, 1000.0),
      row("loader.fault_kib", "KiB", &C::fault_kib, 4.0, 2048.0),
      row("loader.hand_over_us", "us", &C::hand_over_us, 0.0, 100'000.0),
      row("loader.hand_over_gbps", "GB/s", &C::hand_over_gbps, 0.01, 1000.0),
      row("loader.worker_mib", "MiB", &C::worker_mib, 0.0, 100'000.0),
      row("loader.worker_start_ms", "ms", &C::worker_start_ms, 0.0, 100'000.0),
      row("loader.cache_share", "", &C::cache_share, 0.0, 1.0),
      row("loader.switch_share", "", &C::switch_share, 0.0, 1.0),
  };
}

}  // namespace foretrain
