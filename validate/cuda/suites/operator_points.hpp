// Points of measurements of single operators: a design is a list of them. Without CUDA.
#pragma once

#include <string>
#include <vector>

#include "validate/cuda/math/operator_spec.hpp"

namespace foretrain::gpu {

struct OperatorPoint {
  OperatorSpec spec;
  std::string family;      ///< which part of the design it belongs to, for reading residuals by group
  bool quick = false;      ///< measured with --quick as well
  bool sustained = false;  ///< for seconds, until clocks are those that the board's power allows for ever

  [[nodiscard]] std::string name() const;  ///< unique in its design
};

/// Whether a point is kept from the fit, to test it: about a quarter of all, decided by its name alone (FNV-1a), so
/// that it does not change when a design grows.
bool held_out(const std::string& name);

/// A design under construction: points in their order, each once.
class PointList {
 public:
  /// A point that is there already becomes quick if this one is, and keeps its family.
  void add(OperatorSpec spec, const std::string& family, bool quick = false, bool sustained = false);
  /// Quick points first, as they were added. Then the rest in an order of chance that is always the same (the hashes of
  /// their names), so that a run whose time does not do for all has measured something of everything.
  [[nodiscard]] std::vector<OperatorPoint> finish() const;

 private:
  std::vector<OperatorPoint> points_;
  std::map<std::string, std::size_t> places_;
};

/// A sequence of numbers that is the same everywhere (SplitMix64).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  /// Uniform in [0, 1).
  double uniform();
  /// Between the bounds, uniform in its logarithm, and a multiple of `unit`.
  std::int64_t logarithmic(std::int64_t least, std::int64_t most, std::int64_t unit);

 private:
  std::uint64_t state_;
};

// The designs, each in a file of its own (suites/NAME_points.cpp). Every point's fields are keys that a scenario's
// `workload.operator` takes.
#define OPERATOR_SUITE(name, ...) std::vector<OperatorPoint> name##_points();
#include "validate/cuda/core/suites.def"

}  // namespace foretrain::gpu
