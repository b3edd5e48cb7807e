#include "model/cost/calibration.hpp"

#include <iterator>

namespace foretrain {
namespace {

using Rows = std::vector<ConstantRow>;

// A row for one member of one of Calibration's structs.
template <class Struct>
ConstantRow row(std::string name, std::string unit, Struct Calibration::*part, double Struct::*field, double minimum,
                double maximum) {
  return {std::move(name), std::move(unit),
          [part, field](Calibration& calibration) -> double& { return calibration.*part.*field; }, minimum, maximum};
}

Rows power_rows() {
  using C = PowerConstants;
  Rows rows = {
      row("power.static_share", "", &Calibration::power, &C::static_share, 0.0, 0.6),
      row("power.voltage_floor", "", &Calibration::power, &C::voltage_floor, 0.0, 1.0),
      row("power.operand_share", "", &Calibration::power, &C::operand_share, 0.0, 1.0),
  };
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {
    const std::string prefix = "power." + std::string(chip_generations[i].name);
    rows.push_back({prefix + "_vector_watts", "",
                    [i](Calibration& c) -> double& { return c.power.generation[i].vector_watts; }, 0.0, 200.0});
    rows.push_back({prefix + "_tensor_watts", "",
                    [i](Calibration& c) -> double& { return c.power.generation[i].tensor_watts; }, 0.0, 20.0});
  }
  return rows;
}

Rows matmul_rows() {
  using C = MatmulConstants;
  const auto part = &Calibration::matmul;
  return {
      row("matmul.vector_efficiency", "", part, &C::vector_efficiency, 0.1, 1.0),
      row("matmul.tile_loss", "", part, &C::tile_loss, 0.0, 128.0),
      row("matmul.tile_latencies", "", part, &C::tile_latencies, 0.0, 50.0),
      row("matmul.exposed_share", "", part, &C::exposed_share, 0.0, 1.0),
      row("matmul.fixed_us", "us", part, &C::fixed_us, 0.0, 100.0),
      row("matmul.strided_traffic", "", part, &C::strided_traffic, 1.0, 4.0),
  };
}

Rows convolution_rows() {
  using C = ConvolutionConstants;
  const auto part = &Calibration::convolution;
  return {
      row("convolution.tensor_efficiency", "", part, &C::tensor_efficiency, 0.05, 1.0),
      row("convolution.vector_efficiency", "", part, &C::vector_efficiency, 0.05, 1.0),
      row("convolution.address_instructions", "", part, &C::address_instructions, 0.0, 1000.0),
      row("convolution.transform_efficiency", "", part, &C::transform_efficiency, 0.05, 1.0),
  };
}

Rows attention_rows() {
  using C = AttentionConstants;
  const auto part = &Calibration::attention;
  return {
      row("attention.exposed_share", "", part, &C::exposed_share, 0.0, 1.0),
      row("attention.softmax_instructions", "", part, &C::softmax_instructions, 0.0, 100.0),
      row("attention.exponentials_per_clock", "", part, &C::exponentials_per_clock, 1.0, 1000.0),
      row("attention.shared_bytes_per_clock", "", part, &C::shared_bytes_per_clock, 1.0, 10000.0),
      row("attention.warp_mma_share", "", part, &C::warp_mma_share, 0.1, 1.0),
      row("attention.flash_3_hidden_softmax", "", part, &C::flash_3_hidden_softmax, 0.0, 1.0),
      row("attention.memory_efficient_share", "", part, &C::memory_efficient_share, 0.1, 1.0),
      row("attention.block_start_keys", "", part, &C::block_start_keys, 0.0, 2000.0),
      row("attention.unfused_softmax_slowdown", "", part, &C::unfused_softmax_slowdown, 1.0, 10.0),
      row("attention.mask_passes", "", part, &C::mask_passes, 0.0, 50.0),
  };
}

Rows streaming_rows() {
  using C = StreamingConstants;
  const auto part = &Calibration::streaming;
  return {
      row("streaming.bandwidth_efficiency", "", part, &C::bandwidth_efficiency, 0.1, 1.0),
      row("streaming.reduction_efficiency", "", part, &C::reduction_efficiency, 0.1, 1.0),
      row("streaming.gather_efficiency", "", part, &C::gather_efficiency, 0.05, 1.0),
      row("streaming.l2_share", "", part, &C::l2_share, 0.0, 1.0),
      row("streaming.kernel_us", "us", part, &C::kernel_us, 0.0, 100.0),
  };
}

Rows access_rows() {
  using C = AccessConstants;
  const auto part = &Calibration::access;
  return {
      row("access.l1_cycles", "", part, &C::l1_cycles, 1.0, 1000.0),
      row("access.l2_cycles", "", part, &C::l2_cycles, 1.0, 1000.0),
      row("access.l1_bytes_per_cycle", "", part, &C::l1_bytes_per_cycle, 1.0, 1024.0),
  };
}

Rows host_rows() {
  using C = HostConstants;
  const auto part = &Calibration::host;
  return {
      row("host.dispatch_us", "us", part, &C::dispatch_us, 0.0, 1000.0),
      row("host.compiled_dispatch_us", "us", part, &C::compiled_dispatch_us, 0.0, 1000.0),
      row("host.graph_launch_us", "us", part, &C::graph_launch_us, 0.0, 1e4),
      row("host.launch_latency_us", "us", part, &C::launch_latency_us, 0.0, 1000.0),
      row("host.graph_node_saving_us", "us", part, &C::graph_node_saving_us, 0.0, 10.0),
      row("host.queue_launches", "", part, &C::queue_launches, 1.0, 1e6),
      row("host.synchronize_us", "us", part, &C::synchronize_us, 0.0, 1000.0),
      row("host.print_us", "us", part, &C::print_us, 0.0, 1e6),
      row("host.step_us", "us", part, &C::step_us, 0.0, 1e6),
      row("host.pageable_copy_gbps", "GB/s", part, &C::pageable_copy_gbps, 0.1, 1000.0),
      row("host.page_lock_gbps", "GB/s", part, &C::page_lock_gbps, 0.1, 1000.0),
  };
}

Rows memory_rows() {
  using C = MemoryConstants;
  const auto part = &Calibration::memory;
  return {
      row("memory.context_mib", "MiB", part, &C::context_mib, 0.0, 1e5),
      row("memory.communicator_mib", "MiB", part, &C::communicator_mib, 0.0, 1e5),
      row("memory.fragmentation", "", part, &C::fragmentation, 0.0, 1.0),
  };
}

Rows step_rows() {
  return {row("step.kernel_stretch", "", &Calibration::step, &StepConstants::kernel_stretch, 1.0, 2.0)};
}

Rows uncertainty_rows() {
  using C = UncertaintyConstants;
  const auto part = &Calibration::uncertainty;
  return {
      row("uncertainty.train", "", part, &C::train, 0.0, 10.0),
      row("uncertainty.collective", "", part, &C::collective, 0.0, 10.0),
      row("uncertainty.kernel", "", part, &C::kernel, 0.0, 10.0),
  };
}

}  // namespace

const std::vector<ConstantRow>& calibration_rows() {
  static const Rows table = [] {
    Rows all;
    for (Rows part : {power_rows(), matmul_rows(), convolution_rows(), attention_rows(), streaming_rows(),
                      access_rows(), host_rows(), collective_calibration_rows(), loader_calibration_rows(),
                      memory_rows(), step_rows(), uncertainty_rows()}) {
      all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
    }
    return all;
  }();
  return table;
}

}  // namespace foretrain
