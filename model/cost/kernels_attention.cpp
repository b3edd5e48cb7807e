#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/attention.hpp"
#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Products over the scores: QKᵀ and PV; backward recomputes QKᵀ and adds dV, dP, dQ, dK.
constexpr double forward_products = 2.0;
constexpr double backward_products = 5.0;

// Operations per byte that a kernel reads from shared memory, 2-byte operands: rows (or rows · columns / (rows +
// columns) where both operands lie there) of the tile that one warp or warp group multiplies. FlashAttention-2: four
// warps share 128 queries of at most 128 elements, eight warps the longer heads (flash_fwd_launch_template.h);
// backward, warps multiply tiles of 32 × 32, both operands from shared memory. Warp groups take 64 rows (PTX ISA:
// wgmma); backward, 64 × 128 of two operands, 43, less what is read again: modelling choice.
struct SharedIntensity {
  double forward, wide_forward, backward;
};
constexpr SharedIntensity warp_intensity{32.0, 16.0, 16.0};
constexpr SharedIntensity warp_group_intensity{64.0, 64.0, 40.0};
constexpr std::int64_t wide_head = 128;

// A masked edge leaves half of a block's last tile of keys unused: of 128, the largest that FlashAttention-2 takes
// (flash_fwd_launch_template.h). One size for all heads: modelling choice.
constexpr double edge_keys = 64.0;

// The backward pass also reads O and dO for the softmax's row sums, clears and accumulates dQ in fp32 and converts it:
// tensors of Q's size that pass through memory outside the main kernel (FlashAttention-2's preprocess and convert
// kernels): O and dO once, dQ of twice the width cleared and read, dQ written: 2 + 2 + 2 + 1. Where heads share keys,
// each writes its own dK and dV, read again to be added up: twice 2.
constexpr double backward_side_passes = 7.0;
constexpr double backward_kernels = 3.0;
constexpr double shared_key_passes = 4.0;

// FlashAttention-1 cuts a head into as many thread blocks as fill the device, at most 30 (num_splits_heuristic_fwd of
// its release 1.0, max_splits).
constexpr int most_splits = 30;

bool warp_groups(AttentionKernel kernel) {
  return kernel == AttentionKernel::native || kernel == AttentionKernel::flash_3;
}

// Architectures whose full tensor-core rate needs instructions that a group of four warps issues together (PTX ISA:
// wgmma, sm_90a).
constexpr double warp_group_mma_since = 9.0;

// Seconds for one query–key pair with the whole device busy. Tensor cores, shared memory and (dQ, added up by atomic
// operations) the L2 work at the same time, but not perfectly: the longest, and a share of the others. The softmax
// comes on top: an exponential on the special function units and some instructions on CUDA cores.
Seconds time_per_score(const Attention& work, Precision precision, AttentionKernel kernel, const Gpu& gpu,
                       const Calibration& calibration) {
  const AttentionConstants& c = calibration.attention;
  const bool tensor = uses_tensor_cores(gpu, precision);
  const bool own_instructions = !tensor || warp_groups(kernel) || gpu.compute_capability < warp_group_mma_since;
  const Flops products(2.0 * (work.backward ? backward_products : forward_products) * number(work.head_dim));
  const Seconds multiply = products / (gpu.matrix_rate(precision) * (own_instructions ? 1.0 : c.warp_mma_share));

  const SharedIntensity& intensity = warp_groups(kernel) ? warp_group_intensity : warp_intensity;
  const double reuse = work.backward               ? intensity.backward
                       : work.head_dim > wide_head ? intensity.wide_forward
                                                   : intensity.forward;
  const double clocks = gpu.boost_clock.value() * gpu.sms;
  const Bytes loaded(products.value() / reuse * (bytes_per_element(precision) / bytes_per_element(Precision::fp16)));
  const Seconds shared = loaded / BytesPerSecond(c.shared_bytes_per_clock * clocks);
  const bool atomics = work.backward && kernel != AttentionKernel::flash_1;
  const Bytes added = 2.0 * bytes_per_element(Precision::fp32) * number(work.head_dim) / number(Packing::block_rows);
  const Seconds cache = atomics ? added / gpu.l2_bandwidth : Seconds(0.0);

  const Seconds longest = std::max({multiply, shared, cache});
  const Seconds product_time = longest + c.exposed_share * (multiply + shared + cache - longest);
  const double hidden = kernel == AttentionKernel::flash_3 ? c.flash_3_hidden_softmax : 0.0;
  const Seconds softmax = (1.0 - hidden) * (Seconds(1.0 / (c.exponentials_per_clock * clocks)) +
                                            Flops(2.0 * c.softmax_instructions) / gpu.matrix_rate(Precision::fp32));
  const Seconds total = product_time + softmax;
  return total / sustained_clock(gpu, precision, calibration.power, multiply / total);
}

