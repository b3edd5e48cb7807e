#include "validate/cuda/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

extern char** environ;

namespace foretrain::gpu {

namespace {

[[noreturn]] void fail(int error, const char* what) { throw std::system_error(error, std::generic_category(), what); }

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, int descriptor) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe");
  std::vector<std::string> words = {"foretrain-gpu"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (descriptor != STDOUT_FILENO) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, ends[1], descriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = posix_spawn(&process_, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  pipe_ = ends[0];
  if (error != 0) {
    close(pipe_);
    fail(error, "/proc/self/exe");
  }
}

ChildProcess::~ChildProcess() {
  if (!status_) end(5.0);
  close(pipe_);
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
    pollfd wanted{pipe_, POLLIN, 0};
    // A signal that comes just before poll() does not end it: look again every second.
    const int ready = poll(&wanted, 1, static_cast<int>(std::min(left, 1.0) * 1e3) + 1);
    if (ready <= 0) continue;
    std::array<char, 4096> bytes{};
    const ssize_t n = read(pipe_, bytes.data(), bytes.size());
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
  while (!status_) {
    int status = 0;
    const pid_t ended = waitpid(process_, &status, WNOHANG);
    if (ended == process_) status_ = status;
    if (ended < 0 && errno != EINTR) fail(errno, "waitpid");
    if (status_ || now() >= until) break;
    const timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
  return status_.has_value();
}

bool ChildProcess::end(double patience) {
  kill(process_, SIGTERM);
  if (wait(patience)) return true;
  kill(process_, SIGKILL);
  return wait(10.0);
}

std::string ending_of(int wait_status) {
  if (WIFEXITED(wait_status)) return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  return "was killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
}

}  // namespace foretrain::gpu
