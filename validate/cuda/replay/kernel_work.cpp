// Operators, by the runners of validate/cuda/math.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/replay/work.hpp"

namespace foretrain::gpu {

namespace {

/// Operands come back after a few times the L2, so that a step's operators find theirs in memory, as they would.
std::size_t pool_limit() { return std::max(std::size_t{256} << 20, 4 * l2_bytes()); }

class KernelDoer final : public Doer {
 public:
  explicit KernelDoer(const ReplayStreams& streams) : streams_(streams) {}

  /// A block that many tasks refer to has one runner: a hundred calls of a small model read the same weights.
  void see(const WorkItem& item) override {
    const auto& work = std::get<KernelWork>(item.work);
    for (const ReplayStreams::Lane& lane : streams_.lanes(item.resource)) {
      std::unique_ptr<OperatorRunner>& runner = runners_[{item.block, item.index, item.resource, lane.device}];
      if (runner) continue;
      const OnDevice here(lane.device);
      std::unique_ptr<OperandPool>& pool = pools_[{item.resource, lane.device}];
      if (!pool) pool = std::make_unique<OperandPool>(lane.stream->get(), pool_limit());
      const OperatorSpec spec{work.kind, work.fields};
      try {
        runner = make_runner(spec, {*pool, 1});
        runner->launch(lane.stream->get(), 0);
        lane.stream->synchronize();
      } catch (const GpuError& error) {
        throw GpuError(error.fault(), work.name + " (" + name_of(spec) + "): " + error.what());
      } catch (const std::invalid_argument& error) {
        throw GpuError(Fault::unsupported, work.name + " (" + name_of(spec) + "): " + error.what());
      }
    }
  }

  void put(const WorkItem& item, int turn) override {
    for (int i = 0; i < std::get<KernelWork>(item.work).count; ++i) {
      item.pace.before_launch();
      for (const ReplayStreams::Lane& lane : streams_.lanes(item.resource)) {
        const OnDevice here(lane.device);
        runners_.at({item.block, item.index, item.resource, lane.device})->launch(lane.stream->get(), turn);
      }
    }
  }

  void check_finite() const override {
    for (const auto& [place, pool] : pools_) {
      const OnDevice here(place.second);
      pool->check_finite();
    }
  }

 private:
  const ReplayStreams& streams_;
  std::map<std::pair<int, int>, std::unique_ptr<OperandPool>> pools_;  ///< by resource and device
  /// By block, place in it, resource and device.
  std::map<std::tuple<int, std::size_t, int, int>, std::unique_ptr<OperatorRunner>> runners_;
};

}  // namespace

std::unique_ptr<Doer> make_kernel_doer(const ReplayStreams& streams) { return std::make_unique<KernelDoer>(streams); }

}  // namespace foretrain::gpu
