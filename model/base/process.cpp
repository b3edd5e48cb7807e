#include "model/base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "model/base/descriptor.hpp"

extern char** environ;  // NOLINT(readability-*): the name that POSIX gives it; some headers declare it too

namespace foretrain {

namespace {

pid_t start(const std::vector<std::string>& command, const Pipe& in, const Pipe& out, const Pipe& err) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.reader.number(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.writer.number(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.writer.number(), STDERR_FILENO);
  pid_t process = 0;
  const int error = posix_spawnp(&process, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_system_error(command.front(), error);
  return process;
}

/// Reads what is there; closes the pipe's end when the program has closed the other.
void drain(Descriptor& reader, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(reader.number(), buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  if (count == 0) reader.close();
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
  in.reader.close();
  out.writer.close();
  err.writer.close();
  const IgnoreBrokenPipe ignore;
  fcntl(in.writer.number(), F_SETFL, O_NONBLOCK);  // so that writing never waits while the program waits to be read

  FilterResult result;
  std::size_t written = 0;
  while (out.reader.open() || err.reader.open()) {
    if (written == input.size()) in.writer.close();
    std::array<pollfd, 3> ends = {
        {{in.writer.number(), POLLOUT, 0}, {out.reader.number(), POLLIN, 0}, {err.reader.number(), POLLIN, 0}}};
    if (poll(ends.data(), ends.size(), -1) < 0) continue;
    if (ends[0].revents != 0) {
      const ssize_t count = write(in.writer.number(), input.data() + written, input.size() - written);
      if (count >= 0) written += static_cast<std::size_t>(count);
      if (count < 0 && errno == EPIPE) written = input.size();
    }
    if (ends[1].revents != 0) drain(out.reader, result.output);
    if (ends[2].revents != 0) drain(err.reader, result.errors);
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace foretrain
