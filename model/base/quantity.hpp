// Physical quantities whose dimension is part of the type: a bandwidth cannot be added to a size, and a size divided by
// a bandwidth is a time. Values are held in base units (second, byte, floating-point operation); a raw double appears
// only where a library demands one, through value().
#pragma once

#include <cmath>
#include <compare>
#include <limits>

namespace foretrain {

/// A number of dimension second^S · byte^B · flop^F.
template <int S, int B, int F>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  constexpr Quantity& operator/=(double divisor) {
    value_ /= divisor;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity(a.value_ / divisor); }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;  // NOLINT(modernize-use-nullptr): false alarm
  // By itself, as GCC 12 makes branches of std::max by <=>.
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }

  static constexpr Quantity infinity() { return Quantity(std::numeric_limits<double>::infinity()); }

 private:
  double value_ = 0.0;
};

namespace detail {
// A product or quotient without dimension is a plain number.
template <int S, int B, int F>
constexpr auto make_quantity(double value) {
  if constexpr (S == 0 && B == 0 && F == 0) {
    return value;
  } else {
    return Quantity<S, B, F>(value);
  }
}
}  // namespace detail

template <int S1, int B1, int F1, int S2, int B2, int F2>
constexpr auto operator*(Quantity<S1, B1, F1> a, Quantity<S2, B2, F2> b) {
  return detail::make_quantity<S1 + S2, B1 + B2, F1 + F2>(a.value() * b.value());
}
template <int S1, int B1, int F1, int S2, int B2, int F2>
constexpr auto operator/(Quantity<S1, B1, F1> a, Quantity<S2, B2, F2> b) {
  return detail::make_quantity<S1 - S2, B1 - B2, F1 - F2>(a.value() / b.value());
}
template <int S, int B, int F>
constexpr auto operator/(double a, Quantity<S, B, F> b) {
  return detail::make_quantity<-S, -B, -F>(a / b.value());
}
template <int S, int B, int F>
constexpr bool is_finite(Quantity<S, B, F> q) {
  return std::isfinite(q.value());
}

using Seconds = Quantity<1, 0, 0>;
using Hertz = Quantity<-1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1>;
using FlopsPerByte = Quantity<0, -1, 1>;

inline namespace literals {
// SI prefixes are powers of ten (MB = 10^6 byte); KiB, MiB, GiB are powers of two.
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_ms(long double v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Seconds operator""_ns(long double v) { return Seconds(static_cast<double>(v) * 1e-9); }
constexpr Bytes operator""_B(long double v) { return Bytes(static_cast<double>(v)); }
constexpr Bytes operator""_KB(long double v) { return Bytes(static_cast<double>(v) * 1e3); }
constexpr Bytes operator""_MB(long double v) { return Bytes(static_cast<double>(v) * 1e6); }
constexpr Bytes operator""_GB(long double v) { return Bytes(static_cast<double>(v) * 1e9); }
constexpr Bytes operator""_MiB(long double v) { return Bytes(static_cast<double>(v) * 1048576.0); }
constexpr Bytes operator""_GiB(long double v) { return Bytes(static_cast<double>(v) * 1073741824.0); }
constexpr BytesPerSecond operator""_GBps(long double v) { return BytesPerSecond(static_cast<double>(v) * 1e9); }
constexpr BytesPerSecond operator""_Gbitps(long double v) { return BytesPerSecond(static_cast<double>(v) * 1e9 / 8.0); }
constexpr FlopsPerSecond operator""_TFLOPps(long double v) { return FlopsPerSecond(static_cast<double>(v) * 1e12); }
}  // namespace literals

}  // namespace foretrain
