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

// By these the library writes and reads lists of them, as rows of their members in order.
static void to_json(json& row, const Participant& p) { row = {p.host, p.address}; }
static void from_json(const json& row, Participant& p) { p = {row.at(0), row.at(1)}; }
static void to_json(json& row, const StepTask& t) { row = {t.stream, t.seconds, t.exchange, t.after}; }
static void from_json(const json& row, StepTask& t) { t = {row.at(0), row.at(1), row.at(2), row.at(3)}; }
static void to_json(json& row, const Exchange::Message& m) { row = {m.source, m.destination, m.bytes}; }
static void from_json(const json& row, Exchange::Message& m) { m = {row.at(0), row.at(1), row.at(2)}; }
static void to_json(json& row, const Exchange::Phase& p) { row = {p.repeat, p.messages}; }
static void from_json(const json& row, Exchange::Phase& p) { p = {row.at(0), row.at(1)}; }
static void to_json(json& row, const Exchange& e) { row = e.phases; }
static void from_json(const json& row, Exchange& e) { row.get_to(e.phases); }
static void to_json(json& row, const Transfer& t) {
  row = {t.source, t.destination, t.first_chunk, t.chunks, t.kind == Transfer::Kind::reduce};
}
static void from_json(const json& row, Transfer& t) {
  const bool reduces = row.at(4);
  t = {row.at(0), row.at(1), row.at(2), row.at(3), reduces ? Transfer::Kind::reduce : Transfer::Kind::copy};
}

std::string to_json(const WorkerTask& task) {
  json object{{"executor", name(task.executor)},
              {"algorithm", task.algorithm},
              {"participants", task.participants},
              {"ranks", task.ranks},
              {"elements", task.elements},
              {"chunks", task.chunks},
              {"phases", task.phases},
              {"keys", task.keys},
              {"warmup", task.warmup},
              {"repetitions", task.repetitions},
              {"timeout", task.timeout},
              {"folder", task.folder}};
  if (!task.steps.empty()) {
    object["steps"] = task.steps;
    object["exchanges"] = task.exchanges;
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
    object.at("participants").get_to(task.participants);
    task.ranks = object.at("ranks");
    task.elements = object.at("elements");
    task.chunks = object.at("chunks");
    object.at("phases").get_to(task.phases);
    task.keys = object.at("keys");
    task.iterations = object.value("iterations", 1);
    task.bound = object.value("bound", 0);
    if (object.contains("steps")) {
      object.at("steps").get_to(task.steps);
      object.at("exchanges").get_to(task.exchanges);
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
