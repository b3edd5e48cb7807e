// Memory for benchmarks: mapped, touched, and in pages of a known size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretrain {

/// `huge` asks for transparent huge pages, `small` forbids them.
enum class PageKind { small, huge };

class HostMemory {
 public:
  /// At least `size` bytes at a multiple of 2 MiB, every page written once. Throws std::bad_alloc.
  HostMemory(std::size_t size, PageKind pages);
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&&) = delete;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Keeps a value, and all that it was computed from, from being optimised away.
template <typename T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace foretrain
