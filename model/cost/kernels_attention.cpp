#include "model/cost/attention.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "model/base/number.hpp"
#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Products over the scores: QKᵀ and PV; backward recomputes QKᵀ and adds dV, dP, dQ, dK.
constexpr double forward_products = 2.0;
constexpr double backward_products = 5.0;

// Instructions of a kernel's inner loop. warps: warps of 32 queries with mma.sync, two thread blocks a multiprocessor
// (FlashAttention); narrow_warps: warps of 16 queries (tiles of 64, TensorRT-LLM's kernels before Hopper and on
// consumer Blackwell, cpp/kernels/fmha_v2); warp_groups: four warps issue one instruction of 64 rows (PTX ISA: wgmma,
// sm_90a); tensor_memory: results stay in tensor memory, from where other warps take them (PTX ISA: tcgen05).
enum class InnerLoop { warps, narrow_warps, warp_groups, tensor_memory };

InnerLoop inner_loop(AttentionKind kernel, const Gpu& gpu) {
  if (kernel != AttentionKind::flash && kernel != AttentionKind::flash_3) return InnerLoop::warps;
  if (!has_warp_groups(gpu)) return InnerLoop::narrow_warps;
  return has_tensor_memory(gpu) ? InnerLoop::tensor_memory : InnerLoop::warp_groups;
}

// Operations per byte that a kernel reads from shared memory, 2-byte operands: rows (or rows · columns / (rows +
// columns) where both operands lie there) of the tile that one warp or warp group multiplies. FlashAttention-2: four
// warps share 128 queries of at most 128 elements, eight warps the longer heads (flash_fwd_launch_template.h).
// Backward, 28 between tiles of 32 × 32 of two operands (16) and what stays in registers (32): modelling choice. Warp
// groups take 64 rows; backward, 64 × 128 of two operands, 43, less what is read again: modelling choice. Tensor
// memory: tiles of 128 × 128, from which P comes, too: 98,304 bytes for a forward tile of a head of 128, and
// backward 1.3 times as long as the multiplication takes (FlashAttention-4, arXiv 2603.05451, roofline of both passes).
struct SharedIntensity {
  double forward, wide_forward, backward;
};
const SharedIntensity& shared_intensity(InnerLoop loop) {
  static constexpr SharedIntensity of_loop[] = {
      {32.0, 16.0, 28.0}, {16.0, 16.0, 16.0}, {64.0, 64.0, 40.0}, {85.0, 85.0, 49.0}};
  return of_loop[static_cast<std::size_t>(loop)];
}
constexpr std::int64_t wide_head = 128;

// Two tiles of queries are in flight in a thread block with tensor memory, one's softmax beside the other's products
// (FlashAttention-4, section on the forward pass; CUTLASS, example 77).
double tiles_per_block(InnerLoop loop, bool backward) {
  return loop == InnerLoop::tensor_memory && !backward ? 2.0 : 1.0;
}

// The backward pass also reads O and dO for the softmax's row sums, clears and accumulates dQ in fp32 and converts it:
// tensors of Q's size that pass through memory outside the main kernel (FlashAttention-2's preprocess and convert
// kernels): O and dO once, dQ written: 2 + 1; each sum of dQ, of twice the width, cleared and read: 2 + 2. Where heads
// share keys, each writes its own dK and dV, read again to be added up: twice 2.
constexpr double backward_side_passes = 3.0, passes_of_sum = 4.0;
constexpr double backward_kernels = 3.0;
constexpr double shared_key_passes = 4.0;

// FlashAttention-1 cuts a head into as many thread blocks as fill the device, at most 30 (num_splits_heuristic_fwd of
// its release 1.0, max_splits).
constexpr int most_splits = 30;

// Blackwell's data-centre chips double the rate through tensor memory alone; instructions of warps are taken to keep
// Hopper's rate per multiprocessor and clock: assumption.
constexpr double tensor_memory_doubles = 2.0;

double warp_mma_share(const Gpu& gpu, const AttentionConstants& constants) {
  return constants.warp_mma_share / (has_tensor_memory(gpu) ? tensor_memory_doubles : 1.0);
}

