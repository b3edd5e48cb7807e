#include <fmt/format.h>

#include "model/base/error.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/keys/keys_report.hpp"

namespace foretrain {

void add_help(CLI::App& app, ExitStatus&) {
  const auto key = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "what a key of a file means: plan.tensor, bucket, …");
  command->add_option("KEY", *key, "a dotted key, its last word alone, or what another program calls it")->required();
  command->callback([key] {
    if (const auto page = key_help(*key)) return print_page(*page);
    const auto nearest = nearest_key(*key);
    throw UsageError(fmt::format("no key {}; {}", *key,
                                 nearest ? fmt::format("did you mean {}?", *nearest) : "`foretrain keys` lists all"));
  });
}

}  // namespace foretrain
