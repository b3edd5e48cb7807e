// The processors that this process may run on: binding to one, how fast its core is, and whether two are threads of one
// core.
#pragma once

#include <sched.h>

#include <vector>

namespace foretrain {

/// Numbers of the processors that this thread may run on, at least one.
std::vector<int> own_processors();

/// Binds the calling thread to one processor while the object lives. Where that is refused nothing changes.
class BoundTo {
 public:
  explicit BoundTo(int processor);
  ~BoundTo();
  BoundTo(const BoundTo&) = delete;
  BoundTo& operator=(const BoundTo&) = delete;

 private:
  cpu_set_t before_{};
};

/// Number of processors of the first one's core, itself included. Zero: nothing can be said (one processor, no
/// x86).
int threads_of_first_core();

/// Clock of the calling thread's core in hertz: a chain of integer additions does one a cycle on any processor of this
/// century.
double core_clock();

/// Fused multiply-adds of the widest vectors that the core does in a second, in registers alone. Zero where there is no
/// loop for the processor.
double multiply_adds_per_second();

}  // namespace foretrain
