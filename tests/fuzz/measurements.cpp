// A folder of measurements is refused with file and line, or fitted to constants that are finite. The text before the
// first line of dashes is machine.json, the rest gemm.jsonl.
#include <unistd.h>

#include <filesystem>

#include "model/base/files.hpp"
#include "tests/fuzz/harness.hpp"
#include "validate/fit/raw.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
  static const std::string folder = "/dev/shm/foretrain-fuzz-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  constexpr std::string_view line = "\n---\n";
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t end = text.find(line);
  write_file(folder + "/machine.json", text.substr(0, end));
  write_file(folder + "/gemm.jsonl", end == std::string_view::npos ? "" : text.substr(end + line.size()));
  fuzz::accepted([&] {
    for (const RawPoint& point : read_measurements(folder).points) {
      fuzz::require(std::isfinite(point.median()));
      (void)point.spread();
      (void)point.throttled();
    }
  });
  return 0;
}
