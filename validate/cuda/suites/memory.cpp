// A GPU's own memory. Points that the model can state are operators of a scenario:
//   memory_access sequential   each multiprocessor reads its own part again and again, as often as `reads` says
//   memory_access strided, random, dependent
// What no scenario states: `what` l2_read, reads that come from the L2 because multiprocessors change parts.
#include <algorithm>
#include <string>
#include <vector>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/kernels/memory_access.hpp"
#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t gib = 1024 * mib;
const Fields in_stream = {{"timing", "stream"}};

OperatorSpec access(const char* pattern, std::size_t working_set, int element, std::size_t reads) {
  return {"memory_access",
          {{"pattern", pattern},
           {"working_set", bytes_text(working_set)},
           {"element", bytes_text(static_cast<std::size_t>(element))},
           {"reads", std::to_string(reads)}}};
}

/// `first`, times `factor` each, up to `last`.
std::vector<std::size_t> sizes(std::size_t first, std::size_t last, std::size_t factor) {
  std::vector<std::size_t> out;
  for (std::size_t size = first; size <= last; size *= factor) out.push_back(size);
  return out;
}

class MemorySuite {
 public:
  explicit MemorySuite(SuiteRun& run)
      : run_(run), grid_(access_grid()), room_(std::min(usable_memory(), 16 * gib)), l2_(std::max(l2_bytes(), mib)) {}

  void sequential() {
    const std::size_t factor = run_.quick() ? 4 : 2;
    for (const std::size_t size : sizes(256 * kib, std::min(room_, run_.quick() ? 4 * gib : 16 * gib), factor)) {
      for (const int element : {16, 4}) {
        if (element == 4 && run_.quick() && size != 1 * gib) continue;
        const int passes = static_cast<int>(std::clamp<std::size_t>(256 * mib / size, 1, 256));
        const std::size_t count = size / static_cast<std::size_t>(element);
        const OperatorSpec spec = access("sequential", size, element, count * static_cast<std::size_t>(passes));
        point(operator_point(spec, in_stream), size, [&](const Buffers& use, cudaStream_t stream, int) {
          launch_read(grid_, use.data.data(), count, element, passes, false, use.out(), stream);
        });
      }
    }
  }

  void l2() {
    for (const int eighths : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16}) {
      if (run_.quick() && eighths != 2 && eighths != 4 && eighths != 8) continue;
      const std::size_t size = l2_ / 8 * static_cast<std::size_t>(eighths) / 256 * 256;
      const int passes = static_cast<int>(std::clamp<std::size_t>(512 * mib / size, 2, 512));
      const Fields fields = {{"bytes", std::to_string(size)}, {"passes", std::to_string(passes)}, {"timing", "stream"}};
      point(plain_point("l2_read", fields), size, [&](const Buffers& use, cudaStream_t stream, int) {
        launch_read(grid_, use.data.data(), size / 16, 16, passes, true, use.out(), stream);
      });
    }
  }

  void strided() {
    std::vector<std::size_t> sets = {std::min(room_, gib)};
    if (!run_.quick()) sets.push_back(l2_ / 2 / mib * mib);
    for (const std::size_t size : sets) {
      if (size == 0) continue;
      for (const std::size_t stride : sizes(8, 4096, run_.quick() ? 4 : 2)) {
        const std::size_t count = size / stride;
        OperatorSpec spec = access("strided", size, 4, count);
        spec.fields["stride"] = bytes_text(stride);
        // Each turn reads the next sector of 32 bytes, so that turns together touch the whole working set.
        const std::size_t turns = std::max<std::size_t>(stride / 32, 1);
        point(operator_point(spec, in_stream), size, [&](const Buffers& use, cudaStream_t stream, int turn) {
          const std::size_t offset = static_cast<std::size_t>(turn) % turns * 8;
          launch_strided_read(grid_, use.data.as<std::uint32_t>() + offset, count, stride / 4, use.out(), stream);
        });
      }
    }
  }

  void random() {
    const std::size_t reads = 1U << (run_.quick() ? 24 : 25);
    for (const std::size_t size : sizes(mib, room_, run_.quick() ? 16 : 4)) {
      for (const int element : {4, 16}) {
        if (run_.quick() && element == 16) continue;
        const OperatorSpec spec = access("random", size, element, reads);
        point(operator_point(spec, in_stream), size, [&](const Buffers& use, cudaStream_t stream, int turn) {
          launch_random_read(grid_, use.data.data(), size / static_cast<std::size_t>(element), element,
                             static_cast<std::uint32_t>(reads), static_cast<std::uint32_t>(turn), use.out(), stream);
        });
      }
    }
  }

  void dependent() {
    for (const std::size_t size : sizes(16 * kib, std::min(room_, 8 * gib), run_.quick() ? 8 : 2)) {
      const std::size_t lines = size / chase_line;
      // Small rings are gone round so often that the first time, from further away, does not count.
      const std::size_t steps = std::max<std::size_t>(8192, lines <= 2048 ? 16 * lines : 0);
      const OperatorSpec spec = access("dependent", size, 4, steps);
      point(operator_point(spec, in_stream), size, [&](const Buffers& use, cudaStream_t stream, int turn) {
        auto* const data = use.data.as<std::uint32_t>();
        if (turn == 0) {  // which is not timed
          launch_chase_setup(data, static_cast<std::uint32_t>(lines), stream);
          launch_read(grid_, data, size / 16, 16, 1, false, use.out(), stream);
          GPU_CHECK(cudaMemsetAsync(use.out(), 0, sizeof(std::uint32_t), stream));
        }
        launch_chase(data, static_cast<std::uint32_t>(steps), use.out(), stream);
      });
    }
  }

 private:
  struct Buffers {
    Buffers(const MemorySuite& suite, std::size_t bytes) : data(bytes), folded(suite.grid_.warps() * 4) {
      data.fill(Format::int8, stream.get());
      stream.synchronize();
    }
    [[nodiscard]] std::uint32_t* out() const { return folded.as<std::uint32_t>(); }
    Stream stream;
    DeviceBuffer data, folded;
  };

  /// Times what `put` puts on the stream in each turn, on buffers of this size.
  template <typename Put>
  void point(const Record& record, std::size_t size, const Put& put) {
    run_.point(record, [&] {
      const Buffers use(*this, size);
      StoppingRule rule = run_.rule();
      rule.budget = Seconds(run_.quick() ? 0.1 : 0.35);  // many points share the suite's time
      return time_stream(
          use.stream, [&](cudaStream_t stream, int turn) { put(use, stream, turn); }, rule);
    });
  }

  SuiteRun& run_;
  AccessGrid grid_;
  std::size_t room_;
  std::size_t l2_;
};

}  // namespace

void run_memory(SuiteRun& run) {
  MemorySuite suite(run);
  suite.sequential();
  suite.l2();
  suite.dependent();
  suite.strided();
  suite.random();
}

}  // namespace foretrain::gpu
