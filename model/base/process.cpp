#include "model/base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "model/base/descriptor.hpp"

#ifdef __linux__
#include <sys/prctl.h>
#endif

extern char** environ;  // NOLINT(readability-*): the name that POSIX gives it; some headers declare it too

namespace foretrain {

namespace {

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

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) throw_system_error("memory shared with processes");
}

SharedMemory::~SharedMemory() { munmap(memory_, bytes_); }

std::string ProcessEnd::text() const {
  if (signal == 0) return "ended with status " + std::to_string(status);
  return "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

Process::Process(const Program& program) {
  std::vector<char*> arguments;
  arguments.reserve(program.command.size() + 1);
  for (const std::string& argument : program.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [ours, theirs] : program.descriptors) posix_spawn_file_actions_adddup2(&actions, ours, theirs);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t interruptions;
  sigemptyset(&interruptions);
  sigaddset(&interruptions, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &interruptions);
  const int group = program.own_group ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGDEF | group));
  const std::string& file = program.file.empty() ? program.command.front() : program.file;
  const int error = posix_spawnp(&number_, file.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_system_error(file, error);
}

Process Process::copy(const std::function<void()>& work) {
  const pid_t parent = getpid();
  Process child;
  child.number_ = fork();
  if (child.number_ < 0) throw_system_error("cannot start a process");
  if (child.number_ > 0) return child;
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(EXIT_FAILURE);  // the parent died before it could be watched
  try {
    work();
  } catch (...) {
    _exit(EXIT_FAILURE);
  }
  _exit(EXIT_SUCCESS);
}

Process::~Process() {
  if (!running()) return;
  send(SIGKILL);
  while (waitpid(number_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void Process::send(int signal) const {
  if (running()) kill(number_, signal);  // -1, which one that is gone has, are all processes of this user
}

ProcessEnd Process::wait() {
  std::optional<ProcessEnd> end;
  while (!end) end = ended(true);
  return *end;
}

std::optional<ProcessEnd> Process::ended(bool waits) {
  int status = 0;
  const pid_t ended = waitpid(number_, &status, waits ? 0 : WNOHANG);
  if (ended < 0 && errno != EINTR) throw_system_error("waiting for a process");
  if (ended <= 0) return std::nullopt;
  number_ = -1;
  if (WIFSIGNALED(status)) return ProcessEnd{0, WTERMSIG(status)};
  return ProcessEnd{WEXITSTATUS(status), 0};
}

FilterResult run_filter(const std::vector<std::string>& command, const std::string& input) {
  Pipe in;
  Pipe out;
  Pipe err;
  Process process({.command = command,
                   .descriptors = {{in.reader.number(), STDIN_FILENO},
                                   {out.writer.number(), STDOUT_FILENO},
                                   {err.writer.number(), STDERR_FILENO}}});
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
  result.status = process.wait().shell_status();
  return result;
}

}  // namespace foretrain