// Pairs of multiprocessors multiply together and add up one dQ for the keys of both (FlashAttention-4, section on the
// backward pass).
constexpr double paired_blocks = 2.0;

// Blackwell Ultra has twice the special function units (NVIDIA, "Making Softmax More Efficient with NVIDIA Blackwell
// Ultra", 2026).
double exponentials_per_clock(const Gpu& gpu) {
  const bool ultra = chip_generations[generation_of(gpu)].name == "blackwell_ultra";
  return ultra && has_warp_groups(gpu) ? 32.0 : 16.0;
}

// Time of parts that run at the same time: the longest, and a share of the others that it does not hide.
Seconds overlapped(std::initializer_list<Seconds> parts, double exposed) {
  const Seconds longest = std::max(parts);
  return longest + exposed * (std::accumulate(parts.begin(), parts.end(), Seconds(0.0)) - longest);
}

// Power of its products over others as large: those of the probabilities, which lie between 0 and 1, less (PV; of the
// backward pass, dV).
double energy_share(const Attention& work, const PowerConstants& constants) {
  const double products = work.backward ? backward_products : forward_products;
  return (products - 1.0 + constants.probability_share) / products;
}

struct ScoreTime {
  Seconds flowing;
  Seconds shorter;  ///< of multiplication and softmax: what the other hides, at best
};

// Seconds for one query–key pair with the whole device busy: tensor cores, shared memory, (dQ, added up by atomic
// operations) the L2, and the softmax, an exponential on the special function units and some instructions on CUDA
// cores. Other blocks, warps or tiles keep each of them busy, but not perfectly. Narrow warps wait for their softmax,
// and with tensor memory other warps do it at the same time.
ScoreTime time_per_score(const Attention& work, Precision precision, AttentionKind kernel, const Gpu& gpu,
                         const Calibration& calibration) {
  const AttentionConstants& c = calibration.attention;
  const InnerLoop loop = inner_loop(kernel, gpu);
  const bool short_of_rate = loop == InnerLoop::warps && has_warp_groups(gpu) && uses_tensor_cores(gpu, precision);
  const Flops products(2.0 * (work.backward ? backward_products : forward_products) * number(work.head_dim));
  const Seconds multiply = products / (gpu.matrix_rate(precision) * (short_of_rate ? warp_mma_share(gpu, c) : 1.0));

  const SharedIntensity& intensity = shared_intensity(loop);
  const double reuse = work.backward               ? intensity.backward
                       : work.head_dim > wide_head ? intensity.wide_forward
                                                   : intensity.forward;
  const double clocks = gpu.boost_clock.value() * gpu.sms;
  const Bytes loaded(products.value() / reuse * (bytes_per_element(precision) / bytes_per_element(Precision::fp16)));
  const Seconds shared = loaded / BytesPerSecond(shared_bytes_per_clock * clocks);
  const bool atomics = work.backward && kernel != AttentionKind::flash_1;
  const double keys_per_sum = number(Packing::block_rows) * (loop == InnerLoop::tensor_memory ? paired_blocks : 1.0);
  const Bytes added = 2.0 * bytes_per_element(Precision::fp32) * number(work.head_dim) / keys_per_sum;
  const Seconds cache = atomics ? added / gpu.l2_bandwidth : Seconds(0.0);

  const Seconds softmax = Seconds(1.0 / (exponentials_per_clock(gpu) * clocks)) +
                          Flops(2.0 * c.softmax_instructions) / gpu.matrix_rate(Precision::fp32) +
                          Seconds((work.dropout ? c.dropout_instructions : 0.0) / (integer_lanes * clocks));
  const Seconds beside = overlapped({multiply, shared, cache}, c.exposed_share);
  const Seconds total = loop == InnerLoop::tensor_memory ? std::max(beside, softmax)
                        : loop == InnerLoop::narrow_warps
                            ? beside + softmax
                            : overlapped({multiply, shared, cache, softmax}, c.exposed_share);
  const double utilisation = energy_share(work, calibration.power) * (products / gpu.matrix_rate(precision) / total);
  const double clock = sustained_clock(gpu, precision, calibration.power, utilisation);
  return {total / clock, std::min(multiply, softmax) / clock};
}

