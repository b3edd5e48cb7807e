#include "sim/child_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string_view>

#include "model/base/error.hpp"

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

void run_and_report(const std::function<void()>& work, std::span<char> message) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
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
}

}  // namespace

void run_in_child(const std::function<void()>& work) {
  const SharedMemory memory(message_size);
  const std::span<char> message = memory.as<char>(message_size);
  std::fflush(nullptr);  // or a child that flushes (SimGrid does) would write this process's pending output once more
  const ProcessEnd end = Process::copy([&] { run_and_report(work, message); }).wait();
  if (end.signal != 0) throw ProcessEnded("the simulation's process " + end.text());
  if (message.front() != '\0') throw_again(static_cast<Failure>(message.front()), message.data() + 1);
  if (!end.well()) throw std::runtime_error("the simulation's process " + end.text());
}

}  // namespace foretrain
