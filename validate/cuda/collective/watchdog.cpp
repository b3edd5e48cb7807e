#include "validate/cuda/collective/watchdog.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "validate/measure/clock.hpp"

namespace foretrain::gpu {

namespace {

[[noreturn]] void exit_now(const std::string& message) {
  std::fprintf(stderr, "foretrain-gpu: %s\n", message.c_str());
  std::fflush(stderr);
  std::_Exit(1);  // destructors would wait for what does not end
}

/// "NCCL did not finish within 45 s: all_reduce of 8 B on 4 GPUs; see NCCL_DEBUG=INFO".
std::string overdue_message(double seconds, const std::string& what) {
  return "NCCL did not finish within " + std::to_string(static_cast<int>(seconds)) + " s: " + what +
         "; see NCCL_DEBUG=INFO";
}

}  // namespace

Limit::Due Limit::due(double now) const {
  if (!begun_) return Due::nothing;
  const double passed = now - *begun_;
  if (passed >= times_.exit) return Due::exit;
  if (passed >= times_.abort) return Due::abort;
  return passed >= times_.give_up ? Due::give_up : Due::nothing;
}

Watchdog::Watchdog(Actions actions, Limit::Times times, std::function<double()> clock)
    : actions_(std::move(actions)), clock_(clock ? std::move(clock) : std::function<double()>(now)), limit_(times) {
  if (!actions_.exit) actions_.exit = exit_now;
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Watchdog::Guard::Guard(Watchdog& dog, const std::string& what) : dog_(nullptr) {
  const std::lock_guard lock(dog.mutex_);
  if (dog.guarding_) return;
  dog_ = &dog;
  dog.guarding_ = true;
  dog.what_ = what;
  dog.limit_.begin(dog.clock_());
}

Watchdog::Guard::~Guard() {
  if (dog_ == nullptr) return;
  const std::lock_guard lock(dog_->mutex_);
  dog_->guarding_ = false;
  dog_->limit_.end();
}

bool Watchdog::overdue() const {
  const std::lock_guard lock(mutex_);
  return aborted_ || limit_.due(clock_()) != Limit::Due::nothing;
}

std::string Watchdog::message() const {
  const std::lock_guard lock(mutex_);
  return overdue_message(limit_.seconds(), what_);
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (!stop_) act();
  }
}

void Watchdog::act() {
  const Limit::Due due = limit_.due(clock_());
  if (due == Limit::Due::exit) {
    limit_.end();
    actions_.exit(overdue_message(limit_.seconds(), what_));
  } else if (due == Limit::Due::abort && !aborted_) {
    aborted_ = true;
    if (actions_.abort) std::thread(actions_.abort).detach();
  }
}

}  // namespace foretrain::gpu
