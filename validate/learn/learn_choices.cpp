#include "validate/learn/learn.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/memory/memory.hpp"

namespace foretrain {

namespace {

constexpr double tie = 1.03;  ///< times to be expected that are as good as each other

struct Choice {
  double measured = 0.0, predicted = 0.0;  ///< times
  double filled = 0.0;                     ///< share of a GPU's memory, as predicted
};

const Choice& chosen(const std::vector<Choice>& choices, double memory_spread) {
  const auto expected = [&](const Choice& one) {
    return one.predicted * expected_slowdown(chance_of_shortage(one.filled, memory_spread));
  };
  const double least = expected(*std::ranges::min_element(choices, {}, expected));
  const Choice* best = nullptr;
  for (const Choice& one : choices) {
    if (expected(one) <= tie * least && (best == nullptr || one.filled < best->filled)) best = &one;
  }
  return *best;
}

}  // namespace

LearnedErrors learned_errors(const std::vector<LearnedRun>& runs, const std::vector<RunResidual>& left,
                             double memory_spread) {
  std::vector<double> steps, memory, regrets;
  std::map<int, std::vector<Choice>> decisions;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (left[run].memory) memory.push_back(std::abs(std::expm1(*left[run].memory)));
    if (!left[run].time) continue;
    steps.push_back(std::abs(std::expm1(*left[run].time)));
    if (runs[run].decision < 0) continue;
    decisions[runs[run].decision].push_back(
        {runs[run].time, runs[run].time * std::exp(*left[run].time), left[run].filled});
  }
  double pairs = 0.0, right = 0.0;
  for (const auto& [decision, choices] : decisions) {
    if (choices.size() < 2) continue;
    const double best = std::ranges::min(choices, {}, &Choice::measured).measured;
    regrets.push_back(chosen(choices, memory_spread).measured / best - 1.0);
    for (const Choice& slower : choices) {
      for (const Choice& faster : choices) {
        if (slower.measured < (1.0 + measured_apart) * faster.measured) continue;
        pairs += 1.0;
        right += slower.predicted > faster.predicted ? 1.0 : 0.0;
      }
    }
  }
  LearnedErrors errors{mean(steps), median(steps)};
  if (!memory.empty()) errors.memory = mean(memory);
  if (pairs > 0.0) errors.pairs = right / pairs;
  if (!regrets.empty()) errors.regret = mean(regrets);
  return errors;
}

bool clearly_less(const std::vector<double>& errors, const std::vector<double>& others) {
  const auto count = static_cast<double>(errors.size());
  std::vector<double> gains, squares;
  for (std::size_t i = 0; i < errors.size(); ++i) gains.push_back(others[i] - errors[i]);
  const double gain = mean(gains);
  for (const double one : gains) squares.push_back((one - gain) * (one - gain));
  return count > 1.0 && gain > std::sqrt(mean(squares) / (count - 1.0));
}

double nine_of_ten(std::vector<double> distances) {
  if (distances.empty()) return 0.0;
  std::ranges::sort(distances);
  const auto rank = static_cast<std::size_t>(std::ceil(0.9 * (number(distances.size()) + 1.0)));
  return distances[std::min(rank, distances.size()) - 1];
}

}  // namespace foretrain
