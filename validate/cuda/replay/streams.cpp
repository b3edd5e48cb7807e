#include "validate/cuda/replay/streams.hpp"

namespace foretrain::gpu {

ReplayStreams::ReplayStreams(const replay::Graph& graph, const replay::IssuePlan& plan)
    : replicated_(graph.replicated), lanes_(graph.resources.size()) {
  const OnDevice first(0);
  origin_ = std::make_unique<Stream>();
  forked_ = std::make_unique<Event>(false);
  for (const int resource : plan.streams) {
    const int own = graph.resources[static_cast<std::size_t>(resource)].device;
    const int begin = replicated_ ? 0 : own;
    const int end = replicated_ ? graph.gpus : own + 1;
    for (int device = begin; device < end; ++device) {
      const OnDevice here(device);
      lanes_[static_cast<std::size_t>(resource)].push_back(
          {device, std::make_unique<Stream>(), std::make_unique<Event>(false)});
    }
  }
}

void ReplayStreams::fork() const {
  forked_->record(origin_->get());
  for (const std::vector<Lane>& lanes : lanes_) {
    for (const Lane& lane : lanes) {
      const OnDevice here(lane.device);
      GPU_CHECK(cudaStreamWaitEvent(lane.stream->get(), forked_->get(), 0));
    }
  }
}

void ReplayStreams::join() const {
  for (const std::vector<Lane>& lanes : lanes_) {
    for (const Lane& lane : lanes) {
      const OnDevice here(lane.device);
      lane.joined->record(lane.stream->get());
      GPU_CHECK(cudaStreamWaitEvent(origin_->get(), lane.joined->get(), 0));
    }
  }
}

void ReplayStreams::record(int event, int resource) {
  for (const Lane& lane : lanes(resource)) {
    const OnDevice here(lane.device);
    events_[event].try_emplace(lane.device, false).first->second.record(lane.stream->get());
  }
}

void ReplayStreams::wait(int event, int resource) const {
  for (const Lane& lane : lanes(resource)) {
    const OnDevice here(lane.device);
    for (const auto& [device, recorded] : events_.at(event)) {
      if (replicated_ && device != lane.device) continue;
      GPU_CHECK(cudaStreamWaitEvent(lane.stream->get(), recorded.get(), 0));
    }
  }
}

void ReplayStreams::synchronize(int event) const {
  for (const auto& [device, recorded] : events_.at(event)) recorded.synchronize();
}

}  // namespace foretrain::gpu
