#include "validate/host_replay/worker.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "model/base/number.hpp"
#include "validate/host_replay/sockets.hpp"

namespace foretrain {

namespace {

constexpr std::size_t block = std::size_t{256} << 10U;  // received, then added, while it is in the cache

std::size_t at(int i) { return at_index(i); }

/// One transfer on its way, in bytes.
struct Moving {
  char* memory = nullptr;  ///< what is sent, or where it goes
  std::size_t left = 0;
  Transfer::Kind kind = Transfer::Kind::copy;
};

/// One connection's work in a phase, transfers one after the other.
struct Lane {
  int peer = 0;
  std::vector<Moving> out, in;
  std::size_t next_out = 0, next_in = 0;
  // A value whose bytes have not all come yet.
  char partial[sizeof(float)] = {};
  std::size_t partial_bytes = 0;
  [[nodiscard]] bool sending() const { return next_out < out.size(); }
  [[nodiscard]] bool receiving() const { return next_in < in.size(); }
};

class Participation {
 public:
  Participation(const WorkerTask& task, int process, ProcessBarrier& barrier)
      : task_(task),
        process_(process),
        sockets_(connect_with(task, process, peers(task, process), barrier)),
        values_(at_index(task.elements)),
        scratch_(block) {}

  void prepare() {
    const bool rank = process_ < task_.ranks;
    for (std::int64_t i = 0; i < task_.elements; ++i) {
      values_[at_index(i)] = rank ? contribution(process_, i) : 0.0F;
    }
  }

  /// The schedule with these values as the message.
  void exchange(const ValueRange& values) {
    message_ = values;
    for (const Phase& phase : task_.phases) run_phase(phase);
  }

  void check() const {
    if (process_ < task_.ranks) check_sums(task_, values_);
  }

 private:
  static std::vector<int> peers(const WorkerTask& task, int process) {
    std::set<int> found;
    for (const Phase& phase : task.phases) {
      for (const Transfer& t : phase) {
        if (t.source == process) found.insert(t.destination);
        if (t.destination == process) found.insert(t.source);
      }
    }
    return {found.begin(), found.end()};
  }

  [[nodiscard]] ValueRange range_of(const Transfer& transfer) const {
    const ValueRange range = values_of(transfer, message_.count, task_.chunks);
    return {message_.first + range.first, range.count};
  }

  Lane& lane(std::vector<Lane>& lanes, int peer) {
    for (Lane& known : lanes) {
      if (known.peer == peer) return known;
    }
    lanes.emplace_back().peer = peer;
    return lanes.back();
  }

  /// A transfer may leave only what was there before the phase: where something arrives at the same place, a copy of it
  /// is sent.
  char* stable(const Phase& phase, const ValueRange& range) {
    char* memory = reinterpret_cast<char*>(values_.data() + range.first);
    const bool changes = std::any_of(phase.begin(), phase.end(), [&](const Transfer& t) {
      return t.destination == process_ && range_of(t).overlaps(range);
    });
    if (!changes) return memory;
    copies_.emplace_back(memory, memory + range.count * static_cast<std::int64_t>(sizeof(float)));
    return copies_.back().data();
  }

  void run_phase(const Phase& phase) {
    copies_.clear();
    std::vector<Lane> lanes;
    for (const Transfer& t : phase) {
      if (t.source != process_ && t.destination != process_) continue;
      const ValueRange range = range_of(t);
      const std::size_t bytes = at_index(range.count) * sizeof(float);
      if (bytes == 0) continue;
      if (t.source == process_) {
        lane(lanes, t.destination).out.push_back({stable(phase, range), bytes, t.kind});
      } else {
        lane(lanes, t.source).in.push_back({reinterpret_cast<char*>(values_.data() + range.first), bytes, t.kind});
      }
    }
    std::vector<pollfd> ends(lanes.size());
    while (true) {
      bool busy = false;
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        const short events =
            static_cast<short>((lanes[i].sending() ? POLLOUT : 0) | (lanes[i].receiving() ? POLLIN : 0));
        ends[i] = {events != 0 ? sockets_[at(lanes[i].peer)].number() : -1, events, 0};
        busy = busy || events != 0;
      }
      if (!busy) return;
      if (poll(ends.data(), ends.size(), 1000) <= 0) continue;
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        if ((ends[i].revents & (POLLOUT | POLLERR | POLLHUP)) != 0 && lanes[i].sending()) send(lanes[i]);
        if ((ends[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0 && lanes[i].receiving()) receive(lanes[i]);
      }
    }
  }

  void send(Lane& lane) {
    Moving& moving = lane.out[lane.next_out];
    const std::size_t sent = send_some(sockets_[at(lane.peer)], moving.memory, moving.left, lane.peer);
    moving.memory += sent;
    moving.left -= sent;
    if (moving.left == 0) ++lane.next_out;
  }

  void receive(Lane& lane) {
    Moving& moving = lane.in[lane.next_in];
    const Descriptor& socket = sockets_[at(lane.peer)];
    if (moving.kind == Transfer::Kind::copy) {
      const std::size_t count = receive_some(socket, moving.memory, moving.left, lane.peer);
      moving.memory += count;
      moving.left -= count;
    } else {
      std::memcpy(scratch_.data(), lane.partial, lane.partial_bytes);
      const std::size_t wanted = std::min(scratch_.size(), moving.left) - lane.partial_bytes;
      const std::size_t there =
          lane.partial_bytes + receive_some(socket, scratch_.data() + lane.partial_bytes, wanted, lane.peer);
      const std::size_t whole = there / sizeof(float);
      auto* sums = reinterpret_cast<float*>(moving.memory);
      const auto* terms = reinterpret_cast<const float*>(scratch_.data());
      for (std::size_t i = 0; i < whole; ++i) sums[i] += terms[i];
      lane.partial_bytes = there - whole * sizeof(float);
      std::memcpy(lane.partial, scratch_.data() + whole * sizeof(float), lane.partial_bytes);
      moving.memory += whole * sizeof(float);
      moving.left -= whole * sizeof(float);
    }
    if (moving.left == 0) ++lane.next_in;
  }

  const WorkerTask& task_;
  int process_;
  std::vector<Descriptor> sockets_;
  std::vector<float> values_;
  ValueRange message_;
  std::vector<char> scratch_;  // allocated by operator new: aligned for any type
  std::vector<std::vector<char>> copies_;
};

}  // namespace

void run_schedule(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  Participation participation(task, process, barrier);
  measure(task, process, barrier,
          {[&] { participation.prepare(); },
           [&] { run_step(task, process, [&](const ValueRange& values) { participation.exchange(values); }); },
           [&] { participation.check(); }});
}

}  // namespace foretrain
