#include "model/cost/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/gemm.hpp"
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Compute capabilities: FlashAttention-1 runs from Turing on, FlashAttention-2 needs Ampere's asynchronous copies,
// FlashAttention-3 the warp-group instructions that only Hopper has.
constexpr double flash_1_since = 7.5, flash_2_since = 8.0, native_since = 9.0, flash_3_until = 10.0;
constexpr std::int64_t flash_1_head_dim = 128, flash_head_dim = 256;

bool two_bytes_or_less(Precision precision) {
  return bytes_per_element(precision) <= bytes_per_element(Precision::fp16);
}

HeadRows rows_of(const Attention& w, std::int64_t length) {
  const double heads = number(w.batch) * number(w.heads);
  if (w.packing) return {heads * number(w.packing->tokens), heads * number(w.packing->blocks)};
  return {heads * number(length), heads * number((length + Packing::block_rows - 1) / Packing::block_rows)};
}

// Tensors of Q's size (also O, and their gradients) and of K's (also V); the fp32 log-sum-exp of each query.
struct Tensors {
  Bytes query, key, log_sum;
};
Tensors tensors(const Attention& w, Precision precision) {
  const double queries = query_rows(w).rows, keys = key_rows(w).rows * number(w.kv_heads) / number(w.heads);
  const Bytes element = bytes_per_element(precision), wide = bytes_per_element(Precision::fp32);
  return {queries * number(w.head_dim) * element, keys * number(w.head_dim) * element, queries * wide};
}

// Partial outputs of FlashAttention-1 in fp32: read and written for every block of keys beside Q; backward, dQ so,
// beside Q and dO.
Bytes flash_1_partials(const Attention& w, Precision precision) {
  // Keys that it holds at a time (csrc/flash_attn of its release 1.0, blocksize_c).
  const std::int64_t block = w.head_dim > 64 ? 128 : 256;
  const std::int64_t keys = w.packing ? w.packing->longest : w.key_length;
  if (keys <= block) return Bytes(0.0);
  const double visits = scores(w) / number(block) * number(w.head_dim);
  return visits * ((w.backward ? 2.0 : 1.0) * bytes_per_element(precision) + 2.0 * bytes_per_element(Precision::fp32));
}

// Keys and values that blocks of queries read again because the L2 no longer holds them.
Bytes missed_keys(const Attention& w, Precision precision, const Gpu& gpu) {
  const HeadRows rows = w.backward ? key_rows(w) : query_rows(w);
  const double heads_in_flight =
      std::min(number(w.batch * w.heads), std::max(1.0, gpu.sms / rows.blocks * number(w.batch * w.heads)));
  const Tensors size = tensors(w, precision);
  const Bytes read = w.backward ? 2.0 * size.query : 2.0 * size.key;
  const Bytes in_flight = read * (heads_in_flight / number(w.batch * w.heads));
  if (in_flight <= gpu.l2_cache) return Bytes(0.0);
  const double missed = 1.0 - gpu.l2_cache / in_flight;
  const Bytes all = scores(w) / number(Packing::block_rows) * 2.0 * number(w.head_dim) * bytes_per_element(precision);
  return missed * std::max(Bytes(0.0), all - read);
}

std::string capability(const Gpu& gpu) { return fmt::format("{} is no such GPU", gpu.name); }

}  // namespace

HeadRows query_rows(const Attention& work) { return rows_of(work, work.query_length); }
HeadRows key_rows(const Attention& work) { return rows_of(work, work.key_length); }

AttentionKind attention_kernel(const Attention& work, Precision precision, const Gpu& gpu) {
  if (work.kind == AttentionKind::standard) return AttentionKind::standard;
  if (work.kind == AttentionKind::memory_efficient || work.biased || !two_bytes_or_less(precision)) {
    return AttentionKind::memory_efficient;
  }
  if (work.kind == AttentionKind::flash_1) {
    const bool runs = gpu.compute_capability >= flash_1_since && work.head_dim <= flash_1_head_dim;
    return runs ? AttentionKind::flash_1 : AttentionKind::memory_efficient;
  }
  if (gpu.compute_capability < flash_2_since || work.head_dim > flash_head_dim) return AttentionKind::memory_efficient;
  if (gpu.compute_capability < native_since || work.kind == AttentionKind::flash_2) return AttentionKind::flash_2;
  if (work.kind == AttentionKind::flash_3) return AttentionKind::flash_3;
  return work.native ? AttentionKind::flash : AttentionKind::flash_2;
}

