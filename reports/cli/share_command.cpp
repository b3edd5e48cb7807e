#include "model/base/files.hpp"
#include "reports/cli/options.hpp"
#include "reports/export/shared_rows.hpp"

namespace foretrain {

namespace {

struct ShareOptions {
  std::string file, output;
};

ExitStatus run_share(const ShareOptions& options) {
  constexpr std::size_t longest = 100'000'000;
  const SharedRows shared = shared_rows(read_text_file(options.file, longest), options.file);
  warn(to_text(shared));
  write_or_print(options.output, shared.table);
  return ExitStatus::success;
}

}  // namespace

void add_share(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<ShareOptions>(
      app, "share", "Write measured rows without names and paths, to share them", status, run_share);
  command.add_option("RUNS.csv", options.file, "a table of cases with measured.* columns")->required();
  add_text(command, "-o,--output", options.output, "OUT.csv", "file to write (default: standard output)");
}

}  // namespace foretrain
