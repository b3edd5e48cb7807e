// The pace at which a framework hands kernels over, kept by a program that could do so faster.
#pragma once

#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

/// Until this moment on now()'s clock the host is busy.
inline void busy_until(double moment) {
  while (now() < moment) {
  }
}

class LaunchPace {
 public:
  /// The launches that follow, as many as `kernels`, take the host `seconds` together at least, from now on. For no
  /// kernels the time passes here.
  void begin(double seconds, int kernels) {
    moment_ = now();
    each_ = kernels > 0 ? seconds / kernels : 0.0;
    if (kernels == 0) busy_until(moment_ + seconds);
  }
  /// To be called before each launch: returns when the host would have prepared it.
  void before_launch() {
    if (each_ <= 0.0) return;
    moment_ += each_;
    busy_until(moment_);
  }

 private:
  double moment_ = 0.0, each_ = 0.0;
};

}  // namespace foretrain::gpu
