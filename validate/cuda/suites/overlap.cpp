// Compute slowed by communication: a GEMM (bound by the multiprocessors) and a sum of long vectors (bound by
// the device's memory), beside NCCL's all_reduce of all GPUs.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/cuda/math/operator_runner.hpp"
#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

#ifndef FORETRAIN_HAS_NCCL

void run_overlap(SuiteRun&) {}

#else

namespace {

/// Work that can be put on a stream of the measured GPU again and again, and waited for.
struct Load {
  const Stream& stream;
  std::function<void(int turn)> launch;
  std::function<void()> wait;
};

/// On all GPUs; the stream is that of the first.
class AllReduce {
 public:
  explicit AllReduce(std::size_t bytes) : elements_(bytes / sizeof(float)) {
    std::vector<int> devices(static_cast<std::size_t>(visible_devices()));
    std::iota(devices.begin(), devices.end(), 0);
    for (const int device : devices) {
      const OnDevice here(device);
      streams_.push_back(std::make_unique<Stream>());
      on_.push_back(streams_.back()->get());
      buffers_.emplace_back(bytes).fill(Format::fp32, on_.back(), static_cast<std::uint64_t>(device) + 1);
      from_.push_back(buffers_.back().as<float>());
      to_.push_back(buffers_.emplace_back(bytes).as<float>());
    }
    communicators_ = std::make_unique<Communicators>(devices);
  }
  [[nodiscard]] Load load() {
    return {*streams_.front(), [this](int) { communicators_->all_reduce(from_, to_, elements_, on_); },
            [this] { communicators_->wait(on_); }};
  }

 private:
  std::size_t elements_;
  std::vector<std::unique_ptr<Stream> > streams_;
  std::vector<cudaStream_t> on_;
  std::vector<DeviceBuffer> buffers_;
  std::vector<float*> from_, to_;
  std::unique_ptr<Communicators> communicators_;
};

double time_alone(const Load& load, int count) {
  const Event start, end;
  load.launch(0);
  start.record(load.stream.get());
  for (int i = 0; i < count; ++i) load.launch(i + 1);
  end.record(load.stream.get());
  load.wait();
  return elapsed(start, end) / count;
}

/// Seconds of `load` while `other` keeps running; nothing when the other ended too early for that.
std::optional<double> time_beside(const Load& load, int count, const Load& other, int other_count) {
  const Event begun(false), start, end, other_end(false);
  other.launch(0);
  begun.record(other.stream.get());
  other.launch(1);
  GPU_CHECK(cudaStreamWaitEvent(load.stream.get(), begun.get(), 0));
  start.record(load.stream.get());
  for (int i = 0; i < count; ++i) load.launch(i);
  end.record(load.stream.get());
  for (int i = 2; i < other_count; ++i) other.launch(i);
  other_end.record(other.stream.get());
  load.wait();
  const bool beside_all_along = !other_end.happened();
  other.wait();
  if (!beside_all_along) return std::nullopt;
  return elapsed(start, end) / count;
}

/// Time beside the other over time alone, each pair measured in turn.
Sampled slowdown(const Load& load, const Load& other, const StoppingRule& rule) {
  const double once = std::max(time_alone(load, 2), 1e-7);
  const double other_once = std::max(time_alone(other, 2), 1e-7);
  const int count = batch_of(once, Seconds(0.02), 256);
  // The other goes on for longer than the load takes even at a third of its speed.
  int other_count = 3 + static_cast<int>(3.0 * count * once / other_once);
  return sample(
      [&] {
        const double alone = time_alone(load, count);
        for (int attempt = 0; attempt < 4; ++attempt, other_count *= 2) {
          if (const auto beside = time_beside(load, count, other, other_count)) return *beside / alone;
        }
        throw GpuError(Fault::unsupported, "the work beside it ended before it did, however much of it there was");
      },
      rule);
}

Sampled slowdown_of(const OperatorSpec& spec, std::size_t bytes, const StoppingRule& rule) {
  const Stream stream;
  OperandPool memory(stream.get());
  const auto runner = make_runner(spec, {memory, 1});
  AllReduce other(bytes);
  const Load load{stream, [&](int turn) { runner->launch(stream.get(), turn); }, [&] { stream.synchronize(); }};
  return slowdown(load, other.load(), rule);
}

}  // namespace

void run_overlap(SuiteRun& run) {
  constexpr std::size_t mib = 1 << 20;
  const std::pair<const char*, OperatorSpec> works[] = {
      {"matmul 8192", {"matmul", {{"m", "8192"}, {"n", "8192"}, {"k", "8192"}, {"precision", "bf16"}}}},
      {"accumulation", {"elementwise", {{"elements", "134217728"}, {"inputs", "2"}, {"precision", "fp32"}}}}};
  for (const std::size_t bytes : run.quick() ? std::vector{256 * mib} : std::vector{32 * mib, 256 * mib}) {
    for (const auto& [name, stated] : works) {
      const OperatorSpec spec = with_precision_of(stated, compute_capability());
      Record record = plain_point("slowdown", {{"kind", name},
                                               {"precision", spec.fields.at("precision")},
                                               {"beside", "all_reduce " + std::to_string(bytes) + " B"}});
      record.parameters["quantity"] = "slowdown";
      record.unit = "1";
      for (const auto& [key, text] : nccl_parameters()) record.parameters["beside_" + key] = text;
      if (!run.point(record, [&] { return slowdown_of(spec, bytes, run.rule()); })) return;
    }
  }
}

#endif

}  // namespace foretrain::gpu