std::optional<UnsupportedAttention> unsupported_attention(const Attention& work, Precision precision, const Gpu& gpu) {
  const AttentionKind kind = work.kind;
  const double capable = gpu.compute_capability;
  if (kind != AttentionKind::flash_1 && kind != AttentionKind::flash_2 && kind != AttentionKind::flash_3) return {};
  if (kind == AttentionKind::flash_1 && capable < flash_1_since) {
    return {{"FlashAttention-1 needs Turing or newer; " + capability(gpu), "memory_efficient or standard"}};
  }
  if (kind == AttentionKind::flash_2 && capable < flash_2_since) {
    return {{"FlashAttention-2 needs Ampere or newer; " + capability(gpu),
             capable >= flash_1_since ? "flash_1 or memory_efficient" : "memory_efficient or standard"}};
  }
  if (kind == AttentionKind::flash_3 && (capable < native_since || capable >= flash_3_until)) {
    return {{"FlashAttention-3 needs Hopper's instructions; " + capability(gpu), "flash, or a Hopper GPU"}};
  }
  const bool takes_fp8 = kind == AttentionKind::flash_3 && !work.backward && precision == Precision::fp8;
  if (precision != Precision::fp16 && precision != Precision::bf16 && !takes_fp8) {
    return {{fmt::format("FlashAttention has no {} kernels{}", name(precision),
                         precision == Precision::fp8 ? " but the forward ones of flash_3" : ""),
             "precision fp16 or bf16, or attention memory_efficient"}};
  }
  const std::int64_t widest = kind == AttentionKind::flash_1 ? flash_1_head_dim : flash_head_dim;
  if (work.head_dim > widest) {
    return {{fmt::format("heads of {} elements, and its kernels end at {}", work.head_dim, widest),
             "memory_efficient, or a smaller head_dim"}};
  }
  return {};
}

ScoreMatrices score_matrices(const Attention& work) {
  const std::int64_t heads = work.batch * work.heads;
  if (work.packing) return {heads * work.packing->sequences, work.packing->longest, work.packing->longest};
  return {heads, work.query_length, work.key_length};
}

ScorePasses score_passes(const Attention& work, Precision precision, double mask_passes) {
  const double dropout = work.dropout ? 2.0 + Bytes(1.0) / bytes_per_element(precision) : 0.0;
  if (work.backward) return {4.0, 3.0 + dropout, 0.0};
  return {2.0, 2.0 + dropout, work.masked() && !work.fused_softmax ? mask_passes : 0.0};
}

Bytes attention_traffic(const Attention& work, Precision precision, const Gpu& gpu) {
  const Tensors size = tensors(work, precision);
  const double each = work.backward ? 4.0 : 2.0;  // Q, O (and gradients); K, V (and gradients)
  const Bytes operands = each * (size.query + size.key);
  const AttentionKind kernel = attention_kernel(work, precision, gpu);
  if (kernel == AttentionKind::standard) {
    const ScorePasses passes = score_passes(work, precision, 2.0);  // adding a mask reads and writes once
    const double count = passes.products + passes.softmax + passes.mask;
    return operands + count * score_matrices(work).elements() * bytes_per_element(precision);
  }
  if (kernel == AttentionKind::flash_1) return operands + flash_1_partials(work, precision);
  return operands + missed_keys(work, precision, gpu);
}

OperatorMemory attention_memory(const Attention& work, Precision precision, const Gpu& gpu) {
  const Tensors size = tensors(work, precision);
  const AttentionKind kernel = attention_kernel(work, precision, gpu);
  const double widening = bytes_per_element(Precision::fp32) / bytes_per_element(precision);
  const Bytes operands = 2.0 * (size.query + size.key);
  OperatorMemory memory;
  if (kernel == AttentionKind::standard) {
    const Bytes matrix = score_matrices(work).elements() * bytes_per_element(precision);
    const Bytes mask = work.dropout ? matrix * (Bytes(1.0) / bytes_per_element(precision)) : Bytes(0.0);
    // Probabilities, and with dropout its mask and what it leaves; S beside P, and going back dP beside dS.
    memory.saved = operands + matrix * (work.dropout ? 2.0 : 1.0) + mask;
    memory.workspace = matrix * (work.backward ? 2.0 : 1.0);
  } else {
    memory.saved = operands + size.log_sum;
    // dQ is added up in fp32; the row sums of dO ∘ O are as large as the log-sum-exp. Heads that share keys each write
    // dK and dV of their own first. FlashAttention-1 adds up O in fp32 as well.
    const bool partial_output = kernel == AttentionKind::flash_1;
    const bool shared_keys = work.kv_heads != work.heads;
    if (work.backward) {
      const Bytes own_keys = 2.0 * size.key * (number(work.heads) / number(work.kv_heads));
      memory.workspace = size.query * widening + size.log_sum + (shared_keys ? own_keys : Bytes(0.0));
    } else if (partial_output) {
      memory.workspace = size.query * widening;
    }
  }
  memory.peak = memory.saved + memory.workspace + (work.backward ? operands : Bytes(0.0));
  return memory;
}

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
// Blackwell's data-centre chips multiply tiles of 128 × 128 into tensor memory, from which P comes, too: 98,304 bytes
// for a forward tile of a head of 128, and backward 1.3 times as long as the multiplication takes (FlashAttention-4,
// arXiv 2603.05451, roofline of both passes).
constexpr SharedIntensity tensor_memory_intensity{85.0, 85.0, 49.0};
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

