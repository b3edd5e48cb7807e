#include "validate/cuda/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/error.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, int descriptor) {
  Pipe pipe;
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Program program{.command = {"foretrain-gpu"}, .file = "/proc/self/exe", .own_group = true};
  program.command.insert(program.command.end(), arguments.begin(), arguments.end());
  program.descriptors = {{nothing.number(), STDIN_FILENO}};
  if (descriptor != STDOUT_FILENO) program.descriptors.emplace_back(STDERR_FILENO, STDOUT_FILENO);
  program.descriptors.emplace_back(pipe.writer.number(), descriptor);
  process_ = Process(program);
  pipe_ = std::move(pipe.reader);
}

ChildProcess::~ChildProcess() {
  end(5.0);
  if (hangs()) process_.forget();
}

ChildProcess::Next ChildProcess::next_line(std::string& line, double seconds) {
  const double until = now() + seconds;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return Next::line;
    }
    throw_if_interrupted();
    const double left = until - now();
    if (left <= 0.0) return Next::timeout;
    pollfd wanted{pipe_.number(), POLLIN, 0};
    // A signal that comes just before poll() does not end it: look again every second.
    const int ready = poll(&wanted, 1, static_cast<int>(std::min(left, 1.0) * 1e3) + 1);
    if (ready <= 0) continue;
    std::array<char, 4096> bytes{};
    const ssize_t n = read(pipe_.number(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Next::end;
    buffer_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

std::optional<int> ChildProcess::listen(const std::function<void(const std::string& line)>& hear, double seconds) {
  Next next = Next::line;
  try {
    for (std::string line; (next = next_line(line, seconds)) == Next::line;) hear(line);
  } catch (const Interrupted&) {
    end(10.0);
    throw;
  }
  if (next == Next::timeout || !wait(seconds)) {
    end(1.0);
    why_ = "hung: nothing was heard for " + std::to_string(static_cast<int>(seconds)) + " s, so its process was ended";
    if (hangs()) why_ = "hangs in the driver and cannot be ended: reboot the machine";
    return std::nullopt;
  }
  if (end_->signal == 0) return end_->status;
  why_ = "its process " + end_->text();
  return std::nullopt;
}

bool ChildProcess::wait(double seconds) {
  for (const double until = now() + seconds; !(end_ = process_.ended()) && now() < until;) usleep(2000);
  return end_.has_value();
}

void ChildProcess::end(double patience) {
  if (end_) return;
  process_.send(SIGTERM);
  if (wait(patience)) return;
  process_.send(SIGKILL);
  wait(10.0);
}

std::string probe_in_child() {
  constexpr double limit_s = 180.0;  // a driver that is not persistent takes many seconds for eight GPUs
  ChildProcess child({"probe"}, STDOUT_FILENO);
  std::string json;
  const auto status = child.listen([&](const std::string& line) { json = line; }, limit_s);
  if (status == exit_status::done) return json;
  throw GpuError(Fault::unavailable, status ? "no usable GPU (see above): nothing was measured"
                                            : "the driver does not answer (" + child.why() +
                                                  "): see dmesg for Xid errors; a reboot may be needed");
}

}  // namespace foretrain::gpu
