#include "validate/cuda/replay/timings.hpp"

namespace foretrain::gpu {

std::size_t EventLine::record(cudaStream_t stream) {
  if (used_ == events_.size()) events_.push_back(std::make_unique<Event>());
  events_[used_]->record(stream);
  return used_++;
}

double EventLine::between(const Event& start, std::size_t number) const { return elapsed(start, *events_[number]); }

double EventLine::between(std::size_t start, std::size_t end) const { return elapsed(*events_[start], *events_[end]); }

}  // namespace foretrain::gpu
