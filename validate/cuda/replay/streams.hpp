// Streams and events of a replayed graph on the GPUs that take part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/core/device.hpp"
#include "validate/replay/issue.hpp"

namespace foretrain::gpu {

/// A stream of the graph on each GPU that has it: one, or all of them where the graph is replicated.
class ReplayStreams {
 public:
  ReplayStreams(const replay::Graph& graph, const replay::IssuePlan& plan);

  struct Lane {
    int device = 0;
    std::unique_ptr<Stream> stream;
    std::vector<std::unique_ptr<Event>>
        events;  ///< by number; without timing; empty where they belong to other streams
  };
  [[nodiscard]] const std::vector<Lane>& lanes(int resource) const {
    return lanes_[static_cast<std::size_t>(resource)];
  }
  /// The stream on which an event is recorded.
  [[nodiscard]] int stream_of(int event) const { return stream_of_event_[static_cast<std::size_t>(event)]; }
  [[nodiscard]] const Stream& origin() const { return *origin_; }
  /// The other streams wait for the origin, and it for them, so that all of them are between its two moments.
  void fork() const;
  void join() const;

 private:
  std::vector<std::vector<Lane>> lanes_;  ///< by resource
  std::vector<int> stream_of_event_;
  std::unique_ptr<Stream> origin_;
  std::unique_ptr<Event> forked_;
  struct End {
    const Lane* lane = nullptr;
    std::unique_ptr<Event> joined;
  };
  std::vector<End> ends_;
};

}  // namespace foretrain::gpu
