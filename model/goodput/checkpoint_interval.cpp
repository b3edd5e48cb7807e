#include "model/goodput/checkpoint_interval.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace foretrain {

Seconds young_interval(Seconds checkpoint, Seconds mtbf) {
  return Seconds(std::sqrt(2.0 * checkpoint.value() * mtbf.value()));
}

Seconds daly_interval(Seconds checkpoint, Seconds mtbf) {
  const double half = checkpoint / (2.0 * mtbf);
  if (half >= 1.0) return mtbf;
  return young_interval(checkpoint, mtbf) * (1.0 + std::sqrt(half) / 3.0 + half / 9.0) - checkpoint;
}

double daly_goodput(Seconds interval, Seconds checkpoint, Seconds recovery, Seconds mtbf) {
  return interval / (mtbf * std::exp(recovery / mtbf) * std::expm1((interval + checkpoint) / mtbf));
}

IntervalSearch search_interval(Lifetime life, int trainings, int seed) {
  const int most = static_cast<int>(std::clamp(std::ceil(life.steps), 1.0, 1e9));
  const Seconds taken = std::max({life.blocked, life.least_interval, life.unsafe});
  const int least = static_cast<int>(std::clamp(std::ceil(taken / life.step), 1.0, static_cast<double>(most)));
  std::map<int, double> known;
  const auto choice = [&](double wanted) {
    const int every =
        static_cast<int>(std::clamp(std::round(wanted), static_cast<double>(least), static_cast<double>(most)));
    const auto at = known.find(every);
    if (at != known.end()) return IntervalChoice{every, at->second};
    life.every = every;
    const double goodput = simulate_lifetime(life, trainings, seed).shares.useful;
    known.emplace(every, goodput);
    return IntervalChoice{every, goodput};
  };
  const Seconds mtbf = life.mtbf();
  IntervalSearch search;
  const IntervalChoice young = choice(young_interval(life.blocked, mtbf) / life.step);
  const IntervalChoice daly = choice(daly_interval(life.blocked, mtbf) / life.step);
  const bool waits = life.unsafe == Seconds(0.0) && life.blocked > Seconds(0.0);
  if (waits) search.young = young, search.daly = daly;
  // From a middle that is no shorter than checkpoints take, both ways by powers of two, then closer.
  const double middle = daly.every;
  search.best = young.goodput > daly.goodput ? young : daly;
  const auto consider = [&](double every) {
    const IntervalChoice tried = choice(every);
    if (tried.goodput > search.best.goodput) search.best = tried;
  };
  for (double factor = 1.0 / 32.0; factor <= 32.0; factor *= 2.0) consider(middle * factor);
  for (double factor = std::sqrt(2.0); factor > 1.05; factor = std::sqrt(factor)) {
    const int every = search.best.every;
    consider(every * factor);
    consider(every / factor);
  }
  constexpr double worth_writing = 0.001;
  const double enough = search.best.goodput - (waits ? 0.0 : worth_writing);
  for (const auto& [every, goodput] : known) {
    search.tried.push_back({every, goodput});
    if (goodput >= enough && every > search.best.every) search.best = {every, goodput};
  }
  return search;
}

}  // namespace foretrain
