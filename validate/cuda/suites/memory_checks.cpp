#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "validate/cuda/core/device.hpp"
#include "validate/cuda/kernels/memory_access.hpp"

namespace foretrain::gpu {

namespace {

using Words = std::vector<std::uint32_t>;

// No multiple of a block, so that the ends of loops are run too.
constexpr std::size_t element_count = 300'007;
constexpr std::size_t word_count = 4 * element_count;

Words words_of(const DeviceBuffer& buffer, const Stream& stream) {
  Words words(buffer.size() / sizeof(std::uint32_t));
  GPU_CHECK(cudaMemcpyAsync(words.data(), buffer.data(), words.size() * sizeof(words[0]), cudaMemcpyDeviceToHost,
                            stream.get()));
  stream.synchronize();
  return words;
}

std::uint32_t folded(const Words& words) { return std::accumulate(words.begin(), words.end(), 0U, std::bit_xor<>()); }

void expect(bool right, const std::string& kernel) {
  if (!right) throw GpuError(Fault::failed, kernel + ": its result differs from the host's; it is not timed");
}

class Check {
 public:
  explicit Check(int device)
      : grid_(access_grid(device)), data_(word_count * 4), other_(word_count * 4), fold_(grid_.warps() * 4) {
    data_.fill(Format::int8, stream_.get(), 7);
    host_ = words_of(data_, stream_);
  }

  void reads() {
    for (const int element : {4, 16}) {
      for (const Sharing sharing : {Sharing::own_part, Sharing::rotated}) {
        launch_read(grid_, data_.data(), word_count * 4 / static_cast<std::size_t>(element), element, 3, sharing, out(),
                    stream_.get());
        expect(result() == folded(host_), "sequential read of " + std::to_string(element) + " B elements");
      }
    }
    constexpr std::size_t stride = 24;
    constexpr std::size_t offset = 5;
    launch_strided_read(grid_, data_.as<std::uint32_t>(), word_count / stride, stride, offset, out(), stream_.get());
    std::uint32_t wanted = 0;
    for (std::size_t i = 0; i < word_count / stride; ++i) wanted ^= host_[offset + i * stride];
    expect(result() == wanted, "strided read");
    constexpr std::uint32_t random_reads = 100'003;
    for (const int element : {4, 16}) {
      const std::size_t words = static_cast<std::size_t>(element) / 4;
      launch_random_read(grid_, data_.data(), word_count / words, element, random_reads, 11, out(), stream_.get());
      wanted = 0;
      for (std::uint32_t i = 0; i < random_reads; ++i) {
        const std::size_t at = random_index(i, 11, word_count / words) * words;
        for (std::size_t word = at; word < at + words; ++word) wanted ^= host_[word];
      }
      expect(result() == wanted, "random read of " + std::to_string(element) + " B elements");
    }
  }

  void writes() {
    launch_copy(grid_, data_.data(), other_.data(), element_count, stream_.get());
    expect(words_of(other_, stream_) == host_, "copy");
    launch_write(grid_, other_.data(), element_count, 0x12345678U, stream_.get());
    expect(words_of(other_, stream_) == Words(word_count, 0x12345678U), "write");
  }

  void chase() {
    constexpr std::uint32_t lines = 1U << 13;
    constexpr std::uint32_t steps = 5000;
    static_assert(lines * chase_line <= word_count * 4);
    launch_chase_setup(data_.as<std::uint32_t>(), lines, stream_.get());
    const DeviceBuffer at(sizeof(std::uint32_t));
    GPU_CHECK(cudaMemsetAsync(at.data(), 0, at.size(), stream_.get()));
    launch_chase(data_.as<std::uint32_t>(), steps, at.as<std::uint32_t>(), stream_.get());
    std::uint32_t wanted = 0;
    for (std::uint32_t i = 0; i < steps; ++i) wanted = next_line(wanted, lines);
    expect(words_of(at, stream_).front() == wanted, "pointer chase");
  }

 private:
  [[nodiscard]] std::uint32_t* out() const { return fold_.as<std::uint32_t>(); }
  [[nodiscard]] std::uint32_t result() const { return folded(words_of(fold_, stream_)); }

  Stream stream_;
  AccessGrid grid_;
  DeviceBuffer data_, other_, fold_;
  Words host_;
};

}  // namespace

void check_memory_kernels(int device) {
  Check check(device);
  check.reads();
  check.writes();
  check.chase();
}

}  // namespace foretrain::gpu
