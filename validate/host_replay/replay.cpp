#include "validate/host_replay/replay.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/number.hpp"
#include "model/base/process.hpp"
#include "model/base/statistics.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

using nlohmann::json;

// By these the library writes and reads lists of them.
static void to_json(json& value, const TaskSpan& span) { value = {span.start, span.end}; }
static void from_json(const json& value, TaskSpan& span) { span = {value.at(0), value.at(1)}; }

namespace {

/// Other programs on the machine shall not be part of the measurement.
constexpr int before_others = -20;
constexpr int background_port = 30000;

/// A copy of this process that does `work` on a host, or tells why it cannot.
Process on_host(const HostLab& lab, int host, const std::function<void()>& work,
                const std::function<void(const char*)>& fail = {}) {
  return Process::copy([&] {
    setpgid(0, 0);
    setpriority(PRIO_PROCESS, 0, before_others);
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: sleeping tasks end in time
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    try {
      if (!enter_namespace(lab.name(host))) throw_system_error("setns");
      work();
    } catch (const std::exception& error) {
      if (!fail) throw;
      fail(error.what());
    }
  });
}

std::string times_file(const std::string& folder, int process) { return fmt::format("{}/{}.json", folder, process); }

std::vector<Process> start(const HostLab& lab, const WorkerTask& task, const std::string& folder,
                           ProcessBarrier& barrier) {
  std::vector<Process> processes;
  for (int i = 0; i < task.processes(); ++i) {
    const auto run = [&task, &folder, &barrier, i] {
      const WorkerTimes times = run_exchanges(task, i, barrier);
      write_file(times_file(folder, i), json{times.seconds, times.busy, times.spans}.dump());
    };
    processes.push_back(on_host(lab, task.hosts[at_index(i)], run, [&](const char* why) { barrier.fail(i, why); }));
  }
  return processes;
}

std::string label_of(const WorkerTask& task, int process) {
  const bool rank = process < task.ranks;
  return fmt::format("{} {} (host {})", rank ? "rank" : "server", rank ? process : process - task.ranks,
                     task.hosts[at_index(process)]);
}

/// Throws ReplayError where a process has ended badly; others then end because it did.
void check_ends(const WorkerTask& task, const ProcessBarrier& barrier,
                const std::vector<std::optional<ProcessEnd>>& ends) {
  const auto crashed = std::ranges::find_if(ends, [](const auto& end) { return end && end->signal != 0; });
  const auto failed = std::ranges::find_if(ends, [](const auto& end) { return end && !end->well(); });
  if (failed == ends.end()) return;
  const auto reported = barrier.failure();
  if (crashed == ends.end() && reported) {
    throw ReplayError(fmt::format("{}: {}", label_of(task, reported->first), reported->second));
  }
  const auto end = crashed == ends.end() ? failed : crashed;
  throw ReplayError(fmt::format("{} {}", label_of(task, static_cast<int>(end - ends.begin())), (*end)->text()));
}

void wait_for(const WorkerTask& task, std::vector<Process> running, const ProcessBarrier& barrier) {
  const double deadline = now() + task.timeout;
  std::vector<std::optional<ProcessEnd>> ends(running.size());
  while (!std::ranges::all_of(ends, [](const auto& end) { return end.has_value(); })) {
    throw_if_interrupted();
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (!ends[i]) ends[i] = running[i].ended();
    }
    check_ends(task, barrier, ends);
    if (now() > deadline) {
      std::string late;
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (!ends[i]) late += (late.empty() ? "" : ", ") + label_of(task, static_cast<int>(i));
      }
      throw ReplayError(fmt::format("not finished after {:.0f} s: {}", task.timeout, late));
    }
    usleep(2000);
  }
}