// Sums of dQ in a fixed order; 0: blocks of keys add to one in any order. FlashAttention-2 starts as few blocks a head
// as occupy the multiprocessors, each with a sum of its own, which go on to further keys
// (csrc/flash_attn/src/flash_bwd_launch_template.h, gridDimx).
double fixed_sums(const Attention& work, AttentionKind kernel, const Gpu& gpu) {
  if (!work.backward || !work.deterministic || kernel != AttentionKind::flash_2) return 0.0;
  return std::ceil(std::min<double>(gpu.sms, key_rows(work).blocks) / (number(work.batch) * number(work.heads)));
}

// Keys that a block of queries visits (backward: queries that a block of keys visits), on average and at most.
struct Visits {
  double average, most;
};
// A masked edge leaves half of a block's last square unused: `edge_keys` of them.
Visits visits(const Attention& work, double rows, double edge_keys) {
  const std::int64_t keys = work.backward ? work.query_length : work.key_length;
  const double most = number(work.packing ? work.packing->longest : keys);
  const double seen = scores(work) / (work.density * std::max(rows, 1.0));
  const bool windowed = work.window > 0 && number(work.window) < most;
  const double reach = windowed ? std::min(most, number(work.window) * (work.causal ? 1.0 : 2.0)) : most;
  const double edges = edge_keys * ((work.causal ? 1.0 : 0.0) + (windowed ? (work.causal ? 1.0 : 2.0) : 0.0));
  // A window never makes a block visit more than the same mask without it.
  const double unwindowed = work.causal ? std::max(seen, 0.5 * (most + 1.0)) + edge_keys : most;
  const double visited = std::max(seen, std::min({seen + edges, most, unwindowed}));
  return {visited * work.density, std::max(visited, reach) * work.density};
}

