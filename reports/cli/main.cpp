#include <cstddef>
#include <cstdint>
#include <memory>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

#include "reports/cli/command.hpp"

/// mimalloc's; null in a program that is built without.
extern "C" __attribute__((weak)) bool mi_manage_os_memory(void* start, std::size_t size, bool is_committed,
                                                          bool is_large, bool is_zero, int numa_node);

namespace {

/// A prediction's memory is kept for the next one: freed memory that the kernel takes back comes again as pages to be
/// filled with zeros. In huge pages, a search for plans is spared a quarter of its time: there are fewer to be given
/// and to be looked up.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr std::size_t megabyte = 1 << 20;
  constexpr std::size_t segment = 32 * megabyte;  // mimalloc's, which begin at multiples of it
  constexpr std::size_t size = 8192 * megabyte;   // of addresses
  if (mi_manage_os_memory == nullptr) {
    mallopt(M_MMAP_THRESHOLD, 32 * megabyte);
    mallopt(M_TRIM_THRESHOLD, 256 * megabyte);
    mallopt(M_TOP_PAD, megabyte);
    return;
  }
  const auto first = std::make_unique<char>();  // lies in the first segment
  madvise(first.get() - reinterpret_cast<std::uintptr_t>(first.get()) % segment, segment, MADV_HUGEPAGE);
  void* const mapped =
      mmap(nullptr, size + segment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return;
  char* const start = static_cast<char*>(mapped) + (segment - reinterpret_cast<std::uintptr_t>(mapped) % segment);
  madvise(start, size, MADV_HUGEPAGE);
  mi_manage_os_memory(start, size, true, false, true, -1);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  return foretrain::run_program(argc, argv);
}
