// workload.tasks: tasks and loops over them. Keys: keys::task, keys::loop and keys::run.

#include "model/base/text.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

namespace {

using Action = HostWork::Action;

// A computer with some gigabytes of memory executes as many in a minute.
constexpr double most_repetitions = 2e7;
constexpr std::string_view one_task = "at least one: { id: a, on: gpu0, run: { kind: matmul, … } }";

/// "gpu3", "cpu", "cpu1" or "disk". Throws ScenarioError for others and for those that the cluster does not have.
void check_place(const std::string& place, const Field& field, const Cluster& cluster) {
  if (place == "cpu" || place == "disk") return;
  for (const auto& [word, count] : {std::pair("gpu", cluster.gpus()), std::pair("cpu", cluster.node.cpu.sockets)}) {
    const auto number = number_behind(place, word);
    field.fail_if(number && *number >= count, "{0} does not exist", "{1}0 to {1}{2}", place, word, count - 1);
    if (number) return;
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
  field.fail_if(!known || !text.starts_with("gpu"), "unknown queue \"{}\"",
                "gpu0:stream1, gpu0:h2d, gpu0:d2h or gpu0:p2p", queue);
  return text;
}

TaskWork read_copy_task(const MappingReader& keys, const Cluster& cluster, const std::string& /*on*/) {
  auto copy = keys.filled<CopyWork>();
  check_place(copy.from, keys["from"], cluster);
  check_place(copy.to, keys["to"], cluster);
  keys.fail_if(copy.from == copy.to, "to", "from {} to {}",
               "another place; within one memory elementwise, which reads and writes", copy.from, copy.to);
  return copy;
}

/// From a GPU to pageable memory of the host thread.
template <Action then>
TaskWork read_fetch(const MappingReader& keys, const Cluster& cluster, const std::string& on) {
  const std::string from = read_resource(keys["from"], cluster);
  keys.fail_if(!from.starts_with("gpu"), "from", "{} is no GPU", "gpu0, or one of its streams: gpu0:stream1", from);
  FetchedResult result{{from, on, Bytes(8.0), false}, {then}};
  if (then == Action::format) result.copy.size = result.then.size = keys["size"].as<Bytes>();
  return result;
}

TaskWork read_page_lock(const MappingReader& keys, const Cluster& /*cluster*/, const std::string& /*on*/) {
  return HostWork{Action::page_lock, {}, keys["size"].as<Bytes>()};
}

TaskWork read_sleep(const MappingReader& keys, const Cluster& /*cluster*/, const std::string& /*on*/) {
  return HostWork{Action::sleep, keys["time"].as<Seconds>()};
}

template <bool backward>
TaskWork read_call(const MappingReader& keys, const Cluster& cluster, const std::string& /*on*/) {
  ModelCall call;
  call.model = read_model(keys["model"]);
  call.batch = keys.value_or("batch", call.batch);
  call.precision = keys.value_or("precision", call.precision);
  const bool flash = cluster.node.gpu.compute_capability >= 7.5;  // as for workload.train
  call.attention = keys.value_or("attention", flash ? AttentionKind::flash : AttentionKind::standard);
  check_attention(call.model, call.attention, call.precision, cluster.node.gpu, keys.field());
  check_precision(call.precision, call.model, cluster.node.gpu, keys.find("precision").value_or(keys.field()));
  call.backward = backward;
  if (const auto execution = keys.find("execution")) call.execution = execution->as<ExecutionMode>();
  return call;
}

/// Work that `run:` may name besides operators.
struct TaskRow {
  std::string_view word;
  TaskWork (*read)(const MappingReader& keys, const Cluster& cluster, const std::string& on);
};
constexpr TaskRow task_rows[] = {{"copy", read_copy_task},
                                 {"page_lock", read_page_lock},
                                 {"sleep", read_sleep},
                                 {"forward", read_call<false>},
                                 {"forward_backward", read_call<true>},
                                 {"item", read_fetch<Action::wait>},
                                 {"print", read_fetch<Action::format>}};

void read_run(const Field& field, const Cluster& cluster, ScenarioTask& task) {
  if (field.is_scalar() && field.text() == "synchronize") {
    task.work = HostWork{Action::synchronize};
    return;
  }
  const StatedWork work = read_stated_work(field);
  task.repeat = work.repeat;
  const auto* const row = std::ranges::find(task_rows, work.name().text(), &TaskRow::word);
  if (row == std::end(task_rows)) {
    task.work = read_operator(work, cluster.node.gpu);
  } else {
    task.work = row->read(work.shape().mapping(keys::variant_of(keys::run, row->word)), cluster, task.on);
  }
}

/// Reads the launching thread of a task, and checks that its work fits its resource.
void read_launching(const MappingReader& keys, const Cluster& cluster, ScenarioTask& task) {
  keys.fail_if(std::holds_alternative<FetchedResult>(task.work) && !task.on.starts_with("cpu"), "on",
               "{} cannot wait on the host", "the host thread that wants the result: on: cpu", task.on);
  const bool calls = std::holds_alternative<ModelCall>(task.work);
  const bool computes = calls || std::holds_alternative<Operator>(task.work);
  keys.fail_if(calls && !task.on.starts_with("gpu"), "on", "a model is called on a GPU, not on {}", "on: gpu0",
               task.on);
  const std::size_t colon = task.on.find(':');  // behind it copy engines, which execute no kernels, or streams
  keys.fail_if(computes && colon != std::string::npos && !task.on.substr(colon + 1).starts_with("stream"), "on",
               "{0} is a queue of copies", "{1}, or one of its streams: {1}:stream1", task.on,
               task.on.substr(0, colon));
  if (calls) task.enqueued_by = "cpu";
  const auto thread = keys.find("enqueued_by");
  if (!thread) return;
  thread->fail_if(!task.on.starts_with("gpu") || (!computes && !std::holds_alternative<CopyWork>(task.work)),
                  "only operators, copies and calls of models on a GPU are launched by a host thread",
                  "no enqueued_by");
  task.enqueued_by = thread->text();
  check_place(task.enqueued_by, *thread, cluster);
  thread->fail_if(!task.enqueued_by.starts_with("cpu"), "{} is no host", "cpu or cpu0", task.enqueued_by);
}

class TasksReader {
 public:
  explicit TasksReader(const Cluster& cluster) : cluster_(cluster) {}

  void read(const Field& list, int loop) {
    for (const Field& entry : list.list()) {
      if (entry.is_mapping() && entry.node().find("loop") != nullptr) {
        read_loop(entry, loop);
      } else {
        read_task(entry, loop);
      }
    }
  }

  TasksWorkload take() && { return std::move(result_); }

 private:
  void read_loop(const Field& field, int loop) {
    if (loop >= 0) field.fail("a loop inside a loop", "one loop after the other");
    const MappingReader keys = field.mapping(keys::loop);
    result_.loops.push_back(keys["loop"].as<int>());
    const std::size_t before = result_.tasks.size();
    read(keys["tasks"], static_cast<int>(result_.loops.size()) - 1);
    keys.fail_if(result_.tasks.size() == before, "tasks", "no tasks", one_task);
  }

  void read_task(const Field& field, int loop) {
    const MappingReader keys = field.mapping({"task", keys::task.keys});  // without those of a loop
    ScenarioTask task;
    task.where = field.where();
    task.loop = loop;
    task.id = keys["id"].text();
    if (ids_.contains(task.id)) keys.fail("id", fmt::format("a second task \"{}\"", task.id), "a name of its own");
    task.on = read_resource(keys["on"], cluster_);
    read_run(keys["run"], cluster_, task);
    read_launching(keys, cluster_, task);
    for (const Field& id : keys.list("after")) {
      if (!ids_.contains(id.text())) {
        const std::vector<std::string> known(ids_.begin(), ids_.end());
        id.fail(fmt::format("no task \"{}\" above this one", id.text()),
                did_you_mean(nearest_word(id.text(), known), "the id of a task further up"));
      }
      task.after.push_back(id.text());
    }
    repetitions_ += static_cast<double>(task.repeat) *
                    (loop < 0 ? 1.0 : static_cast<double>(result_.loops[static_cast<std::size_t>(loop)]));
    keys.fail_if(repetitions_ > most_repetitions, "run", "{0:.0f} repetitions in all", "at most {1:.0f}", repetitions_,
                 most_repetitions);
    ids_.insert(task.id);
    result_.tasks.push_back(std::move(task));
  }

  const Cluster& cluster_;
  TasksWorkload result_;
  std::set<std::string> ids_;
  double repetitions_ = 0.0;
};

}  // namespace

TasksWorkload read_tasks(const Field& field, const Cluster& cluster) {
  TasksReader reader(cluster);
  reader.read(field, -1);
  TasksWorkload result = std::move(reader).take();
  field.fail_if(result.tasks.empty(), "no tasks", one_task);
  return result;
}

}  // namespace foretrain
