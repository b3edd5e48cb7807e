#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/plan/plan_reader.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/keys/keys_report.hpp"
#include "reports/keys/keys_schema.hpp"
#include "reports/result/result_schema.hpp"

namespace foretrain {

namespace {

struct KeysOptions {
  std::string prefix, schema;
  bool json = false, markdown = false;
};

std::vector<std::string> names_in_catalogue(keys::Catalogue catalogue) {
  switch (catalogue) {
    case keys::Catalogue::node:
      return catalogue_names(list_hardware(), "node");
    case keys::Catalogue::gpu:
      return catalogue_names(list_hardware(), "gpu");
    case keys::Catalogue::model:
      return catalogue_names(list_models());
    case keys::Catalogue::trainer:
      return catalogue_names(list_trainers());
    case keys::Catalogue::processor:
      return catalogue_names(list_processors());
    case keys::Catalogue::bucket_rule:
      return bucket_rule_names();
    default:
      return {};
  }
}

std::string schema_of(const std::string& word) {
  if (word == "result") return result_schema();
  std::vector<std::string> known;
  for (const keys::FileKind& file : keys::files()) {
    if (file.word == word) return keys_schema(file, names_in_catalogue);
    known.emplace_back(file.word);
  }
  known.emplace_back("result");
  throw UsageError(fmt::format("--schema {}: there are {}", word, or_list(known)));
}

ExitStatus run(const KeysOptions& options) {
  const std::string text = options.schema.empty() && !options.markdown ? keys_text(options.prefix) : "";
  if (!options.schema.empty()) {
    print(schema_of(options.schema));
  } else if (options.markdown) {
    print(keys_markdown());
  } else if (text.empty()) {
    throw UsageError(fmt::format("no key {}; {}", options.prefix,
                                 did_you_mean(nearest_key(options.prefix), "`foretrain keys` lists all")));
  } else {
    options.json ? print(keys_json(options.prefix)) : print_page(text);
  }
  return ExitStatus::success;
}

}  // namespace

void add_keys(CLI::App& app, ExitStatus& status) {
  auto [command, options] =
      add_command<KeysOptions>(app, "keys", "the keys that files may have: values, defaults, meanings", status, run);
  command.add_option("PREFIX", options.prefix, "only those below a key: plan, cluster.network, …");
  add_text(command, "--schema", options.schema, "scenario|hardware|model|calibration|trainer|result",
           "JSON Schema instead");
  command.add_flag("--json", options.json, "JSON for programs");
  command.add_flag("--markdown", options.markdown, "the page reports/docs/keys.md");
}

}  // namespace foretrain
