// Compute slowed by communication: a matrix product (bound by the multiprocessors) and a sum of long vectors (bound by
// the device's memory), beside NCCL's all_reduce of all GPUs.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "validate/cuda/collective/ladder.hpp"
#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/math/matmul.hpp"
#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::size_t mib = 1 << 20;
constexpr double batch_s = 0.02;

/// Work that can be put on a stream of the measured GPU again and again.
class Load {
 public:
  virtual ~Load() = default;
  virtual void launch(int turn) = 0;
  [[nodiscard]] virtual cudaStream_t stream() const { return own_.get(); }
  /// Until all that was launched is done.
  virtual void wait() { GPU_CHECK(cudaStreamSynchronize(stream())); }

 protected:
  Stream own_;
};

class Product final : public Load {
 public:
  static constexpr std::int64_t size = 8192;
  Product() : memory_(own_.get()), runner_(shape(), {.memory = memory_, .rotation = 1}) { own_.synchronize(); }
  void launch(int turn) override { runner_.launch(own_.get(), turn); }

 private:
  static MatmulShape shape() {
    MatmulShape shape;
    shape.m = shape.n = shape.k = size;
    shape.precision = half_precision();
    return shape;
  }
  OwnOperands memory_;
  MatmulRunner runner_;
};

class Accumulation final : public Load {
 public:
  static constexpr std::size_t bytes = 512 * mib;
  Accumulation() : x_(bytes), y_(bytes) {
    x_.fill(Format::fp32, own_.get());
    y_.fill(Format::fp32, own_.get());
    own_.synchronize();
  }
  void launch(int /*turn*/) override {
    constexpr std::int64_t words = bytes / 16;
    stream_words({x_.data(), y_.data(), y_.data()}, {words, words, words}, false, own_.get());
  }

 private:
  DeviceBuffer x_, y_;
};

#ifdef FORETRAIN_HAS_NCCL

/// On all GPUs; the stream is that of the measured one.
class AllReduce final : public Load {
 public:
  AllReduce(std::size_t bytes, int measured) : communicators_(all_devices(measured)) {
    extent_ = extent_of(CollectiveOperation::all_reduce, communicators_.ranks(), bytes / sizeof(float));
    for (const Member& member : communicators_.members()) {
      const OnDevice on(member.device);
      send_.emplace_back(bytes);
      receive_.emplace_back(bytes);
      send_.back().fill(Format::fp32, member.stream->get(), static_cast<std::uint64_t>(member.rank) + 1);
      from_.push_back(send_.back().as<float>());
      to_.push_back(receive_.back().as<float>());
    }
    wait();
  }
  void launch(int /*turn*/) override { communicators_.launch(CollectiveOperation::all_reduce, extent_, from_, to_); }
  [[nodiscard]] cudaStream_t stream() const override { return communicators_.members().front().stream->get(); }
  void wait() override { communicators_.wait(); }

 private:
  static std::vector<int> all_devices(int measured) {
    std::vector<int> devices{measured};
    for (int device = 0; device < visible_devices(); ++device) {
      if (device != measured) devices.push_back(device);
    }
    return devices;
  }
  Communicators communicators_;
  Extent extent_;
  std::vector<DeviceBuffer> send_, receive_;
  std::vector<const float*> from_;
  std::vector<float*> to_;
};

#endif

double time_alone(Load& load, int count) {
  const Event start;
  const Event end;
  load.launch(0);
  start.record(load.stream());
  for (int i = 0; i < count; ++i) load.launch(i + 1);
  end.record(load.stream());
  load.wait();
  return elapsed(start, end) / count;
}

/// Seconds of `load` while `other` keeps running; nothing when the other ended too early for that.
std::optional<double> time_beside(Load& load, int count, Load& other, int other_count) {
  const Event begun(false);
  const Event start;
  const Event end;
  const Event other_end(false);
  other.launch(0);
  begun.record(other.stream());
  other.launch(1);
  GPU_CHECK(cudaStreamWaitEvent(load.stream(), begun.get(), 0));
  start.record(load.stream());
  for (int i = 0; i < count; ++i) load.launch(i);
  end.record(load.stream());
  for (int i = 2; i < other_count; ++i) other.launch(i);
  other_end.record(other.stream());
  load.wait();
  const bool beside_all_along = !other_end.happened();
  other.wait();
  if (!beside_all_along) return std::nullopt;
  return elapsed(start, end) / count;
}

/// Time beside the other over time alone, each pair measured in turn.
Sampled slowdown(Load& load, Load& other, const StoppingRule& rule) {
  const double once = std::max(time_alone(load, 2), 1e-7);
  const double other_once = std::max(time_alone(other, 2), 1e-7);
  const int count = batch_of(once, batch_s, 256);
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

/// A kind of work: how to begin it (buffers and all), and what a record says of it.
struct Kind {
  std::string name;
  std::map<std::string, std::string> parameters;
  std::function<std::unique_ptr<Load>()> begin;
};

std::vector<Kind> computations() {
  return {{"matmul " + std::to_string(Product::size),
           {{"precision", half_precision()}},
           [] { return std::make_unique<Product>(); }},
          {"accumulation", {{"bytes", std::to_string(3 * Accumulation::bytes)}}, [] {
             return std::make_unique<Accumulation>();
           }}};
}

#ifdef FORETRAIN_HAS_NCCL

std::vector<Kind> communications(const SuiteRun& run) {
  std::vector<Kind> kinds;
  for (const std::size_t size : run.quick() ? std::vector{256 * mib} : std::vector{32 * mib, 256 * mib}) {
    kinds.push_back({"all_reduce " + std::to_string(size) + " B", nccl_parameters(),
                     [size, device = run.device()] { return std::make_unique<AllReduce>(size, device); }});
  }
  return kinds;
}

#else

std::vector<Kind> communications(const SuiteRun&) { return {}; }

#endif

bool measure_beside(SuiteRun& run, const Kind& kind, const Kind& other) {
  Record record;
  record.name = kind.name + " beside " + other.name;
  record.parameters = kind.parameters;
  for (const auto& [key, text] : other.parameters) record.parameters["beside_" + key] = text;
  record.parameters["kind"] = kind.name;
  record.parameters["beside"] = other.name;
  record.parameters["quantity"] = "slowdown";
  record.unit = "1";
  return run.point(record, [&] {
    const auto load = kind.begin();
    const auto beside = other.begin();
    return slowdown(*load, *beside, run.rule());
  });
}

}  // namespace

void run_overlap(SuiteRun& run) {
  for (const Kind& other : communications(run)) {
    for (const Kind& kind : computations()) {
      if (!measure_beside(run, kind, other)) return;
    }
  }
}

}  // namespace foretrain::gpu
