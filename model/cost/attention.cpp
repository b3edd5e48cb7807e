#include "model/cost/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/power.hpp"

namespace foretrain {
namespace {

// Compute capabilities: FlashAttention-1 runs from Turing on, FlashAttention-2 needs Ampere's asynchronous copies,
// FlashAttention-3 the warp-group instructions that only Hopper has.
constexpr double flash_1_since = 7.5, flash_2_since = 8.0, flash_3_since = 9.0, flash_3_until = 10.0;
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
  const double heads_in_flight = std::min(number(w.batch) * number(w.heads),
                                          std::max(1.0, gpu.sms / rows.blocks * (number(w.batch) * number(w.heads))));
  const Tensors size = tensors(w, precision);
  const Bytes read = w.backward ? 2.0 * size.query : 2.0 * size.key;
  const Bytes in_flight = read * (heads_in_flight / (number(w.batch) * number(w.heads)));
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
  if (work.kind == AttentionKind::flash_3 && has_warp_groups(gpu)) return AttentionKind::flash_3;
  // cuDNN has a fixed order of sums on Hopper (Transformer Engine, dot_product_attention/utils.py: filter of
  // determinism).
  const bool ordered = work.deterministic && has_tensor_memory(gpu);
  const bool own =
      work.kind == AttentionKind::flash && work.native && !ordered && (has_warp_groups(gpu) || work.cached);
  return own ? AttentionKind::flash : AttentionKind::flash_2;
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
  if (kind == AttentionKind::flash_3 && (capable < flash_3_since || capable >= flash_3_until)) {
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

}  // namespace foretrain
