// workload.tasks: a list of { id, on, run, after (= nothing) }.
//   on:   gpu<i>, gpu<i>:stream<n>, gpu<i>:h2d, gpu<i>:d2h, gpu<i>:p2p, cpu, cpu<s>, disk
//   run:  { matmul: { … }, repeat: 50 } (and the other operators), { copy: { from: gpu0, to: cpu, size: 1 GB, pinned:
//   true } },
//         { page_lock: { size: 64 MB } } (allocating page-locked host memory), { sleep: 2 ms }, synchronize
//   after: an id or a list of ids, of tasks further up
#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "model/scenario/attention_reader.hpp"
#include "model/scenario/workload_reader.hpp"

namespace foretrain {

namespace {

/// "gpu3", "cpu", "cpu1" or "disk". Throws ScenarioError for others and for those that the cluster does not have.
void check_place(const std::string& place, const Field& field, const Cluster& cluster) {
  if (place == "cpu" || place == "disk") return;
  if (const auto gpu = number_behind(place, "gpu")) {
    if (*gpu < cluster.gpus()) return;
    field.fail(fmt::format("{} does not exist", place), fmt::format("gpu0 to gpu{}", cluster.gpus() - 1));
  }
  if (const auto socket = number_behind(place, "cpu")) {
    if (*socket < cluster.node.cpu.sockets) return;
    field.fail(fmt::format("{} does not exist", place), fmt::format("cpu0 to cpu{}", cluster.node.cpu.sockets - 1));
  }
  field.fail(fmt::format("unknown place \"{}\"", place), "gpu<number>, cpu, cpu<socket> or disk");
}

std::string read_resource(const Field& field, const Cluster& cluster) {
  const std::string& text = field.text();
  const std::size_t colon = text.find(':');
  check_place(text.substr(0, colon), field, cluster);
  if (colon == std::string::npos) return text;
  const std::string queue = text.substr(colon + 1);
  const bool known = queue == "h2d" || queue == "d2h" || queue == "p2p" || number_behind(queue, "stream").has_value();
  if (!known || !text.starts_with("gpu")) {
    field.fail(fmt::format("unknown queue \"{}\"", queue), "gpu0:stream1, gpu0:h2d, gpu0:d2h or gpu0:p2p");
  }
  return text;
}

void read_copy_task(const Field& field, const Cluster& cluster, ScenarioTask& task) {
  const MappingReader copy = field.mapping({"from", "to", "size", "pinned"});
  task.kind = ScenarioTask::Kind::copy;
  task.source = copy["from"].text();
  task.destination = copy["to"].text();
  check_place(task.source, copy["from"], cluster);
  check_place(task.destination, copy["to"], cluster);
  task.size = copy["size"].quantity<Bytes>(Zero::allowed);
  task.pinned = copy.flag_or("pinned", true);
}

void read_run(const Field& field, const Cluster& cluster, ScenarioTask& task) {
  if (field.is_scalar() && field.text() == "synchronize") {
    task.kind = ScenarioTask::Kind::synchronize;
    return;
  }
  const MappingReader run = field.mapping(
      {"matmul", "convolution", "attention", "elementwise", "reduction", "copy", "page_lock", "sleep", "repeat"});
  const std::size_t works = field.node().entries.size() - (run.has("repeat") ? 1 : 0);
  if (works != 1) field.fail(fmt::format("{} pieces of work in one task", works), "one: { matmul: { … }, repeat: 50 }");
  task.repeat = run.int_or("repeat", 1, {1, 10'000'000});
  for (const YamlEntry& entry : field.node().entries) {
    if (entry.key == "repeat") continue;
    const Field work(entry.value, join_path(field.path(), entry.key));
    if (entry.key == "copy") {
      read_copy_task(work, cluster, task);
    } else if (entry.key == "page_lock") {
      task.kind = ScenarioTask::Kind::page_lock;
      task.size = work.mapping({"size"})["size"].quantity<Bytes>(Zero::allowed);
    } else if (entry.key == "sleep") {
      task.kind = ScenarioTask::Kind::sleep;
      task.duration = work.quantity<Seconds>(Zero::allowed);
    } else {
      task.kind = ScenarioTask::Kind::op;
      task.op = read_operator(entry.key, work);
      check_attention(task.op, cluster.node.gpu, work);
    }
  }
}

ScenarioTask read_task(const Field& field, const Cluster& cluster, const std::vector<ScenarioTask>& earlier) {
  const MappingReader keys = field.mapping({"id", "on", "run", "after"});
  const auto is_known = [&](const std::string& id) {
    return std::any_of(earlier.begin(), earlier.end(), [&](const ScenarioTask& other) { return other.id == id; });
  };
  ScenarioTask task;
  task.where = field.where();
  task.id = keys["id"].text();
  if (is_known(task.id)) keys.fail("id", fmt::format("a second task \"{}\"", task.id), "a name of its own");
  task.on = read_resource(keys["on"], cluster);
  read_run(keys["run"], cluster, task);
  if (const auto after = keys.find("after")) {
    for (const Field& id : after->list_or_one()) {
      if (!is_known(id.text())) {
        std::vector<std::string> ids;
        for (const ScenarioTask& other : earlier) ids.push_back(other.id);
        const auto nearest = nearest_word(id.text(), ids);
        id.fail(fmt::format("no task \"{}\" above this one", id.text()),
                nearest ? fmt::format("did you mean {}?", *nearest) : "the id of a task further up");
      }
      task.after.push_back(id.text());
    }
  }
  return task;
}

}  // namespace

TasksWorkload read_tasks(const Field& field, const Cluster& cluster) {
  TasksWorkload result;
  for (const Field& task : field.list()) result.tasks.push_back(read_task(task, cluster, result.tasks));
  if (result.tasks.empty()) field.fail("no tasks", "at least one: { id: a, on: gpu0, run: { … } }");
  return result;
}

}  // namespace foretrain