// Parts of the keys that FlashAttention-3 gives to different multiprocessors where there are too few blocks, as its
// calls with a cache do (hopper/heuristics.h, num_splits_heuristic): the fewest within 85 % of the best use of waves.
int key_splits(double blocks, double keys, const Gpu& gpu) {
  constexpr double full = 0.8, good = 0.85;
  const double tiles = std::ceil(keys / number(Packing::block_rows));
  if (blocks >= full * gpu.sms || tiles <= 4.0) return 1;
  const int most = std::min(gpu.sms, static_cast<int>(std::min(tiles, 128.0)));
  const auto used = [&](int splits) { return blocks * splits / gpu.sms / std::ceil(blocks * splits / gpu.sms); };
  double best = 0.0;
  for (int splits = 1; splits <= most; ++splits) best = std::max(best, used(splits));
  int splits = 1;
  while (used(splits) < good * best) ++splits;
  return splits;
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

// Waits of a block that is alone on its multiprocessor, beside the flow of keys. Nothing hides the softmax of its
// first keys, or the products of its last, and no other work its queries on their way in and results on their way out,
// at its share of the memory. Engines' kernels that multiply by warp groups or in tensor memory; FlashAttention-3 and
// cuDNN write one tile beside the next's products, and warps' kernels share a multiprocessor.
Seconds lone_block(const Attention& work, Precision precision, AttentionKind kernel, const ScoreTime& score,
                   double block_rows, const Gpu& gpu, const Calibration& calibration) {
  if (!work.cached || kernel != AttentionKind::flash || !has_warp_groups(gpu)) return Seconds(0.0);
  const Bytes moved = 2.0 * number(work.head_dim) * block_rows * bytes_per_element(precision);
  const BytesPerSecond bandwidth = gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency;
  return score.shorter * (gpu.sms * block_rows * number(Packing::block_rows)) + moved * gpu.sms / bandwidth;
}

// Thread blocks of some queries (backward: keys) of one head run over the other sequence; the scores never leave the
// multiprocessor.
struct Blocks {
  double rounds;  ///< blocks over multiprocessors
  Seconds average, longest;
  int splits;
};
Blocks blocks_of(const Attention& work, Precision precision, AttentionKind kernel, const Gpu& gpu,
                 const Calibration& calibration) {
  const HeadRows rows = work.backward ? key_rows(work) : query_rows(work);
  const double tiles = tiles_per_block(inner_loop(kernel, gpu), work.backward);
  const double heads = number(work.batch) * number(work.heads);
  double blocks = heads * std::ceil(rows.blocks / heads / tiles), in_turn = 1.0;
  if (const double started = heads * fixed_sums(work, kernel, gpu); started > 0.0) {
    in_turn = blocks / started;
    blocks = std::ceil(started / gpu.sms) * gpu.sms;
  }
  const double block_rows = tiles * number(Packing::block_rows);
  const Visits visited = visits(work, rows.rows, 0.5 * block_rows);
  const int splits =
      kernel == AttentionKind::flash_3 && work.cached ? key_splits(blocks, number(work.key_length), gpu) : 1;
  const ScoreTime score = time_per_score(work, precision, kernel, gpu, calibration);
  const Seconds key = score.flowing * (gpu.sms * block_rows);
  const Seconds start = tiles * Seconds(calibration.attention.block_start_us * 1e-6) +
                        lone_block(work, precision, kernel, score, block_rows, gpu, calibration);
  return {blocks * splits / gpu.sms, in_turn * (start + key * (visited.average / splits)),
          start + key * (visited.most / splits), splits};
}

// Multiprocessors take one block after the other, and at the end wait for the last: half of the longest one on average,
// nothing where the longest come first (FlashAttention-3, hopper/tile_scheduler.hpp). No pass is shorter than its
// longest block.
Seconds block_time(const Attention& work, AttentionKind kernel, const Blocks& blocks, const Gpu& gpu) {
  if (kernel == AttentionKind::flash_1) return blocks.average * (blocks.rounds / flash_1_occupancy(work, gpu));
  const bool longest_first = kernel == AttentionKind::flash_3 && work.causal && !work.backward;
  const double waits = longest_first || fixed_sums(work, kernel, gpu) > 0.0 ? 0.0 : 0.5;
  return std::max(blocks.longest, blocks.average * blocks.rounds + blocks.longest * waits);
}

// Kernels beside the one that multiplies, their data in no cache before. An engine's attention is prepared by one that
// reads and writes queries, keys and values once (FlashAttention-3's callers: keys and values alone); split keys are
// put together by another.
Seconds side_kernels(const Attention& work, Precision precision, AttentionKind kernel, int splits, const Gpu& gpu,
                     const Calibration& calibration) {
  const Bytes element = bytes_per_element(precision);
  const Bytes query = query_rows(work).rows * number(work.head_dim) * element;
  const StreamingConstants& c = calibration.streaming;
  const BytesPerSecond bandwidth = gpu.memory_bandwidth * c.bandwidth_efficiency;
  Seconds total(0.0);
  if (work.cached) {
    const double added = std::min(query_rows(work).rows, key_rows(work).rows);  // earlier keys are in the cache
    const Bytes keys = 2.0 * added * number(work.kv_heads) / number(work.heads) * number(work.head_dim) * element;
    const Bytes prepared = keys + (kernel == AttentionKind::flash_3 ? Bytes(0.0) : query);
    total = Seconds(c.kernel_us * 1e-6) + 2.0 * prepared / bandwidth;
  }
  const double widening = bytes_per_element(Precision::fp32) / element;
  if (splits > 1) total = total + Seconds(c.kernel_us * 1e-6) + (splits * widening + 1.0) * query / bandwidth;
  return total;
}

KernelTime flash_time(const Attention& work, Precision precision, AttentionKind kernel, const Gpu& gpu,
                      const Calibration& calibration) {
  const Blocks blocks = blocks_of(work, precision, kernel, gpu, calibration);
  const Seconds compute = block_time(work, kernel, blocks, gpu);
  const BytesPerSecond bandwidth = gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency;
  const Seconds traffic = attention_traffic(work, precision, gpu) / bandwidth;
  Seconds fixed(calibration.attention.kernel_us * 1e-6);
  if (work.backward) {
    const Bytes element = bytes_per_element(precision);
    const Bytes query = query_rows(work).rows * number(work.head_dim) * element;
    const Bytes key = work.kv_heads == work.heads ? Bytes(0.0) : key_rows(work).rows * number(work.head_dim) * element;
    const double passes = backward_side_passes + passes_of_sum * std::max(1.0, fixed_sums(work, kernel, gpu));
    fixed = fixed * backward_kernels + (passes * query + shared_key_passes * key) / bandwidth;
  }
  fixed = fixed + side_kernels(work, precision, kernel, blocks.splits, gpu, calibration);
  // Between products and partial outputs in memory, FlashAttention-1 alternates.
  const Seconds body = kernel == AttentionKind::flash_1 ? compute + traffic : std::max(compute, traffic);
  const Bound bound = fixed > body ? Bound::latency : traffic > compute ? Bound::memory : Bound::compute;
  return {fixed + body, bound};
}

// Scores are written to memory: products as batched GEMMs, and passes of elementwise kernels over the scores.
KernelTime standard_time(const Attention& work, Precision precision, const Gpu& gpu, const Calibration& calibration) {
  const ScoreMatrices matrices = score_matrices(work);
  const Matmul scores{matrices.count, matrices.rows, matrices.columns, work.head_dim, false};
  const Matmul context{matrices.count, matrices.rows, work.head_dim, matrices.columns, false};
  const double rounds = work.backward ? 2.0 : 1.0;
  // Heads of other than multiples of 16 bytes lie unaligned beside each other, and batches of such products run on CUDA
  // cores (cuBLAS documentation, "Tensor Core Usage"; 96 heads of 150 in the BigScience chronicles take 30 % longer).
  constexpr double aligned = 16.0;
  const Bytes head = number(work.head_dim) * bytes_per_element(precision);
  const Precision multiplied = std::fmod(head.value(), aligned) == 0.0 ? precision : Precision::fp32;
  const Seconds products = rounds * (kernel_time(scores, multiplied, 1, gpu, calibration).device +
                                     kernel_time(context, multiplied, 1, gpu, calibration).device);
  const ScorePasses passes = score_passes(work, precision, calibration.attention.mask_passes);
  const double slowdown = work.fused_softmax ? 1.0 : calibration.attention.unfused_softmax_slowdown;
  const Bytes matrix = bytes_per_element(precision) * matrices.elements();
  const Streaming softmax{StreamingKind::reduction, matrix * (passes.softmax * slowdown + passes.mask), Bytes(0),
                          Flops(0), false};
  const KernelTime elementwise = kernel_time(softmax, precision, 2, gpu, calibration);
  return {products + elementwise.device, elementwise.device > products ? elementwise.bound : Bound::compute};
}

}  // namespace

// One for FlashAttention-2's 128 queries of a head.
double thread_blocks(const Attention& w) {
  return number(w.batch) * number(w.heads) * std::ceil(number(w.query_length) / number(Packing::block_rows));
}

KernelTime kernel_time(const Attention& work, Precision precision, int /*kernels*/, const Gpu& gpu,
                       const Calibration& calibration) {
  // Frameworks compute the backward pass of fp8 attention in bf16.
  if (work.backward && precision == Precision::fp8) precision = Precision::bf16;
  const AttentionKind kernel = attention_kernel(work, precision, gpu);
  if (kernel == AttentionKind::standard) return standard_time(work, precision, gpu, calibration);
  KernelTime time = flash_time(work, precision, kernel, gpu, calibration);
  if (kernel == AttentionKind::memory_efficient) time.device /= calibration.attention.memory_efficient_share;
  if (work.ring) time.device /= calibration.attention.ring_share;
  return time;
}

}  // namespace foretrain
