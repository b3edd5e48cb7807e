#include "validate/host_replay/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/base/descriptor.hpp"
#include "model/base/files.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

std::string barrier_file(const std::string& folder) { return folder + "/barrier"; }
std::string times_file(const std::string& folder, int process) {
  return fmt::format("{}/times-{}.json", folder, process);
}

/// Clock ticks that all processors together have spent, and those of them that were not idle.
struct ProcessorTime {
  double all = 0.0, busy = 0.0;
};

ProcessorTime processor_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  ProcessorTime time;
  double ticks = 0.0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    time.all += ticks;
    if (column != 3 && column != 4) time.busy += ticks;  // idle, waiting for disks
  }
  return time;
}

}  // namespace

struct ProcessBarrier::Shared {
  std::atomic<unsigned> generation{0};
  std::atomic<unsigned> arrived{0};
  std::atomic<unsigned> failed{0};
};

void ProcessBarrier::make(const std::string& folder) {
  const Descriptor file(open(barrier_file(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.open() || ftruncate(file.number(), sizeof(Shared)) != 0) throw_system_error(barrier_file(folder));
}

ProcessBarrier::ProcessBarrier(const std::string& folder, int processes, double timeout)
    : processes_(static_cast<unsigned>(processes)), deadline_(now() + timeout) {
  const Descriptor file(open(barrier_file(folder).c_str(), O_RDWR | O_CLOEXEC));
  if (!file.open()) throw_system_error(barrier_file(folder));
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) throw_system_error(barrier_file(folder));
  shared_ = static_cast<Shared*>(memory);
}

ProcessBarrier::~ProcessBarrier() { munmap(shared_, sizeof(Shared)); }

void ProcessBarrier::wait() {
  const unsigned generation = shared_->generation.load();
  if (shared_->arrived.fetch_add(1) + 1 == processes_) {
    shared_->arrived.store(0);
    shared_->generation.fetch_add(1);
    syscall(SYS_futex, &shared_->generation, FUTEX_WAKE, processes_, nullptr, nullptr, 0);
    return;
  }
  const timespec moment{0, 100'000'000};
  while (shared_->generation.load() == generation) {
    if (shared_->failed.load() != 0) throw std::runtime_error("another process failed");
    if (now() > deadline_) throw std::runtime_error("waited in vain for the other processes");
    syscall(SYS_futex, &shared_->generation, FUTEX_WAIT, generation, &moment, nullptr, 0);
  }
}

void ProcessBarrier::fail() noexcept { shared_->failed.store(1); }

void measure(const WorkerTask& task, int process, ProcessBarrier& barrier, const Timed& timed) {
  ProcessTimes times;
  ProcessorTime spent;
  for (int repetition = -task.warmup; repetition < task.repetitions; ++repetition) {
    timed.prepare();
    barrier.wait();
    const ProcessorTime before = process == 0 ? processor_time() : ProcessorTime{};
    barrier.wait();
    const double start = now();
    timed.work();
    const double end = now();
    if (repetition >= 0) times.seconds.push_back(end - start);
    if (process == 0 && repetition >= 0) {
      const ProcessorTime after = processor_time();
      spent.all += after.all - before.all;
      spent.busy += after.busy - before.busy;
    }
    barrier.wait();
    if (repetition == -task.warmup || repetition + 1 == task.repetitions) timed.check();
  }
  const double busy = spent.all > 0.0 ? spent.busy / spent.all : 0.0;
  write_file(times_file(task.folder, process), nlohmann::json{{"seconds", times.seconds}, {"busy", busy}}.dump());
}

ProcessTimes read_times(const std::string& folder, int process) {
  std::ifstream file(times_file(folder, process));
  if (!file) throw std::runtime_error(fmt::format("process {} left no times", process));
  try {
    const nlohmann::json object = nlohmann::json::parse(file);
    return {object.at("seconds"), object.at("busy")};
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format("times of process {}: {}", process, error.what()));
  }
}

int run_worker(const std::string& folder, int process,
               const std::function<void(const WorkerTask&, int process, ProcessBarrier&)>& work) {
  signal(SIGPIPE, SIG_IGN);
  try {
    const WorkerTask task = task_from_json(read_text_file(folder + "/task.json", 256'000'000));
    if (process < 0 || process >= static_cast<int>(task.participants.size())) {
      throw std::runtime_error(fmt::format("there is no process {}", process));
    }
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: sleeping tasks end in time
    // The process ends itself when something hangs.
    alarm(static_cast<unsigned>(task.timeout) + 2);
    ProcessBarrier barrier(task.folder, static_cast<int>(task.participants.size()), task.timeout);
    try {
      work(task, process, barrier);
    } catch (...) {
      barrier.fail();
      throw;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

void check_sums(const WorkerTask& task, const std::vector<float>& values) {
  for (std::int64_t i = 0; i < task.elements; ++i) {
    const float expected = expected_sum(task.ranks, i);
    if (values[at_index(i)] == expected) continue;
    throw std::runtime_error(fmt::format("wrong sum: value {} is {}, not {}", i, values[at_index(i)], expected));
  }
}

}  // namespace foretrain