/// Sends over one connection until it is ended, no faster than `rate` where that is not zero.
void send_background(int host, int port, BytesPerSecond rate) {
  const Descriptor end = new_socket();
  const sockaddr_in peer = socket_address(host, port);
  const auto paced = static_cast<std::uint32_t>(std::min(rate.value(), 4294967295.0));
  if (paced > 0) setsockopt(end.number(), SOL_SOCKET, SO_MAX_PACING_RATE, &paced, sizeof paced);
  while (connect(end.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) usleep(10'000);
  const std::vector<char> data(1 << 16);
  while (send_bytes(end, data.data(), data.size(), 0, host) > 0) continue;
}

void receive_background(int host, int port) {
  const Descriptor waiting = listen_at(host, port, 1);
  const Descriptor end(accept4(waiting.number(), nullptr, nullptr, SOCK_CLOEXEC));
  std::vector<char> data(1 << 16);
  while (receive_bytes(end, data.data(), data.size(), 0, host) > 0) continue;
}

std::vector<Process> start_background(const HostLab& lab, const std::vector<BackgroundTraffic>& background) {
  std::vector<Process> processes;
  int port = background_port;
  for (const BackgroundTraffic& t : background) {
    ++port;
    processes.push_back(on_host(lab, t.to, [&t, port] { receive_background(t.to, port); }));
    processes.push_back(on_host(lab, t.from, [&t, port] { send_background(t.to, port, t.rate); }));
  }
  if (!background.empty()) usleep(300'000);  // until the traffic is steady
  return processes;
}

}  // namespace

std::vector<std::vector<TaskSpan>> medians_of(const std::vector<WorkerTimes>& times) {
  std::vector<double> began;  // the first task of each repetition, on any process
  for (const WorkerTimes& own : times) {
    began.resize(std::max(began.size(), own.spans.size()), std::numeric_limits<double>::infinity());
    for (std::size_t k = 0; k < own.spans.size(); ++k) {
      for (const TaskSpan& span : own.spans[k]) began[k] = std::min(began[k], span.start);
    }
  }
  std::vector<std::vector<TaskSpan>> result;
  for (const WorkerTimes& own : times) {
    std::vector<TaskSpan>& spans = result.emplace_back(own.spans.empty() ? 0 : own.spans.front().size());
    for (std::size_t task = 0; task < spans.size(); ++task) {
      std::vector<double> starts, ends;
      for (std::size_t k = 0; k < own.spans.size(); ++k) {
        starts.push_back(own.spans[k][task].start - began[k]);
        ends.push_back(own.spans[k][task].end - began[k]);
      }
      spans[task] = {median(starts), median(ends)};
    }
  }
  return result;
}

Samples run_workers(const HostLab& lab, const WorkerTask& task, const std::vector<BackgroundTraffic>& background) {
  const ScratchFolder folder;
  ProcessBarrier barrier(task.processes());
  const std::vector<Process> beside = start_background(lab, background);
  wait_for(task, start(lab, task, folder.path(), barrier), barrier);
  std::vector<WorkerTimes> times;
  Samples samples;
  for (int i = 0; i < task.processes(); ++i) {
    const json kept = json::parse(read_text_file(times_file(folder.path(), i), 256'000'000));
    const WorkerTimes& own = times.emplace_back(WorkerTimes{kept.at(0), kept.at(1), kept.at(2)});
    if (i == 0) samples.busy = own.busy;
    samples.seconds.resize(own.seconds.size());
    for (std::size_t k = 0; k < own.seconds.size(); ++k) {
      samples.seconds[k] = std::max(samples.seconds[k], own.seconds[k]);
    }
  }
  samples.spans = medians_of(times);
  return samples;
}

HostReplayer::HostReplayer() {
  if (const std::string why = why_no_namespaces(); !why.empty()) throw UsageError("cannot replay here: " + why);
}

const HostLab& HostReplayer::lab_for(const std::vector<HostRate>& hosts, const Uplinks& uplinks) {
  if (lab_ && lab_->hosts() == static_cast<int>(hosts.size())) {
    lab_->shape(hosts, uplinks);
  } else {
    lab_.reset();
    lab_ = std::make_unique<HostLab>(hosts, uplinks);
  }
  return *lab_;
}

HostMeasurement HostReplayer::run(const ReplayPlan& plan) {
  const Samples samples = run_workers(lab_for(plan.hosts, plan.uplinks), plan.task, plan.background);
  HostMeasurement measured;
  if (plan.graph) {
    measured.spans = samples.spans;
    measured.execution = plan.graph->execution(samples.spans);
    measured.waiting = plan.graph->waiting(*measured.execution);
  }
  measured.ranks = plan.task.ranks;
  measured.size = plan.sent;
  measured.plan = plan_hash(plan);
  measured.samples = samples.seconds;
  measured.busy = samples.busy;
  return measured;
}

}  // namespace foretrain
