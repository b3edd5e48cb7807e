#include "model/workload/attention.hpp"

#include <algorithm>

namespace foretrain {
namespace {

// min(1, w) + min(2, w) + … + min(n, w)
double sum_up_to(double n, double w) { return n <= w ? 0.5 * n * (n + 1.0) : 0.5 * w * (w + 1.0) + (n - w) * w; }

}  // namespace

bool Attention::masked() const {
  const bool padded = packing && packing->tokens != packing->sequences * packing->longest;
  const std::int64_t longest = packing ? packing->longest : key_length;
  return causal || density < 1.0 || (window > 0 && window < longest) || padded;
}

// Two products per score, each 2·head_dim; the backward pass has four (dV, dP, dQ, dK).
Flops Attention::operations() const { return Flops((backward ? 8.0 : 4.0) * scores(*this) * number(head_dim)); }

// Query i stands at position key_length - queries + i among the keys. It sees itself and what stands before it, and
// without a causal mask what stands behind it as well.
double attended_pairs(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  const bool limited = window > 0 && window < keys;
  if (!causal && !limited) return number(queries) * number(keys);
  const double width = number(limited ? window : keys), last = number(keys);
  const double skipped = number(std::max<std::int64_t>(keys - queries, 0));
  const double before = sum_up_to(last, width) - sum_up_to(skipped, width);
  return causal ? before : before + sum_up_to(last - skipped - 1.0, width - 1.0);
}

Packing pack(std::span<const std::int64_t> lengths, bool causal, std::int64_t window) {
  Packing packing;
  for (const std::int64_t length : lengths) {
    ++packing.sequences;
    packing.tokens += length;
    packing.longest = std::max(packing.longest, length);
    packing.blocks += (length + Packing::block_rows - 1) / Packing::block_rows;
    packing.pairs += attended_pairs(length, length, causal, window);
  }
  return packing;
}

double scores(const Attention& w) {
  const double pairs = w.packing ? w.packing->pairs : attended_pairs(w.query_length, w.key_length, w.causal, w.window);
  return number(w.batch) * number(w.heads) * pairs * w.density;
}

}  // namespace foretrain
