#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/scenario/keys/keys.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/keys/keys_report.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// What help can explain, and how to ask.
std::string overview() {
  TextTable ways("ll");
  ways.add_row({"foretrain help plan.tensor", "a key by its path"});
  ways.add_row({"foretrain help bucket", "by its last word: every place where it stands"});
  ways.add_row({"foretrain help tp", "by what another program calls it"});
  ways.add_row({"foretrain keys plan", "all keys below one; without it, all"});
  ways.add_row({"foretrain predict --help", "a command and its options"});
  TextTable parts("ll");
  for (const keys::Key& key : keys::scenario.keys) parts.add_row({std::string(key.name), std::string(key.meaning)});
  return fmt::format("What a key of a file means, what it may be, and what holds without it:\n{}\nA scenario has\n{}",
                     ways.text(2), parts.text(2));
}

}  // namespace

void add_help(CLI::App& app, ExitStatus&) {
  const auto key = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "what a key of a file means: plan.tensor, bucket, …");
  command->add_option("KEY", *key, "a dotted key, its last word alone, or what another program calls it");
  command->callback([key] {
    if (key->empty()) return print_page(overview());
    if (const auto page = key_help(*key)) return print_page(*page);
    throw UsageError(fmt::format("no key {}; {}", *key, did_you_mean(nearest_key(*key), "`foretrain keys` lists all")));
  });
}

}  // namespace foretrain
