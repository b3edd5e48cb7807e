// The database of a sweep, however damaged, is refused with its name or gives its rows.
#include <unistd.h>

#include <filesystem>

#include "model/base/files.hpp"
#include "reports/cli/sweep_store.hpp"
#include "reports/cli/sweep_table.hpp"
#include "tests/fuzz/harness.hpp"

using namespace foretrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder = "/dev/shm/foretrain-fuzz-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/rows.sqlite";
  write_file(file, fuzz::text_of(data, size));
  fuzz::accepted([&] {
    SweepStore store(file);
    write_table(store, {.where = "row >= 0", .sort = "-row"}, folder + "/rows.csv");
    write_table(store, {}, folder + "/rows.jsonl");
    (void)best_rows(store, {}, {});
    for (const Reply::Kind kind : {Reply::Kind::bad_input, Reply::Kind::failure}) (void)reasons(store, kind);
  });
  std::filesystem::remove(file + "-wal");
  return 0;
}
