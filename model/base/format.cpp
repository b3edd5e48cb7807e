#include "model/base/format.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>

namespace foretrain {

namespace {

struct Step {
  double factor;
  std::string_view unit;
};

/// Three significant digits without exponent: 3.57, 15.0, 160, 1234.
std::string digits(double value) {
  const double size = std::fabs(value);
  if (size < 9.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

/// Prints in the largest unit of which there is at least one (after rounding to three digits). Steps ascend.
std::string scaled(double value, std::span<const Step> steps, std::string_view zero) {
  if (!std::isfinite(value)) return std::isnan(value) ? "unknown" : "infinite";
  if (value == 0.0) return std::string(zero);
  const Step* chosen = &steps.front();
  for (const Step& step : steps) {
    if (std::fabs(value) >= 0.9995 * step.factor) chosen = &step;
  }
  const std::string number = digits(value / chosen->factor);
  return chosen->unit.empty() ? number : fmt::format("{} {}", number, chosen->unit);
}

}  // namespace

std::string format_seconds(Seconds time) {
  static constexpr Step steps[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1.0, "s"}};
  // Minutes, hours and days begin late, so that step times of some hundred seconds stay comparable.
  static constexpr Step minutes[] = {{60.0, "min"}}, hours[] = {{3600.0, "h"}}, days[] = {{86400.0, "days"}};
  const double value = std::fabs(time.value());
  std::span<const Step> chosen = steps;
  if (value >= 999.5) chosen = minutes;
  if (value >= 2 * 3600.0) chosen = hours;
  if (value >= 2 * 86400.0) chosen = days;
  return scaled(time.value(), chosen, "0 s");
}

std::string format_bytes(Bytes size) {
  static constexpr Step steps[] = {{1.0, "B"}, {1e3, "KB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}};
  return scaled(size.value(), steps, "0 B");
}

std::string format_binary_bytes(Bytes size) {
  static constexpr Step steps[] = {
      {1.0, "B"}, {1024.0, "KiB"}, {1048576.0, "MiB"}, {1073741824.0, "GiB"}, {1099511627776.0, "TiB"}};
  return scaled(size.value(), steps, "0 B");
}

std::string format_bandwidth(BytesPerSecond bandwidth) {
  static constexpr Step steps[] = {{1.0, "B/s"}, {1e3, "KB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}};
  return scaled(bandwidth.value(), steps, "0 B/s");
}

std::string format_flops(Flops work) {
  static constexpr Step steps[] = {{1.0, "FLOP"},   {1e3, "KFLOP"},  {1e6, "MFLOP"},  {1e9, "GFLOP"},
                                   {1e12, "TFLOP"}, {1e15, "PFLOP"}, {1e18, "EFLOP"}, {1e21, "ZFLOP"}};
  return scaled(work.value(), steps, "0 FLOP");
}

std::string format_rate(FlopsPerSecond rate) {
  static constexpr Step steps[] = {
      {1e6, "MFLOP/s"}, {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}, {1e18, "EFLOP/s"}};
  return scaled(rate.value(), steps, "0 FLOP/s");
}

std::string format_count(double count) {
  static constexpr Step steps[] = {{1.0, ""}, {1e3, "K"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
  if (std::fabs(count) < 1000.0 && count == std::floor(count)) return fmt::format("{:.0f}", count);
  return scaled(count, steps, "0");
}

std::string format_percent(double fraction) { return fmt::format("{:.1f} %", 100.0 * fraction); }

std::string format_chance(double chance) {
  if (chance < 0.005) return "under 1 %";
  if (chance > 0.995) return "over 99 %";
  return fmt::format("{} %", std::lround(100.0 * chance));
}

}  // namespace foretrain
