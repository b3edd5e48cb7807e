// What the stand-ins for CUDA and for NCCL share.
#pragma once

#include <nccl.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "tests/cuda/streams/streams.hpp"

namespace streams {

struct Event {
  std::uint64_t recorded = 0;  ///< how often a record was put on a stream
  std::uint64_t happened = 0;  ///< and how many of those were carried out
  double time = 0.0;
};

/// One piece of work at a stream's head: may it begin, and what does it do.
struct Work {
  std::function<bool()> ready;
  std::function<void()> run;
};

struct Stream {
  int device = 0;
  std::deque<Work> queue;
};

struct State {
  std::recursive_mutex mutex;
  int devices = 1;
  std::mt19937_64 random{1};
  double clock = 0.0;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::map<void*, std::size_t> memory;
  bool corrupts = false;
  int communicators = 0, aborted = 0;
};
State& state();

/// Carries out one piece of work of a stream that chance chooses among those that can go on. False where none can.
bool step();

}  // namespace streams
