// Streams of a replayed graph on the GPUs that take part.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "validate/cuda/core/device.hpp"
#include "validate/replay/issue.hpp"

namespace foretrain::gpu {

/// A stream of the graph on each GPU that has it: one, or all of them where the graph is replicated. Events are without
/// timing.
class ReplayStreams {
 public:
  ReplayStreams(const replay::Graph& graph, const replay::IssuePlan& plan);

  struct Lane {
    int device = 0;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> joined;
  };
  /// None for what is no stream.
  [[nodiscard]] const std::vector<Lane>& lanes(int resource) const {
    return lanes_[static_cast<std::size_t>(resource)];
  }
  [[nodiscard]] const Stream& origin() const { return *origin_; }
  /// The other streams wait for the origin, and it for them, so that all of them are between its two moments.
  void fork() const;
  void join() const;

  void record(int event, int resource);
  /// An event that was recorded. Replicas do not wait for each other: what they exchange makes them.
  void wait(int event, int resource) const;
  void synchronize(int event) const;

 private:
  bool replicated_;
  std::vector<std::vector<Lane>> lanes_;        ///< by resource
  std::map<int, std::map<int, Event>> events_;  ///< by number and device
  std::unique_ptr<Stream> origin_;
  std::unique_ptr<Event> forked_;
};

}  // namespace foretrain::gpu
