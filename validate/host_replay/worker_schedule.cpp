#include <set>

#include "model/base/number.hpp"
#include "validate/host_replay/moves.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

namespace {

class Participation {
 public:
  Participation(const WorkerTask& task, int process, ProcessBarrier& barrier)
      : task_(task),
        process_(process),
        sockets_(connect_with(task, process, peers(task, process), barrier)),
        values_(at_index(task.elements)) {}

  void prepare() {
    const bool rank = process_ < task_.ranks;
    for (std::int64_t i = 0; i < task_.elements; ++i) {
      values_[at_index(i)] = rank ? contribution(process_, i) : 0.0F;
    }
  }

  void run() {
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
    return values_of(transfer, task_.elements, task_.chunks);
  }

  /// A transfer may leave only what was there before the phase: where something arrives at the same place, a copy of it
  /// is sent.
  const float* stable(const Phase& phase, const ValueRange& range) {
    const float* values = values_.data() + range.first;
    const bool changes = std::any_of(phase.begin(), phase.end(), [&](const Transfer& t) {
      return t.destination == process_ && range_of(t).overlaps(range);
    });
    if (!changes) return values;
    copies_.emplace_back(values, values + range.count);
    return copies_.back().data();
  }

  void run_phase(const Phase& phase) {
    copies_.clear();
    for (const Transfer& t : phase) {
      const ValueRange range = range_of(t);
      const std::size_t count = at_index(range.count);
      if (t.source == process_) {
        moves_.send(t.destination, reinterpret_cast<const char*>(stable(phase, range)), count * sizeof(float));
      } else if (t.destination == process_ && t.kind == Transfer::Kind::reduce) {
        moves_.add(t.source, values_.data() + range.first, count);
      } else if (t.destination == process_) {
        moves_.receive(t.source, reinterpret_cast<char*>(values_.data() + range.first), count * sizeof(float));
      }
    }
    moves_.run(sockets_);
  }

  const WorkerTask& task_;
  int process_;
  std::vector<Descriptor> sockets_;
  std::vector<float> values_;
  Moves moves_;
  std::vector<std::vector<float>> copies_;
};

}  // namespace

void run_schedule(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  Participation participation(task, process, barrier);
  measure(task, process, barrier,
          {[&] { participation.prepare(); }, [&] { participation.run(); }, [&] { participation.check(); }});
}

}  // namespace foretrain
