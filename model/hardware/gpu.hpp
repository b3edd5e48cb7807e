// One accelerator, as its datasheet describes it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"
#include "model/base/reads.hpp"
#include "model/hardware/precision.hpp"
#include "model/hardware/processor.hpp"

namespace foretrain {

/// A GPU. Rates are dense (no structured sparsity) and stated at `boost_clock`; a rate of zero means "not supported".
struct Gpu {
  std::string name;          ///< catalogue name, e.g. "a100-sxm-80gb"
  std::string architecture;  ///< kepler, pascal, volta, turing, ampere, ada, hopper, blackwell; cdna3; host
  double compute_capability = 0.0;
  int sms = 0;
  Hertz boost_clock;
  std::array<FlopsPerSecond, precision_count> vector_rate{};  ///< CUDA cores
  std::array<FlopsPerSecond, precision_count> tensor_rate{};  ///< tensor cores; zero where there are none
  Bytes memory;                     ///< as the driver reports it: less than the chips hold where ECC lies in line
  BytesPerSecond memory_bandwidth;  ///< datasheet peak
  Seconds memory_latency;           ///< one dependent load from device memory
  Bytes l2_cache;
  BytesPerSecond l2_bandwidth;  ///< read, as measured by streaming kernels whose data fit
  Bytes shared_memory_per_sm;
  double board_power_watts = 0.0;
  int copy_engines = 2;
  std::string slot;    ///< the widest PCIe link of its connector, e.g. "pcie4-x16"; of superchips their link to the CPU
  std::string nvlink;  ///< its kind of links to other GPUs, "nvlink3"; empty where it has none
  int nvlinks = 0;     ///< how many of them it has
  bool bridged = false;                               ///< they join two cards by a bridge, not the GPUs of a board
  bool peer_access = true;                            ///< over PCIe, by the vendor's driver
  std::optional<Processor> processor = std::nullopt;  ///< where it is no GPU but a processor that trains
  std::vector<Constant> constants;                    ///< every figure above with its source

  /// What a rate is numbered by where it notes that it was read (model/base/reads.hpp).
  static constexpr std::size_t rate_number(std::size_t unit, bool tensor) {
    return 448 + 2 * unit + (tensor ? 1U : 0U);
  }
  static_assert(448 + 2 * precision_count <= ReadSet{}.size());

  /// The fastest dense rate for a matrix product in `p`: tensor cores where they support it, else CUDA cores.
  /// fp32 means plain fp32 (tensor cores enter only with tf32). Formats without any unit are converted on the way to
  /// the units of a wider one (arithmetic_precision).
  [[nodiscard]] FlopsPerSecond matrix_rate(Precision p) const;
  /// The format that products of `p` are multiplied in: `p` where the chip has units for it, else the next wider format
  /// that it has units for: int8 for int4, fp8 for mxfp8, fp16 for fp8, fp32 for all.
  [[nodiscard]] Precision arithmetic_precision(Precision p) const;
  [[nodiscard]] bool has_tensor_cores(Precision p) const {
    return tensor_rate[static_cast<std::size_t>(p)].value() > 0.0;
  }
  bool operator==(const Gpu&) const = default;
};

}  // namespace foretrain
