#include "reports/cli/vary.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"
#include "model/scenario/keys/keys.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

namespace {

constexpr std::string_view call = "servers(", algorithm_key = "algorithm";

[[noreturn]] void fail(std::string_view key, std::string_view value, const std::string& why) {
  throw UsageError(fmt::format("--vary {}={}: {}; write {}, or servers(N), servers(N,{}), servers(N,dedicated,added)",
                               key, value, why, fmt::join(names_of<SyncAlgorithm>, ", "),
                               fmt::join(names_of<ServerPlacement>, "|")));
}

/// The words between the parentheses of servers(…).
std::vector<std::string> arguments_of(std::string_view value) {
  std::vector<std::string> words = split(std::string(value.substr(call.size(), value.size() - call.size() - 1)), ',');
  for (std::string& word : words) word = std::string(trim(word));
  return words;
}

bool is_call(std::string_view value) { return value.starts_with(call) && value.ends_with(")"); }

/// "plan.sync." and "workload.collective.": what stands before the algorithm's word; empty for other keys.
std::string_view mapping_of(std::string_view key) {
  if (key == "plan.sync" || key == "plan.sync.algorithm") return "plan.sync.";
  return key == "workload.collective.algorithm" ? "workload.collective." : "";
}

SyncChoice servers_choice(std::string_view key, std::string_view value) {
  const std::vector<std::string> words = arguments_of(value);
  SyncChoice choice;
  const auto set = [&](std::string_view last, const std::string& text) {
    choice.settings.emplace_back(fmt::format("{}{}", mapping_of(key), last), text);
  };
  set(algorithm_key, "parameter_server");
  try {
    set("servers", std::to_string(parse_integer(words.front(), 1, 100'000)));
  } catch (const UnitError& error) {
    fail(key, value, error.got());
  }
  if (words.size() > 1) {
    if (!value_of<ServerPlacement>(words[1])) fail(key, value, fmt::format("there is no placement {}", words[1]));
    set("placement", words[1]);
  }
  if (words.size() < 3) return choice;
  if (words.size() > 3 || words[1] != "dedicated" || words[2] != "added") {
    fail(key, value, "only dedicated servers are added, by a third word");
  }
  choice.added_machines = std::stoi(words.front());
  return choice;
}

}  // namespace

std::optional<SyncChoice> sync_choice(std::string_view key, std::string_view value) {
  if (mapping_of(key).empty() || value.starts_with("{")) return std::nullopt;
  if (is_call(value)) return servers_choice(key, value);
  if (key == "plan.sync" && !value_of<SyncAlgorithm>(value)) {
    fail(key, value, fmt::format("there is no algorithm {}", value));
  }
  return SyncChoice{{{fmt::format("{}{}", mapping_of(key), algorithm_key), std::string(value)}}};
}

std::string sync_words(std::string_view value) {
  if (!is_call(value)) return spoken(std::string(value));
  const std::vector<std::string> words = arguments_of(value);
  const std::string servers = words.front() == "1" ? "server" : "servers";
  if (words.size() == 1) return fmt::format("{} {}", words.front(), servers);
  const bool on_processor = words[1] == "cpu" || words[1] == "gpu";
  if (on_processor) return fmt::format("{} {} on {}s", words.front(), servers, words[1] == "cpu" ? "CPU" : "GPU");
  return fmt::format("{} {} {}{}", words.front(), words[1], servers, words.size() > 2 ? ", added" : "");
}

void add_machines(Case& row, int machines) {
  constexpr const char* nodes_key = "cluster.nodes";
  const YamlNode document = document_of(row);
  if (document.at("cluster.groups") != nullptr) {
    throw UsageError(
        fmt::format("--vary {}: servers are added to cluster.nodes, but {} has cluster.groups; leave out "
                    "\"added\", and state a group for them",
                    row.name, row.base));
  }
  const YamlNode* nodes = document.at(nodes_key);
  const std::int64_t own = nodes == nullptr ? 1 : parse_integer(nodes->scalar, 1, 1'000'000'000);
  std::erase_if(row.overrides, [](const Override& change) { return change.key == nodes_key; });
  row.overrides.push_back({nodes_key, std::to_string(own + machines), {"--vary " + row.name, 0, 0}});
}

void leave_out_unused(std::vector<Override>& overrides) {
  for (const std::string_view mapping : {"plan.sync.", "workload.collective."}) {
    const auto chosen = std::ranges::find(overrides, std::string(mapping) + std::string(algorithm_key), &Override::key);
    if (chosen == overrides.end() || !keys::has_no_servers(chosen->value)) continue;
    std::erase_if(overrides, [&](const Override& change) {
      return change.key.starts_with(mapping) &&
             keys::is_server_key(std::string_view(change.key).substr(mapping.size()));
    });
  }
}

}  // namespace foretrain
