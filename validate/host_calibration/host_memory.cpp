#include "validate/host_calibration/host_memory.hpp"

#include <sys/mman.h>

#include <memory>
#include <new>
#include <utility>

namespace foretrain {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t small_page = 4096;

}  // namespace

// Whole huge pages, so that even a small working set can lie in one.
HostMemory::HostMemory(std::size_t size, PageKind pages)
    : mapped_((size + huge_page - 1) / huge_page * huge_page + huge_page), size_(size) {
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  void* start = mapping_;
  std::size_t room = mapped_;
  data_ = static_cast<std::byte*>(std::align(huge_page, size, start, room));
  // Advice only: a kernel without transparent huge pages goes on with small ones.
  madvise(mapping_, mapped_, pages == PageKind::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < size; at += small_page) data_[at] = std::byte{1};
}

HostMemory::~HostMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      size_(other.size_) {}

}  // namespace foretrain