// Keys that a block of queries visits on average (backward: queries that a block of keys visits), and how much longer
// the longest block is than the average one.
struct Visits {
  double average, longest_ratio;
};
Visits visits(const Attention& work, double rows, double start_keys) {
  const std::int64_t keys = work.backward ? work.query_length : work.key_length;
  const double most = number(work.packing ? work.packing->longest : keys);
  const double seen = scores(work) / (work.density * std::max(rows, 1.0));
  const bool windowed = work.window > 0 && number(work.window) < most;
  const double reach = windowed ? std::min(most, number(work.window) * (work.causal ? 1.0 : 2.0)) : most;
  const double edges = edge_keys * ((work.causal ? 1.0 : 0.0) + (windowed ? (work.causal ? 1.0 : 2.0) : 0.0));
  // A window never makes a block visit more than the same mask without it.
  const double unwindowed = work.causal ? std::max(seen, 0.5 * (most + 1.0)) + edge_keys : most;
  const double visited = std::max(seen, std::min({seen + edges, most, unwindowed}));
  return {visited * work.density + start_keys, std::max(1.0, reach / std::max(seen, 1.0))};
}

// Share of the multiprocessors that FlashAttention-1 keeps busy, its blocks per head chosen for that (as
// num_splits_heuristic_fwd of its release 1.0 does) or stated. One per head is the algorithm of its paper.
double flash_1_occupancy(const Attention& work, const Gpu& gpu) {
  const double heads = number(work.batch) * number(work.heads) * number(work.packing ? work.packing->sequences : 1);
  double best = 0.0;
  for (int splits = std::max(work.splits, 1); splits <= (work.splits > 0 ? work.splits : most_splits); ++splits) {
    const double waves = heads * splits / gpu.sms;
    best = std::max(best, waves / std::ceil(waves));
  }
  return best;
}

// Thread blocks of 128 queries (backward: 128 keys) of one head run over the other sequence; the scores never leave the
// multiprocessor. At the end multiprocessors wait for the last block: half of the longest one on average.
KernelTime flash_time(const Attention& work, Precision precision, AttentionKernel kernel, const Gpu& gpu,
                      const Calibration& calibration) {
  const AttentionConstants& c = calibration.attention;
  const HeadRows rows = work.backward ? key_rows(work) : query_rows(work);
  const Seconds per_score = time_per_score(work, precision, kernel, gpu, calibration);
  const Visits visited = visits(work, rows.rows, c.block_start_keys);
  const Seconds block = per_score * (gpu.sms * number(Packing::block_rows) * visited.average);

  const BytesPerSecond bandwidth = gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency;
  const Seconds traffic = attention_traffic(work, precision, gpu) / bandwidth;
  const bool alternates = kernel == AttentionKernel::flash_1;  // between products and partial outputs in memory
  const double rounds = rows.blocks / gpu.sms;
  const Seconds compute = block * (alternates ? rounds / flash_1_occupancy(work, gpu)
                                              : std::max(1.0, rounds + 0.5 * visited.longest_ratio));
  Seconds fixed(calibration.matmul.fixed_us * 1e-6);
  if (work.backward) {
    const Bytes element = bytes_per_element(precision);
    const Bytes query = query_rows(work).rows * number(work.head_dim) * element;
    const Bytes key = work.kv_heads == work.heads ? Bytes(0.0) : key_rows(work).rows * number(work.head_dim) * element;
    fixed = fixed * backward_kernels + (backward_side_passes * query + shared_key_passes * key) / bandwidth;
  }
  const Seconds body = alternates ? compute + traffic : std::max(compute, traffic);
  const Bound bound = fixed > body ? Bound::latency : traffic > compute ? Bound::memory : Bound::compute;
  return {fixed + body, bound};
}

// Scores are written to memory: products as batched matrix products, and passes of elementwise kernels over the scores.
KernelTime standard_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  const ScoreMatrices matrices = score_matrices(work);
  const Matmul scores{matrices.count, matrices.rows, matrices.columns, work.head_dim, false};
  const Matmul context{matrices.count, matrices.rows, work.head_dim, matrices.columns, false};
  const double rounds = work.backward ? 2.0 : 1.0;
  const Seconds products = rounds * (matmul_time(scores, precision, gpu, calibration).device +
                                     matmul_time(context, precision, gpu, calibration).device);
  const ScorePasses passes = score_passes(work, precision, calibration.attention.mask_passes);
  const double slowdown = work.fused_softmax ? 1.0 : calibration.attention.unfused_softmax_slowdown;
  const Bytes matrix = bytes_per_element(precision) * matrices.elements();
  const Streaming softmax{StreamingKind::reduction, matrix * (passes.softmax * slowdown + passes.mask), Bytes(0),
                          Flops(0), false};
  const KernelTime elementwise = streaming_time(softmax, 2, gpu, calibration);
  return {products + elementwise.device, elementwise.device > products ? elementwise.bound : Bound::compute};
}

}  // namespace

KernelTime attention_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  // Frameworks compute the backward pass of fp8 attention in bf16.
  if (work.backward && precision == Precision::fp8) precision = Precision::bf16;
  const AttentionKernel kernel = attention_kernel(work, precision, gpu);
  if (kernel == AttentionKernel::standard) return standard_time(work, precision, gpu, calibration);
  KernelTime time = flash_time(work, precision, kernel, gpu, calibration);
  if (kernel == AttentionKernel::memory_efficient) time.device /= calibration.attention.memory_efficient_share;
  return time;
}

}  // namespace foretrain
