#include "validate/cuda/suites/operator_points.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/hash.hpp"

namespace foretrain::gpu {

namespace {

/// The upper half of FNV-1a is the better mixed.
std::uint64_t hash_of(const std::string& name) { return fnv_1a(name) >> 32; }

}  // namespace

bool held_out(const std::string& name) { return hash_of(name) % 4 == 0; }

std::string OperatorPoint::name() const { return name_of(spec) + (sustained ? " sustained" : ""); }

void PointList::add(OperatorSpec spec, const std::string& family, bool quick, bool sustained) {
  OperatorPoint point{std::move(spec), family, quick, sustained};
  const auto [place, fresh] = places_.try_emplace(point.name(), points_.size());
  if (fresh) {
    points_.push_back(std::move(point));
  } else if (quick) {
    points_[place->second].quick = true;
  }
}

std::vector<OperatorPoint> PointList::finish() const {
  std::vector<OperatorPoint> points = points_;
  const auto rest = std::stable_partition(points.begin(), points.end(), [](const auto& point) { return point.quick; });
  std::ranges::sort(rest, points.end(), {}, [](const OperatorPoint& point) { return hash_of(point.name()); });
  return points;
}

double Draw::uniform() { return static_cast<double>(split_mix(state_) >> 11) * 0x1p-53; }

std::int64_t Draw::logarithmic(std::int64_t least, std::int64_t most, std::int64_t unit) {
  const auto low = static_cast<double>(least), high = static_cast<double>(most), step = static_cast<double>(unit);
  const double value = low * std::exp2(uniform() * std::log2(high / low));
  return std::clamp<std::int64_t>(std::llround(value / step) * unit, (least + unit - 1) / unit * unit,
                                  most / unit * unit);
}

}  // namespace foretrain::gpu
