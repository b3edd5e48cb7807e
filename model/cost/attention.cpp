#include <algorithm>
#include <cmath>

#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

constexpr double query_block = 128.0;  // query rows of one thread block (FlashAttention-2)

// Products over the scores: QKᵀ and PV; backward recomputes QKᵀ and adds dV, dP, dQ, dK.
constexpr double forward_products = 2.0;
constexpr double backward_products = 5.0;

// Thread blocks of 128 queries (backward: 128 keys) of one head run over the other sequence; the scores never leave the
// multiprocessor. Per score and product 2·head_dim operations on tensor cores, then the softmax on CUDA cores.
KernelTime flash_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  const AttentionConstants& constants = calibration.attention;
  const bool tensor = gpu.has_tensor_cores(precision);
  const double clock = sustained_clock(gpu, precision, calibration.power);
  const double open_share = gpu.compute_capability >= 9.0 ? constants.warp_mma_share : 1.0;
  const double efficiency = work.backward ? constants.flash_backward_efficiency : constants.flash_efficiency;
  const double tensor_rate =
      gpu.matrix_rate(precision).value() / gpu.sms * clock * (tensor ? open_share : 1.0) * efficiency;
  const double vector_rate = gpu.matrix_rate(Precision::fp32).value() / gpu.sms * clock;

  const double products = work.backward ? backward_products : forward_products;
  const double head_dim = static_cast<double>(work.head_dim);
  const double per_score = products * 2.0 * head_dim / tensor_rate +
                           (work.backward ? 2.0 : 1.0) * constants.softmax_operations / vector_rate;
  const double heads = static_cast<double>(work.batch * work.heads);
  const double outer = static_cast<double>(work.backward ? work.key_length : work.query_length);
  const double blocks = heads * std::ceil(outer / query_block);
  const double inner = scores(work) / (heads * outer);
  const double waves = std::max(1.0, blocks / gpu.sms);
  const double block_time = query_block * inner * per_score + constants.block_start_us * 1e-6;
  const double compute = waves * block_time;
  const double traffic = minimum_traffic({"", work, precision, 1}).value() /
                         (gpu.memory_bandwidth.value() * calibration.streaming.bandwidth_efficiency);
  const double fixed = calibration.matmul.fixed_us * 1e-6;
  const double body = std::max(compute, traffic);
  const Bound bound = fixed > body ? Bound::latency : traffic > compute ? Bound::memory : Bound::compute;
  return {Seconds(fixed + body), bound};
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
  switch (work.kind) {
    case AttentionKind::standard:
      return standard_time(work, precision, gpu, calibration);
    case AttentionKind::flash:
      return flash_time(work, precision, gpu, calibration);
    case AttentionKind::memory_efficient:
      break;
  }
  KernelTime time = flash_time(work, precision, gpu, calibration);
  time.device /= calibration.attention.memory_efficient_share;
  return time;
}

}  // namespace foretrain
