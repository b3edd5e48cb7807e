#include <algorithm>
#include <cmath>

#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

constexpr double query_block = 128.0;  // query rows of one thread block (FlashAttention-2)

// Flash kernels need asynchronous copies and 2-byte operands and take no bias on the scores; frameworks fall back to
// kernels of the first generation (xformers', Triton's), which run at the memory-efficient kernels' speed.
constexpr double flash_since = 8.0;
bool runs_flash(const Gpu& gpu, Precision precision) {
  return gpu.compute_capability >= flash_since && bytes_per_element(precision) <= bytes_per_element(Precision::fp16);
}

// Architectures whose full tensor-core rate needs instructions that a group of four warps issues together.
constexpr double warp_group_mma_since = 9.0;

// Products over the scores: QKᵀ and PV; backward recomputes QKᵀ and adds dV, dP, dQ, dK.
constexpr double forward_products = 2.0;
constexpr double backward_products = 5.0;

// The backward pass also reads O and dO for the softmax's row sums, clears and accumulates dQ in fp32 and converts it:
// tensors of Q's size that pass through memory outside the main kernel (FlashAttention-2's preprocess and convert
// kernels).
constexpr double backward_side_passes = 7.0;
constexpr double backward_kernels = 3.0;

// Thread blocks of 128 queries (backward: 128 keys) of one head run over the other sequence; the scores never leave the
// multiprocessor. Per score and product 2·head_dim operations on tensor cores, then the softmax on CUDA cores. At the
// end multiprocessors wait for the last block: half a block on average, a whole one under a causal mask, whose longest
// block is twice the average.
KernelTime flash_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  const AttentionConstants& constants = calibration.attention;
  const bool tensor = uses_tensor_cores(gpu, precision);
  const bool warp_groups = tensor && gpu.compute_capability >= warp_group_mma_since;
  const double reached = work.native ? constants.native_mma_share : constants.warp_mma_share;
  const double open_share = warp_groups ? reached : 1.0;
  const double efficiency = work.backward ? constants.flash_backward_efficiency : constants.flash_efficiency;
  const double clock = sustained_clock(gpu, precision, calibration.power);
  const FlopsPerSecond product_rate = gpu.matrix_rate(precision) * (clock * open_share * efficiency);
  const FlopsPerSecond softmax_rate = gpu.matrix_rate(Precision::fp32) * clock;

  const double products = work.backward ? backward_products : forward_products;
  const Seconds per_score = Flops(2.0 * products * static_cast<double>(work.head_dim)) / product_rate +
                            Flops(constants.softmax_operations) / softmax_rate;
  const double heads = static_cast<double>(work.batch * work.heads);
  const double length = static_cast<double>(work.backward ? work.key_length : work.query_length);
  const double blocks = heads * std::ceil(length / query_block);
  const double visited = scores(work) / (heads * length) + constants.block_start_keys;
  const Seconds block = per_score * (gpu.sms * query_block * visited);
  const Seconds compute = block * std::max(1.0, blocks / gpu.sms + (work.causal ? 1.0 : 0.5));

  const BytesPerSecond bandwidth = gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency;
  const Seconds traffic = minimum_traffic({"", work, precision, 1}) / bandwidth;
  Seconds fixed(calibration.matmul.fixed_us * 1e-6);
  if (work.backward) {
    const double queries = static_cast<double>(work.batch * work.heads * work.query_length * work.head_dim);
    fixed = fixed * backward_kernels + backward_side_passes * queries * bytes_per_element(precision) / bandwidth;
  }
  const Seconds body = std::max(compute, traffic);
  const Bound bound = fixed > body ? Bound::latency : traffic > compute ? Bound::memory : Bound::compute;
  return {fixed + body, bound};
}

// Scores are written to memory: products as batched matrix products, and passes of elementwise kernels over the scores.
KernelTime standard_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  const AttentionConstants& constants = calibration.attention;
  const std::int64_t batch = work.batch * work.heads;
  const Matmul scores{batch, work.query_length, work.key_length, work.head_dim, false};
  const Matmul context{batch, work.query_length, work.head_dim, work.key_length, false};
  const double rounds = work.backward ? 2.0 : 1.0;
  const Seconds products = rounds * (matmul_time(scores, precision, gpu, calibration).device +
                                     matmul_time(context, precision, gpu, calibration).device);
  const double passes = work.backward ? constants.standard_backward_passes : constants.standard_passes;
  const Bytes matrix = bytes_per_element(precision) * static_cast<double>(batch) *
                       static_cast<double>(work.query_length) * static_cast<double>(work.key_length);
  const Streaming softmax{StreamingKind::reduction, matrix * passes, Bytes(0), Flops(0), false};
  const KernelTime elementwise = streaming_time(softmax, 2, gpu, calibration);
  return {products + elementwise.device, elementwise.device > products ? elementwise.bound : Bound::compute};
}

}  // namespace

KernelTime attention_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  if (work.kind == AttentionKind::standard) return standard_time(work, precision, gpu, calibration);
  KernelTime time = flash_time(work, precision, gpu, calibration);
  if (work.kind == AttentionKind::memory_efficient || work.biased || !runs_flash(gpu, precision)) {
    time.device /= calibration.attention.memory_efficient_share;
  }
  return time;
}

}  // namespace foretrain
