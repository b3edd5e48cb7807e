#include "validate/cuda/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

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
  if (!end_) end(5.0);
  if (!end_) process_.forget();  // it hangs in the driver
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

ChildProcess::Ending ChildProcess::listen(const std::function<void(const std::string& line)>& hear, double seconds) {
  try {
    for (std::string line;;) {
      const Next next = next_line(line, seconds);
      if (next == Next::timeout) return Ending::silent;
      if (next == Next::end) return wait(seconds) ? Ending::ended : Ending::lingering;
      hear(line);
    }
  } catch (const Interrupted&) {
    end(10.0);
    throw;
  }
}

bool ChildProcess::wait(double seconds) {
  const double until = now() + seconds;
  while (!end_) {
    end_ = process_.ended();
    if (end_ || now() >= until) break;
    const timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
  return end_.has_value();
}

bool ChildProcess::end(double patience) {
  if (end_) return true;
  process_.send(SIGTERM);
  if (wait(patience)) return true;
  process_.send(SIGKILL);
  return wait(10.0);
}

}  // namespace foretrain::gpu
