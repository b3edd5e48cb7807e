#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/plan/plan_reader.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/keys/keys.hpp"
#include "reports/print/table.hpp"
#include "reports/result/json.hpp"

namespace foretrain {

namespace {

struct KeysOptions {
  std::string prefix, schema;
  bool json = false, markdown = false;
};

std::vector<std::string> names_in_catalogue(keys::Catalogue catalogue) {
  using enum keys::Catalogue;
  if (catalogue == bucket_rule) return bucket_rule_names();
  const bool listed =
      catalogue == node || catalogue == gpu || catalogue == model || catalogue == trainer || catalogue == processor;
  return listed ? catalogue_names(list_catalogue(catalogue)) : std::vector<std::string>();
}

std::string schema_of(const std::string& word) {
  if (word == "result") return result_schema();
  if (word == "trainer") return schema_of("framework");  // a former name
  std::vector<std::string> known;
  for (const keys::FileKind& file : keys::files()) {
    if (file.word == word) return keys_schema(file, names_in_catalogue);
    known.emplace_back(file.word);
  }
  known.emplace_back("result");
  throw UsageError(fmt::format("--schema {}: there are {}", word, or_list(known)));
}

ExitStatus run(const KeysOptions& options) {
  const std::string prefix = keys::current_name(options.prefix);
  const std::string text = options.schema.empty() && !options.markdown ? keys_text(prefix) : "";
  if (!options.schema.empty()) {
    print(schema_of(options.schema));
  } else if (options.markdown) {
    print(keys_markdown());
  } else if (text.empty()) {
    throw UsageError(fmt::format("no key {}; {}", options.prefix,
                                 did_you_mean(nearest_key(options.prefix), "`foretrain keys` lists all")));
  } else {
    options.json ? print(keys_json(prefix)) : print_page(text);
  }
  return ExitStatus::success;
}

std::string overview() {
  TextTable ways("ll");
  ways.add_row({"foretrain help plan.tensor", "a key by its path"});
  ways.add_row({"foretrain help bucket", "by its last word: all keys that end with it"});
  ways.add_row({"foretrain help tp", "by its name in another program"});
  ways.add_row({"foretrain help dualpipe", "by one of its values"});
  ways.add_row({"foretrain keys plan", "all keys below one; without argument, all keys"});
  ways.add_row({"foretrain predict --help", "a command and its options"});
  TextTable parts("ll");
  for (const keys::Key& key : keys::scenario.keys) parts.add_row({std::string(key.name), std::string(key.meaning)});
  return fmt::format("Meaning, values and default of a key:\n{}\nKeys of a scenario:\n{}", ways.text(2), parts.text(2));
}

}  // namespace

void add_keys(CLI::App& app, ExitStatus& status) {
  auto [command, options] =
      add_command<KeysOptions>(app, "keys", "List the keys of files: values, defaults, meanings", status, run);
  command.add_option("PREFIX", options.prefix, "list only keys below this one: plan, cluster.network, …");
  add_text(command, "--schema", options.schema, "scenario|hardware|model|calibration|framework|result",
           "print the JSON Schema");
  command.add_flag("--json", options.json, "print JSON");
  command.add_flag("--markdown", options.markdown, "print the page reports/docs/keys.md");
}

void add_help(CLI::App& app, ExitStatus&) {
  const auto key = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "Explain a key: plan.tensor, bucket, …");
  command->add_option("KEY", *key, "a dotted key, its last word, a value, or a name in another program");
  command->callback([key] {
    if (key->empty()) return print_page(overview());
    if (const auto page = key_help(*key)) return print_page(*page);
    throw UsageError(fmt::format("no key {}; {}", *key, did_you_mean(nearest_key(*key), "`foretrain keys` lists all")));
  });
}

}  // namespace foretrain
