#include "reports/cli/effects.hpp"

#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "reports/cli/workers.hpp"
#include "sim/simulate.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

Seconds estimated_step(const Scenario& scenario) {
  return predict(scenario, Fidelity::estimate, Detail::numbers).time();
}

std::vector<Effect> effects_of(Seconds unchanged, const std::vector<UncertainResource>& unknown) {
  std::vector<Effect> effects;
  for (const UncertainResource& one : unknown) {
    Effect& effect = effects.emplace_back();
    if (!one.faster) continue;
    effect.better = std::log(estimated_step(*one.faster) / unchanged);
    effect.worse = std::log(estimated_step(*one.slower) / unchanged);
  }
  return effects;
}

namespace {

std::vector<std::string> answers_of_tasks(std::size_t count, int workers, const TextTask& task) {
  std::vector<std::string> answers(count);
  std::optional<std::string> failure;
  const auto take = [&](std::size_t index, Reply reply) {
    if (reply.kind != Reply::Kind::answer)
      failure = std::move(reply.text);
    else
      answers[index] = std::move(reply.text);
  };
  answer_all(count, workers, task, take, [&] { return failure.has_value() || interrupted(); });
  if (failure && !interrupted()) throw std::runtime_error(*failure);
  return answers;
}

}  // namespace

RunTasks tasks_shared_out(int workers) {
  return [workers](std::size_t count, const TextTask& task) { return answers_of_tasks(count, workers, task); };
}

}  // namespace foretrain