bool warp_groups(AttentionKind kernel) { return kernel == AttentionKind::flash || kernel == AttentionKind::flash_3; }

// Architectures whose full tensor-core rate needs instructions that a group of four warps issues together (PTX ISA:
// wgmma, sm_90a).
constexpr double warp_group_mma_since = 9.0;

// Blackwell's data-centre chips double the rate through tensor memory alone (PTX ISA: tcgen05, sm_100a to sm_103a);
// instructions of warps are taken to keep Hopper's rate per multiprocessor and clock: assumption.
constexpr double tensor_memory_since = 10.0, tensor_memory_until = 11.0, tensor_memory_doubles = 2.0;

bool has_tensor_memory(const Gpu& gpu) {
  return gpu.compute_capability >= tensor_memory_since && gpu.compute_capability < tensor_memory_until;
}

double warp_mma_share(const Gpu& gpu, const AttentionConstants& constants) {
  return constants.warp_mma_share / (has_tensor_memory(gpu) ? tensor_memory_doubles : 1.0);
}

const SharedIntensity& shared_intensity(AttentionKind kernel, const Gpu& gpu) {
  if (!warp_groups(kernel)) return warp_intensity;
  return has_tensor_memory(gpu) ? tensor_memory_intensity : warp_group_intensity;
}

// Seconds for one query–key pair with the whole device busy. Tensor cores, shared memory and (dQ, added up by atomic
// operations) the L2 work at the same time, but not perfectly: the longest, and a share of the others. The softmax, an
// exponential on the special function units and some instructions on CUDA cores, comes on top; where products leave
// their results in tensor memory, other warps do it at the same time, too.
Seconds time_per_score(const Attention& work, Precision precision, AttentionKind kernel, const Gpu& gpu,
                       const Calibration& calibration) {
  const AttentionConstants& c = calibration.attention;
  const bool tensor = uses_tensor_cores(gpu, precision);
  const bool own_instructions = !tensor || warp_groups(kernel) || gpu.compute_capability < warp_group_mma_since;
  const Flops products(2.0 * (work.backward ? backward_products : forward_products) * number(work.head_dim));
  const Seconds multiply = products / (gpu.matrix_rate(precision) * (own_instructions ? 1.0 : warp_mma_share(gpu, c)));

  const SharedIntensity& intensity = shared_intensity(kernel, gpu);
  const double reuse = work.backward               ? intensity.backward
                       : work.head_dim > wide_head ? intensity.wide_forward
                                                   : intensity.forward;
  const double clocks = gpu.boost_clock.value() * gpu.sms;
  const Bytes loaded(products.value() / reuse * (bytes_per_element(precision) / bytes_per_element(Precision::fp16)));
  const Seconds shared = loaded / BytesPerSecond(c.shared_bytes_per_clock * clocks);
  const bool atomics = work.backward && kernel != AttentionKind::flash_1;
  const Bytes added = 2.0 * bytes_per_element(Precision::fp32) * number(work.head_dim) / number(Packing::block_rows);
  const Seconds cache = atomics ? added / gpu.l2_bandwidth : Seconds(0.0);

  const double hidden = kernel == AttentionKind::flash_3 ? c.flash_3_hidden_softmax : 0.0;
  const Seconds softmax = (1.0 - hidden) * (Seconds(1.0 / (c.exponentials_per_clock * clocks)) +
                                            Flops(2.0 * c.softmax_instructions) / gpu.matrix_rate(Precision::fp32));
  const Seconds beside = warp_groups(kernel) && has_tensor_memory(gpu) ? softmax : Seconds(0.0);

  const Seconds longest = std::max({multiply, shared, cache, beside});
  const Seconds together = longest + c.exposed_share * (multiply + shared + cache + beside - longest);
  const Seconds total = together + softmax - beside;
  const double utilisation = products / gpu.matrix_rate(precision) / total;
  return total / sustained_clock(gpu, precision, calibration.power, utilisation);
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
KernelTime flash_time(const Attention& work, Precision precision, AttentionKind kernel, const Gpu& gpu,
                      const Calibration& calibration) {
  const AttentionConstants& c = calibration.attention;
  const HeadRows rows = work.backward ? key_rows(work) : query_rows(work);
  const Seconds per_score = time_per_score(work, precision, kernel, gpu, calibration);
  const Visits visited = visits(work, rows.rows, c.block_start_keys);
  const Seconds block = per_score * (gpu.sms * number(Packing::block_rows) * visited.average);

  const BytesPerSecond bandwidth = gpu.memory_bandwidth * calibration.streaming.bandwidth_efficiency;
  const Seconds traffic = attention_traffic(work, precision, gpu) / bandwidth;
  const bool alternates = kernel == AttentionKind::flash_1;  // between products and partial outputs in memory
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
