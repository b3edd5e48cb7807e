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

#include "model/base/error.hpp"

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace foretrain {

namespace {

constexpr std::size_t message_size = 4097;  // a Failure, then its text; longer ones are cut

/// What `work` threw: who can mend it.
enum class Failure : char { none, impossible, usage, internal, other };

[[noreturn]] void throw_again(Failure failure, const char* text) {
  if (failure == Failure::impossible) throw ImpossiblePlan(text);
  if (failure == Failure::usage) throw UsageError(text);
  if (failure == Failure::internal) throw std::logic_error(text);
  throw std::runtime_error(text);
}

[[noreturn]] void run_and_leave(const std::function<void()>& work, pid_t parent, std::span<char> message) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(EXIT_FAILURE);  // the parent died before it could be watched
  const auto report = [message](Failure kind, std::string_view text) {
    message.front() = static_cast<char>(kind);
    std::ranges::copy(text.substr(0, message.size() - 2), message.begin() + 1);
    _exit(EXIT_FAILURE);
  };
  try {
    work();
  } catch (const ImpossiblePlan& error) {
    report(Failure::impossible, error.what());
  } catch (const UsageError& error) {
    report(Failure::usage, error.what());
  } catch (const std::logic_error& error) {
    report(Failure::internal, error.what());
  } catch (const std::exception& error) {
    report(Failure::other, error.what());
  } catch (...) {
    report(Failure::other, "unknown exception");
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
  if (message.front() != '\0') throw_again(static_cast<Failure>(message.front()), message.data() + 1);
  if (WEXITSTATUS(status) != EXIT_SUCCESS) {
    throw std::runtime_error(fmt::format("the simulation's process ended with status {}", WEXITSTATUS(status)));
  }
}

}  // namespace foretrain
