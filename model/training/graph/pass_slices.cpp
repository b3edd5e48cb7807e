#include "model/training/graph/pass_slices.hpp"

#include <algorithm>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Appends what lies between the moments `from` and `to` (0 to 1) of a pass.
void append(std::vector<PassSlice>& slices, Seconds work, const PassCalls& calls, double from, double to) {
  double at = from;
  const auto append_until = [&](double end, std::span<const int> transfers, bool beside) {
    if (end <= from || end > to) return;
    slices.push_back({work * (end - at), transfers, beside});
    at = end;
  };
  double first = 0.0;  // moment after which the collectives between kernels come
  if (!calls.beside.empty()) append_until(first = calls.share_beside(), calls.beside, true);
  if (!calls.exchanges.empty()) append_until(first += calls.share_of_exchanges(), calls.exchanges, true);
  const std::size_t count = calls.between.size();
  if (!calls.behind.empty()) {
    double hiding = 0.0;
    for (const PassCalls::Behind& call : calls.behind) hiding += call.share;
    const double gap = (1.0 - first - hiding) / static_cast<double>(calls.behind.size() + count + 1);
    for (const PassCalls::Behind& call : calls.behind) {
      append_until(first += gap, {}, false);
      append_until(first += call.share, {&call.transfer, 1}, true);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    append_until(last ? 1.0 : first + (1.0 - first) * static_cast<double>(i + 1) / static_cast<double>(count),
                 {&calls.between[i], 1}, false);
  }
  if (at < to) slices.push_back({work * (to - at), {}, false});
}

void append(std::vector<PassSlice>& slices, const PassCost::Part& part) {
  const auto& [again, own, calls, backward, from, to, count] = part;
  if (!backward) return append(slices, own, calls->forward, from, to);
  const double begin = again + own > Seconds(0.0) ? again / (again + own) : 0.0;  // of the backward pass itself
  const auto share = [](double moment, double low, double high) {
    return high > low ? std::clamp((moment - low) / (high - low), 0.0, 1.0) : 0.0;
  };
  if (from < begin) append(slices, again, calls->recompute, share(from, 0.0, begin), share(to, 0.0, begin));
  if (to > begin) append(slices, own, calls->backward, share(from, begin, 1.0), share(to, begin, 1.0));
}

}  // namespace

std::vector<PassSlice> slices_of(const PassCost& pass_cost) {
  std::vector<PassSlice> slices;
  slices.reserve(16);
  for (const PassCost::Part& part : pass_cost.parts) {
    const std::size_t first = slices.size();
    append(slices, part);
    const std::size_t end = slices.size();
    slices.reserve(first + (end - first) * at_index(part.count));
    for (int i = 1; i < part.count; ++i) {
      for (std::size_t k = first; k < end; ++k) slices.push_back(slices[k]);
    }
  }
  if (slices.empty()) return slices;
  Seconds all, alone;
  for (const PassSlice& slice : slices) {
    all += slice.work;
    if (!slice.beside) alone += slice.work;
  }
  const Seconds longer = pass_cost.time.compute - all;
  const bool some_alone = alone > std::max(1e-6 * all, -longer);
  const Seconds stretched = some_alone ? alone : all;
  const double factor = stretched > Seconds(0.0) ? 1.0 + longer / stretched : 0.0;
  for (PassSlice& slice : slices) {
    if (!slice.beside || !some_alone) slice.work *= factor;
  }
  slices.push_back({pass_cost.time.host + pass_cost.time.exposed_copies, {}, false});
  return slices;
}

}  // namespace foretrain
