#include "validate/host_calibration/pointer_chase.hpp"

#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

/// 64 MiB of lines: no cache keeps more from one pass of a chase to the next.
constexpr std::size_t most_touched = std::size_t{1} << 20U;

}  // namespace

PointerChase::PointerChase(std::size_t working_set, std::size_t stride, PageKind pages)
    : memory_(working_set, pages), places_(working_set / stride), stride_(stride) {
  std::vector<std::uint32_t> order(places_);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 random(12345);
  for (std::size_t i = places_ - 1; i > 0; --i) {
    std::swap(order[i], order[std::uniform_int_distribution<std::size_t>(0, i - 1)(random)]);
  }
  // Sattolo's permutation is one cycle: order[i] follows i.
  for (std::size_t i = 0; i < places_; ++i) {
    *reinterpret_cast<void**>(memory_.data() + i * stride) = memory_.data() + order[i] * stride;
  }
  at_ = memory_.data();
  if (places_ <= most_touched) order_ = std::move(order);
}

void PointerChase::touch() const {
  if (order_.empty()) return;
  std::size_t place = static_cast<std::size_t>(static_cast<const std::byte*>(at_) - memory_.data()) / stride_;
  for (std::size_t i = 0; i < places_; ++i) {
    __builtin_prefetch(memory_.data() + place * stride_);
    place = order_[place];
  }
}

double PointerChase::chase(std::int64_t loads) {
  constexpr int unrolled = 16;
  const double start = thread_time();
  void* at = at_;
  for (std::int64_t i = 0; i < loads; i += unrolled) {
    for (int j = 0; j < unrolled; ++j) at = *static_cast<void* volatile*>(at);
  }
  keep(at);
  at_ = at;
  const std::int64_t done = (loads + unrolled - 1) / unrolled * unrolled;
  return (thread_time() - start) / number(done);
}

}  // namespace foretrain
