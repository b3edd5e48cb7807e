#include "model/base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

extern char** environ;  // NOLINT(readability-identifier-naming): the name that POSIX gives it

namespace foretrain {

namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// A pipe whose ends close themselves and are not inherited.
struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t end) {
    if (ends.at(end) >= 0) close(ends.at(end));
    ends.at(end) = -1;
  }
  [[nodiscard]] int reader() const { return ends[0]; }
  [[nodiscard]] int writer() const { return ends[1]; }
  std::array<int, 2> ends{-1, -1};
};

pid_t start(const std::vector<std::string>& command, const Pipe& in, const Pipe& out, const Pipe& err) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.reader(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.writer(), STDERR_FILENO);
  pid_t process = 0;
  const int error = posix_spawnp(&process, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(error, command.front());
  return process;
}

/// Reads what is there; closes the pipe's end at its end.
void drain(Pipe& pipe, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(pipe.reader(), buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  if (count == 0) pipe.close_end(0);
}

/// A program that leaves without reading everything must not end this one.
class IgnoreBrokenPipe {
 public:
  IgnoreBrokenPipe() : before_(signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoreBrokenPipe() { signal(SIGPIPE, before_); }
  IgnoreBrokenPipe(const IgnoreBrokenPipe&) = delete;
  IgnoreBrokenPipe& operator=(const IgnoreBrokenPipe&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

FilterResult run_filter(const std::vector<std::string>& command, const std::string& input) {
  Pipe in;
  Pipe out;
  Pipe err;
  const pid_t process = start(command, in, out, err);
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  const IgnoreBrokenPipe ignore;
  fcntl(in.writer(), F_SETFL, O_NONBLOCK);  // so that writing never waits while the program waits to be read

  FilterResult result;
  std::size_t written = 0;
  while (out.reader() >= 0 || err.reader() >= 0) {
    if (written == input.size()) in.close_end(1);
    std::array<pollfd, 3> ends = {{{in.writer(), POLLOUT, 0}, {out.reader(), POLLIN, 0}, {err.reader(), POLLIN, 0}}};
    if (poll(ends.data(), ends.size(), -1) < 0) continue;
    if (ends[0].revents != 0) {
      const ssize_t count = write(in.writer(), input.data() + written, input.size() - written);
      if (count >= 0) written += static_cast<std::size_t>(count);
      if (count < 0 && errno == EPIPE) written = input.size();
    }
    if (ends[1].revents != 0) drain(out, result.output);
    if (ends[2].revents != 0) drain(err, result.errors);
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace foretrain
