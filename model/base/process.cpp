#include "model/base/process.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "model/base/descriptor.hpp"

#ifdef __linux__
#include <sys/prctl.h>
#endif

extern char** environ;  // NOLINT(readability-*): the name that POSIX gives it; some headers declare it too

namespace foretrain {

namespace {

/// A file without a name, in memory.
Descriptor nameless_file(std::string_view content) {
  Descriptor file(memfd_create("filter", MFD_CLOEXEC));
  if (!file.open() || !write_all(file.number(), content) || lseek(file.number(), 0, SEEK_SET) != 0) {
    throw_system_error("memory for what a program reads and writes");
  }
  return file;
}

std::string content_of(const Descriptor& file) {
  std::string text(static_cast<std::size_t>(lseek(file.number(), 0, SEEK_END)), '\0');
  const ssize_t count = pread(file.number(), text.data(), text.size(), 0);
  if (count < 0 || static_cast<std::size_t>(count) != text.size()) throw_system_error("what a program wrote");
  return text;
}

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
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&number_, arguments.front(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_system_error(program.command.front(), error);
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
  const Descriptor in = nameless_file(input), out = nameless_file({}), errors = nameless_file({});
  Process process(
      {.command = command,
       .descriptors = {{in.number(), STDIN_FILENO}, {out.number(), STDOUT_FILENO}, {errors.number(), STDERR_FILENO}}});
  const int status = process.wait().shell_status();
  return {status, content_of(out), content_of(errors)};
}

}  // namespace foretrain
