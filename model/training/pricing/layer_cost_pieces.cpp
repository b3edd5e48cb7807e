// Passes of layers in pieces: kernels with what runs beside them, and what they wait for.
#include <algorithm>
#include <span>

#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

namespace {

/// Appends what lies between the moments `from` and `to` (0 to 1) of a pass.
void append_pieces(std::vector<Piece>& pieces, Seconds work, const LayerCalls::Calls& calls, double from, double to) {
  double at = from;
  const auto append = [&](double end, std::span<const int> transfers, bool beside) {
    if (end <= from || end > to) return;
    pieces.push_back({work * (end - at), {transfers.begin(), transfers.end()}, beside});
    at = end;
  };
  double first = 0.0;  // moment after which the collectives between kernels come
  if (!calls.beside.empty()) append(first = calls.share_beside(), calls.beside, true);
  const std::size_t count = calls.between.size();
  if (!calls.behind.empty()) {
    double hiding = 0.0;
    for (const LayerCalls::Behind& call : calls.behind) hiding += call.share;
    const double gap = (1.0 - first - hiding) / static_cast<double>(calls.behind.size() + count + 1);
    for (const LayerCalls::Behind& call : calls.behind) {
      append(first += gap, {}, false);
      append(first += call.share, {&call.transfer, 1}, true);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    append(last ? 1.0 : first + (1.0 - first) * static_cast<double>(i + 1) / static_cast<double>(count),
           {&calls.between[i], 1}, false);
  }
  if (at < to) pieces.push_back({work * (to - at), {}, false});
}

}  // namespace

void append_forward(std::vector<Piece>& pieces, const PricedLayer& layer, double from, double to) {
  append_pieces(pieces, layer.cost.forward.kernels, layer.calls->forward, from, to);
}

void append_backward(std::vector<Piece>& pieces, const PricedLayer& layer, double from, double to) {
  const Seconds again = layer.cost.recompute.kernels, own = layer.cost.backward.kernels;
  const double begin = again + own > Seconds(0.0) ? again / (again + own) : 0.0;  // of the backward pass itself
  const auto part = [](double moment, double low, double high) {
    return high > low ? std::clamp((moment - low) / (high - low), 0.0, 1.0) : 0.0;
  };
  if (from < begin) {
    append_pieces(pieces, again, layer.calls->recompute, part(from, 0.0, begin), part(to, 0.0, begin));
  }
  if (to > begin) append_pieces(pieces, own, layer.calls->backward, part(from, begin, 1.0), part(to, begin, 1.0));
}

Stretch paired(const PassWork& forward, const PassWork& backward) {
  const auto slowed = [](Seconds kernels, const PassWork& other) {
    return kernels + std::min(kernels, other.collectives) * other.slowdown;
  };
  const Seconds forward_kernels = slowed(forward.kernels, backward);
  const Seconds backward_kernels = slowed(backward.kernels, forward);
  const Seconds exposed = std::max(forward.collectives - backward_kernels, Seconds(0.0)) +
                          std::max(backward.collectives - forward_kernels, Seconds(0.0));
  PassCost both{{}, forward_kernels + backward_kernels, forward.dispatch + backward.dispatch};
  both.exposed = exposed;
  both.hidden = forward.collectives + backward.collectives - exposed;
  Stretch pair{both.segment()};
  pair.pieces = {{backward_kernels, forward.transfers, true}, {forward_kernels, backward.transfers, true}};
  fit_pieces(pair);
  return pair;
}

void fit_pieces(Stretch& stretch) {
  if (stretch.pieces.empty()) return;
  Seconds all, alone;
  for (const Piece& piece : stretch.pieces) {
    all += piece.work;
    if (!piece.beside) alone += piece.work;
  }
  const Seconds longer = stretch.time.compute - all;
  const bool some_alone = alone > std::max(1e-6 * all, -longer);
  const Seconds stretched = some_alone ? alone : all;
  const double factor = stretched > Seconds(0.0) ? 1.0 + longer / stretched : 0.0;
  for (Piece& piece : stretch.pieces) {
    if (!piece.beside || !some_alone) piece.work *= factor;
  }
  stretch.pieces.push_back({stretch.time.host + stretch.time.exposed_copies, {}, false});
}

}  // namespace foretrain
