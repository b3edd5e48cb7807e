#include "validate/cuda/replay/streams.hpp"

namespace foretrain::gpu {

ReplayStreams::ReplayStreams(const replay::Graph& graph, const replay::IssuePlan& plan)
    : lanes_(graph.resources.size()), stream_of_event_(static_cast<std::size_t>(plan.events), -1) {
  const OnDevice first(0);
  origin_ = std::make_unique<Stream>();
  forked_ = std::make_unique<Event>(false);
  for (const int resource : plan.streams) {
    const int own = graph.resources[static_cast<std::size_t>(resource)].device;
    const int begin = graph.replicated ? 0 : own;
    const int end = graph.replicated ? graph.gpus : own + 1;
    for (int device = begin; device < end; ++device) {
      const OnDevice here(device);
      Lane lane;
      lane.device = device;
      lane.stream = std::make_unique<Stream>();
      lane.events.resize(static_cast<std::size_t>(plan.events));
      lanes_[static_cast<std::size_t>(resource)].push_back(std::move(lane));
    }
  }
  for (const replay::Operation& operation : plan.operations) {
    if (operation.kind != replay::Operation::Kind::record) continue;
    const auto event = static_cast<std::size_t>(operation.event);
    stream_of_event_[event] = operation.stream;
    for (Lane& lane : lanes_[static_cast<std::size_t>(operation.stream)]) {
      const OnDevice here(lane.device);
      lane.events[event] = std::make_unique<Event>(false);
    }
  }
  for (const std::vector<Lane>& lanes : lanes_) {
    for (const Lane& lane : lanes) {
      const OnDevice here(lane.device);
      ends_.push_back({&lane, std::make_unique<Event>(false)});
    }
  }
}

void ReplayStreams::fork() const {
  forked_->record(origin_->get());
  for (const End& end : ends_) {
    const OnDevice here(end.lane->device);
    GPU_CHECK(cudaStreamWaitEvent(end.lane->stream->get(), forked_->get(), 0));
  }
}

void ReplayStreams::join() const {
  for (const End& end : ends_) {
    const OnDevice here(end.lane->device);
    end.joined->record(end.lane->stream->get());
  }
  const OnDevice first(0);
  for (const End& end : ends_) GPU_CHECK(cudaStreamWaitEvent(origin_->get(), end.joined->get(), 0));
}

}  // namespace foretrain::gpu
