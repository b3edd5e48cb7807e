// The processors that this process may run on: binding to one, and whether two are threads of one core.
#pragma once

#include <sched.h>

#include <cstddef>
#include <vector>

namespace foretrain {

/// Numbers of the processors that this thread may run on, at least one.
std::vector<int> own_processors();

/// Binds the calling thread to one processor for as long as it lives. Where that is refused nothing changes.
class BoundTo {
 public:
  explicit BoundTo(int processor);
  ~BoundTo();
  BoundTo(const BoundTo&) = delete;
  BoundTo& operator=(const BoundTo&) = delete;

 private:
  cpu_set_t before_{};
};

/// Two threads that do nothing but multiply integers, of which a core starts one a cycle: together they do twice one's
/// work on two cores and as much as one on the same. Strangers on the cores take from both, so that the best of several
/// trials counts. Zero where nothing can be said (one processor, no x86).
double work_of_two(int first, int second);

/// How many processors of the first one's core there are, itself included, by work_of_two(). Zero: nothing can be said.
int threads_of_first_core();

}  // namespace foretrain
