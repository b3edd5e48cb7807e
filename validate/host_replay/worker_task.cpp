#include "validate/host_replay/worker_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

void check_step(const WorkerTask& task, const std::vector<StepTask>& tasks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const StepTask& t = tasks[i];
    const bool earlier = std::ranges::all_of(t.after, [&](int n) { return n >= 0 && std::cmp_less(n, i); });
    if (!earlier || !(t.seconds >= 0.0) || t.exchange < -1 ||
        std::cmp_greater_equal(t.exchange, task.exchanges.size())) {
      throw std::runtime_error("a task of a step that waits for a later one, or an exchange that does not exist");
    }
  }
}

void check_exchange(const Exchange& exchange, int participants) {
  for (const Exchange::Phase& phase : exchange.phases) {
    for (const Exchange::Message& m : phase.messages) {
      const bool known = std::min(m.source, m.destination) >= 0 && std::max(m.source, m.destination) < participants;
      if (!known || m.source == m.destination || m.bytes < 1) {
        throw std::runtime_error("a message between participants that do not exist, or of no bytes");
      }
    }
  }
}

void check(const WorkerTask& task) {
  const int participants = static_cast<int>(task.participants.size());
  if (task.ranks < 1 || task.ranks > participants || task.elements < 0 || task.chunks < 1 || task.keys < 1 ||
      task.iterations < 1 || task.bound < 0 || task.warmup < 0 || task.repetitions < 1 || !(task.timeout > 0.0)) {
    throw std::runtime_error("a task with impossible numbers");
  }
  if (!task.steps.empty() && std::cmp_not_equal(task.steps.size(), task.ranks)) {
    throw std::runtime_error("steps of other ranks");
  }
  for (const std::vector<StepTask>& tasks : task.steps) check_step(task, tasks);
  for (const Exchange& exchange : task.exchanges) check_exchange(exchange, participants);
  for (const Phase& phase : task.phases) {
    for (const Transfer& t : phase) {
      const bool known = std::min(t.source, t.destination) >= 0 && std::max(t.source, t.destination) < participants;
      if (!known || t.source == t.destination || t.first_chunk < 0 || t.chunks < 0 ||
          t.first_chunk + t.chunks > task.chunks) {
        throw std::runtime_error("a transfer between participants, or of chunks, that do not exist");
      }
    }
  }
}

}  // namespace

HostExecutor parse_executor(const std::string& word) {
  const auto executor = value_of<HostExecutor>(word);
  if (!executor) {
    const auto& words = names_of<HostExecutor>;
    throw UsageError(fmt::format("there is no executor {}; write {}", word, or_list({words.begin(), words.end()})));
  }
  return *executor;
}

namespace {

json steps_json(const std::vector<std::vector<StepTask>>& steps) {
  json ranks = json::array();
  for (const std::vector<StepTask>& tasks : steps) {
    json list = json::array();
    for (const StepTask& t : tasks) list.push_back({t.stream, t.seconds, t.exchange, t.after});
    ranks.push_back(std::move(list));
  }
  return ranks;
}

std::vector<std::vector<StepTask>> steps_from(const json& ranks) {
  std::vector<std::vector<StepTask>> steps;
  for (const json& list : ranks) {
    std::vector<StepTask>& tasks = steps.emplace_back();
    for (const json& t : list) tasks.push_back({t.at(0), t.at(1), t.at(2), t.at(3)});
  }
  return steps;
}

json exchanges_json(const std::vector<Exchange>& exchanges) {
  json list = json::array();
  for (const Exchange& exchange : exchanges) {
    json phases = json::array();
    for (const Exchange::Phase& phase : exchange.phases) {
      json messages = json::array();
      for (const Exchange::Message& m : phase.messages) messages.push_back({m.source, m.destination, m.bytes});
      phases.push_back({phase.repeat, std::move(messages)});
    }
    list.push_back(std::move(phases));
  }
  return list;
}

std::vector<Exchange> exchanges_from(const json& list) {
  std::vector<Exchange> exchanges;
  for (const json& phases : list) {
    Exchange& exchange = exchanges.emplace_back();
    for (const json& phase : phases) {
      Exchange::Phase& own = exchange.phases.emplace_back();
      own.repeat = phase.at(0);
      for (const json& m : phase.at(1)) own.messages.push_back({m.at(0), m.at(1), m.at(2)});
    }
  }
  return exchanges;
}

}  // namespace

std::string to_json(const WorkerTask& task) {
  json participants = json::array();
  for (const Participant& p : task.participants) participants.push_back({p.host, p.address});
  json phases = json::array();
  for (const Phase& phase : task.phases) {
    json transfers = json::array();
    for (const Transfer& t : phase) {
      transfers.push_back({t.source, t.destination, t.first_chunk, t.chunks, t.kind == Transfer::Kind::reduce});
    }
    phases.push_back(std::move(transfers));
  }
  json object{{"executor", name(task.executor)},
              {"algorithm", task.algorithm},
              {"participants", participants},
              {"ranks", task.ranks},
              {"elements", task.elements},
              {"chunks", task.chunks},
              {"phases", phases},
              {"keys", task.keys},
              {"warmup", task.warmup},
              {"repetitions", task.repetitions},
              {"timeout", task.timeout},
              {"folder", task.folder}};
  if (!task.steps.empty()) {
    object["steps"] = steps_json(task.steps);
    object["exchanges"] = exchanges_json(task.exchanges);
  }
  if (task.iterations > 1) {
    object["iterations"] = task.iterations;
    object["bound"] = task.bound;
  }
  return object.dump();
}

WorkerTask task_from_json(const std::string& text) {
  WorkerTask task;
  try {
    const json object = json::parse(text);
    task.executor = parse_executor(object.at("executor"));
    task.algorithm = object.at("algorithm");
    for (const json& p : object.at("participants")) task.participants.push_back({p.at(0), p.at(1)});
    task.ranks = object.at("ranks");
    task.elements = object.at("elements");
    task.chunks = object.at("chunks");
    for (const json& transfers : object.at("phases")) {
      Phase phase;
      for (const json& t : transfers) {
        phase.push_back(
            {t.at(0), t.at(1), t.at(2), t.at(3), t.at(4).get<bool>() ? Transfer::Kind::reduce : Transfer::Kind::copy});
      }
      task.phases.push_back(std::move(phase));
    }
    task.keys = object.at("keys");
    task.iterations = object.value("iterations", 1);
    task.bound = object.value("bound", 0);
    if (object.contains("steps")) {
      task.steps = steps_from(object["steps"]);
      task.exchanges = exchanges_from(object.at("exchanges"));
    }
    task.warmup = object.at("warmup");
    task.repetitions = object.at("repetitions");
    task.timeout = object.at("timeout");
    task.folder = object.at("folder");
  } catch (const json::exception& error) {
    throw std::runtime_error(fmt::format("no task for a worker: {}", error.what()));
  }
  check(task);
  return task;
}

ValueRange values_of(const Transfer& transfer, std::int64_t elements, int chunks) {
  // Chunks of whole values: chunk_range_size counts anything.
  const auto size = number(elements);
  const auto begin = [&](int chunk) {
    return static_cast<std::int64_t>(chunk_range_size(Bytes(size), chunks, 0, chunk).value());
  };
  const std::int64_t first = begin(transfer.first_chunk);
  return {first, begin(transfer.first_chunk + transfer.chunks) - first};
}

}  // namespace foretrain
