#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "reports/cli/command.hpp"

namespace {

/// glibc gives freed memory back to the kernel, large vectors at once, and gets it back as pages to be filled with
/// zeros. A prediction's memory is kept for the next one: of a sweep by estimate that saves a third of the time.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int megabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * megabyte);
  mallopt(M_TRIM_THRESHOLD, 256 * megabyte);
  mallopt(M_TOP_PAD, megabyte);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  return foretrain::run_program(argc, argv);
}
