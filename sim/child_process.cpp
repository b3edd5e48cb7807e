#include "sim/child_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <system_error>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace foretrain {

namespace {

constexpr std::size_t message_size = 4096;  // longer messages are cut

[[noreturn]] void run_and_leave(const std::function<void()>& work, pid_t parent, std::span<char> message) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(EXIT_FAILURE);  // the parent died before it could be watched
  const auto report = [message](std::string_view text) {
    std::ranges::copy(text.substr(0, message.size() - 1), message.begin());
    _exit(EXIT_FAILURE);
  };
  try {
    work();
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("unknown exception");
  }
  _exit(EXIT_SUCCESS);  // no destructors, no flushing: buffers and files belong to the parent
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memory for a simulation");
}

SharedMemory::~SharedMemory() { munmap(memory_, bytes_); }

void run_in_child(const std::function<void()>& work) {
  const SharedMemory memory(message_size);
  const std::span<char> message = memory.as<char>(message_size);
  std::fflush(nullptr);  // or a child that flushes (SimGrid does) would write this process's pending output once more
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process for a simulation");
  if (child == 0) run_and_leave(work, parent, message);

  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waiting for a simulation");
  }
  if (WIFSIGNALED(status)) {
    throw ProcessEnded(fmt::format("the simulation's process was ended by signal {} ({})", WTERMSIG(status),
                                   strsignal(WTERMSIG(status))));
  }
  if (message.front() != '\0') throw std::runtime_error(message.data());
  if (WEXITSTATUS(status) != EXIT_SUCCESS) {
    throw std::runtime_error(fmt::format("the simulation's process ended with status {}", WEXITSTATUS(status)));
  }
}

}  // namespace foretrain
