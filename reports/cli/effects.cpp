#include "reports/cli/effects.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "reports/cli/workers.hpp"
#include "sim/simulate.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

Seconds estimated_step(const Scenario& scenario) {
  return predict(scenario, Fidelity::estimate, Detail::numbers).time();
}

std::string effects_text(Seconds unchanged, const std::vector<UncertainResource>& unknown) {
  std::string text;
  for (const UncertainResource& one : unknown) {
    if (!one.moves) {
      text += "0 0 ";
      continue;
    }
    text += fmt::format("{} {} ", std::log(estimated_step(one.faster) / unchanged),
                        std::log(estimated_step(one.slower) / unchanged));
  }
  return text;
}

std::vector<double> numbers_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number = 0.0; words >> number;) numbers.push_back(number);
  return numbers;
}

std::vector<Effect> effects_from(const std::vector<double>& numbers) {
  std::vector<Effect> effects;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) effects.push_back({numbers[i], numbers[i + 1]});
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
