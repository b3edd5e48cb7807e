// One accelerator, as its datasheet describes it.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"
#include "model/base/reads.hpp"
#include "model/base/shared_vector.hpp"
#include "model/hardware/precision.hpp"

namespace foretrain {

/// Rates that an eager framework reaches on one core. Memory rates are those of its Gpu: `l2_cache` is the thread's
/// last cache, `l2_bandwidth` the rate of plain loops within it, and `memory_bandwidth` that beyond it.
struct Processor {
  double share = 1.0;           ///< of the core's time that the rank gets; the rest it stands still
  double spread = 0.0;          ///< standard deviation of such cores' speeds at a moment, over the mean
  Seconds dispatch;             ///< of one operator, in and out of the framework; the thread does nothing else then
  FlopsPerSecond product_rate;  ///< GEMMs in fp32, once their operands are packed
  BytesPerSecond packing_rate = BytesPerSecond::infinity();  ///< operands of products and their results, on the way
  FlopsPerSecond convolution_rate;                           ///< forward, in fp32
  FlopsPerSecond convolution_gradient_rate;
  BytesPerSecond reorder_rate;  ///< convolutions: tensors to the layout that the kernels want, and back
  // Bytes read and written by loops that are slower than memory, wherever their tensors lie.
  BytesPerSecond norm_rate;  ///< norms and other sums
  BytesPerSecond norm_gradient_rate;
  BytesPerSecond transcendental_rate;  ///< exponentials: softmax, GELU, sigmoid
  BytesPerSecond pooling_rate;         ///< but the gradient of the maximum, which knows where it lay
  BytesPerSecond random_rate;          ///< dropout, a random number for each element
  BytesPerSecond conversion_rate;      ///< fp32 to two bytes, divided there by the number of ranks
  BytesPerSecond fresh_rate;           ///< results for which the C library asks the system every time
  BytesPerSecond transfer_rate;        ///< TCP bandwidth of an otherwise idle core
  Seconds message;                     ///< of the core's time for each message that Gloo sends or receives
  Seconds wake;                        ///< until a core that waits for a message notices that it has come
  Seconds after_wait;                  ///< by which a core that has waited computes longer: its caches are cold
  Seconds all_reduce;                  ///< of one Gloo collective beside its bytes and messages
  BytesPerSecond sum_rate;             ///< of what it sends: received, added up and copied while no card is busy
  BytesPerSecond narrow_sum_rate;      ///< the same of numbers of two bytes
  Bytes process;                       ///< memory of the framework's process without tensors
  bool operator==(const Processor&) const = default;
};

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
  int nvlinks = 0;     ///< their number
  bool bridged = false;                               ///< they join two cards by a bridge, not the GPUs of a board
  bool peer_access = true;                            ///< over PCIe, by the vendor's driver
  std::optional<Processor> processor = std::nullopt;  ///< for processors that train
  SharedVector<Constant> constants;                   ///< every figure above with its source

  [[nodiscard]] bool amd() const { return architecture.starts_with("cdna"); }
  /// What its maker calls its fast links to other GPUs.
  [[nodiscard]] const char* link_name() const { return amd() ? "Infinity Fabric" : "NVLink"; }

  /// Number of a rate in the notes of reads (model/base/reads.hpp).
  static constexpr std::size_t rate_number(std::size_t unit, bool tensor) {
    return 448 + 2 * unit + (tensor ? 1U : 0U);
  }
  static_assert(448 + 2 * precision_count <= ReadSet{}.size());

  /// The fastest dense rate for a GEMM in `p`: tensor cores where they support it, else CUDA cores.
  /// fp32 means plain fp32 (tensor cores enter only with tf32). Formats without any unit are converted on the way to
  /// the units of a wider one (arithmetic_precision).
  [[nodiscard]] FlopsPerSecond matrix_rate(Precision p) const;
  /// The format of GEMMs in `p`: `p` where the chip has units for it, else the next wider format that it has units for.
  /// int8 replaces int4, fp8 mxfp8, fp16 fp8, and fp32 all.
  [[nodiscard]] Precision arithmetic_precision(Precision p) const;
  [[nodiscard]] bool has_tensor_cores(Precision p) const {
    return tensor_rate[static_cast<std::size_t>(p)].value() > 0.0;
  }
  bool operator==(const Gpu&) const = default;
};

}  // namespace foretrain
