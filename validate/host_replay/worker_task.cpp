#include "validate/host_replay/worker_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

void check(const WorkerTask& task) {
  const int participants = static_cast<int>(task.participants.size());
  if (task.ranks < 1 || task.ranks > participants || task.elements < 0 || task.chunks < 1 || task.keys < 1 ||
      task.warmup < 0 || task.repetitions < 1 || !(task.timeout > 0.0)) {
    throw std::runtime_error("a task with impossible numbers");
  }
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
  return json{{"executor", name(task.executor)},
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
              {"folder", task.folder}}
      .dump();
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
