// Settings of other tools: which value counts, and what machines a configuration speaks of.
#include "reports/import/settings.hpp"

#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Settings settings_of(const std::vector<std::pair<std::string, std::string>>& all) {
  std::vector<ForeignSetting> settings;
  for (const auto& [key, value] : all)
    settings.push_back({key, value, {"f", static_cast<int>(settings.size()) + 1, 1}});
  return Settings(std::move(settings));
}

ImportInput named_input() { return {.file = "f", .text = "", .overrides = {}, .scenario = {}}; }

/// A TrainingSize that is identified by something.
struct Size {
  std::optional<std::int64_t> gpus = {}, gpus_per_node = {}, nodes = {};
  std::int64_t replica = 1;
};

/// "4 x 8" where both are reported, "(4) x 8" where nodes are assumed, and nothing behind the cross where all are used.
std::string cluster_of(const Size& size) {
  const ImportInput input = named_input();
  Draft draft(input);
  set_cluster(draft, {size.gpus, size.gpus_per_node, size.nodes, size.replica, {}, "reported"});
  const std::string text = draft.text("");
  const bool assumed = text.find("nodes: " + draft.scalar("cluster.nodes") + "  # assumed") != std::string::npos;
  const std::string nodes = draft.scalar("cluster.nodes"), each = draft.scalar("cluster.gpus_per_node");
  return (assumed ? "(" + nodes + ")" : nodes) + (each.empty() ? "" : " x " + each);
}

}  // namespace

TEST_CASE("machines are as many as GPUs tell, and the least that hold a replica where nothing is reported") {
  CHECK(cluster_of({}) == "(1)");
  CHECK(cluster_of({.replica = 8}) == "(1)");
  CHECK(cluster_of({.replica = 9}) == "(9)");   // whole replicas and whole machines: 72 GPUs
  CHECK(cluster_of({.replica = 12}) == "(3)");  // 24
  CHECK(cluster_of({.gpus_per_node = 4, .replica = 6}) == "(3) x 4");
  CHECK(cluster_of({.gpus = 64}) == "8");
  CHECK(cluster_of({.gpus = 4}) == "1 x 4");
  CHECK(cluster_of({.gpus = 12}) == "(1)");  // no whole number of machines of eight
  CHECK(cluster_of({.gpus = 12, .gpus_per_node = 4}) == "3 x 4");
  CHECK(cluster_of({.gpus = 12, .nodes = 3}) == "3 x 4");
  CHECK(cluster_of({.gpus = 12, .nodes = 5}) == "5");
  CHECK(cluster_of({.nodes = 5}) == "5");
  CHECK(cluster_of({.gpus = 16, .gpus_per_node = 8, .nodes = 3}) == "3 x 8");
  CHECK(cluster_of({.replica = 1'000'000'000}) == "(125000000)");
  CHECK_THROWS_WITH(cluster_of({.replica = 1'000'000'001}), Catch::Contains("a replica of 1000000001 GPUs"));
}

TEST_CASE("the last of several settings counts, and words for none are none") {
  Settings settings = settings_of({{"a", "1"},
                                   {"a", "2"},
                                   {"b", "none"},
                                   {"c", "~"},
                                   {"c", "3"},
                                   {"d", "-1"},
                                   {"e", "$N"},
                                   {"f", "0"},
                                   {"g", "1_000"}});
  CHECK(settings.find("a")->value == "2");
  CHECK(settings.find("b") == nullptr);
  CHECK(settings.find("c")->value == "3");
  CHECK(settings.find("x") == nullptr);
  CHECK(settings.whole("a") == 2);
  CHECK_FALSE(settings.whole("d"));
  CHECK_FALSE(settings.whole("e"));
  CHECK_FALSE(settings.whole("x"));
  CHECK(settings.whole("f", 0) == 0);
  CHECK_THROWS_AS(settings.whole("f"), ScenarioError);
  CHECK(settings.whole("g", 1000) == 1000);
}

TEST_CASE("flags are identified by their words in any case, and by nothing behind them") {
  for (const char* yes : {"", "true", "True", "1", "yes", "ON"}) CHECK(settings_of({{"a", yes}}).flag("a"));
  for (const char* no : {"false", "0", "No", "off", "none", "null", "None", "auto"})
    CHECK_FALSE(settings_of({{"a", no}}).flag("a"));
  CHECK_FALSE(settings_of({{"b", "true"}}).flag("a"));
  CHECK_THROWS_WITH(settings_of({{"a", "2"}}).flag("a"), Catch::Contains("f:1:1: a: \"2\" is neither true nor false"));
}

TEST_CASE("what nobody asks for is left out by name") {
  const ImportInput input = named_input();
  Draft draft(input);
  Settings settings =
      settings_of({{"--asked", "1"}, {"--left", ""}, {"other.key", "2"}, {"log.every", "3"}, {"log", "4"}});
  settings.find("--asked");
  settings.ignore("log.");
  settings.leave_out_rest(draft);
  draft.set("workload", "none", draft.nowhere(), "");
  CHECK(draft.text("tool") == R"(# Written by `foretrain import tool f`.
workload: none
assumed:  # predictions repeat this; take out what you have stated
  not_understood: "line 2: --left; line 3: other.key: 2; line 5: log: 4"  # settings that are not understood: predictions leave them out
)");
}

TEST_CASE("values become ours by their kind") {
  const auto setting = [](const char* value) { return ForeignSetting{"--key", value, {"f", 1, 1}}; };
  CHECK(*whole_number(setting("12")) == "12");
  CHECK_THROWS_AS(whole_number(setting("0")), ScenarioError);
  CHECK(*positive_number(setting("1")) == "1");
  CHECK_FALSE(positive_number(setting("0")));
  CHECK_FALSE(positive_number(setting("-1")));
  CHECK_THROWS_AS(positive_number(setting("-2")), ScenarioError);
  CHECK_THROWS_WITH(whole_number(setting("$N")), Catch::Contains("$N is not set in this file"));
  CHECK(*whole_number(setting("1000000000")) == "1000000000");
  CHECK_THROWS_AS(whole_number(setting("1000000001")), ScenarioError);
  CHECK(*bytes_of_elements(setting("1000")) == "4000 B");
  CHECK_FALSE(bytes_of_elements(setting("0")));
  CHECK(*whether_above_zero(setting("1.0")) == "true");
  CHECK(*whether_above_zero(setting("0.0")) == "false");
  CHECK_FALSE(whether_above_zero(setting("$CLIP")));
  CHECK_THROWS_WITH(whether_above_zero(setting("-1")),
                    Catch::Contains("--key: \"-1\" is no number; a number, 0 or more"));
  CHECK_THROWS_AS(whether_above_zero(setting("1.0x")), ScenarioError);
  CHECK(*true_or_false(setting("off")) == "false");
  CHECK(*true_or_false(setting("yes")) == "true");
  CHECK(*where_true(setting("1"), {"text", "", ""}) == "text");
  CHECK_FALSE(where_true(setting("no"), {"text", "", ""}));
  const ValueWords words{"same theirs=ours", "no such", "one of these"};
  CHECK(*in_our_words(setting("Theirs"), words) == "ours");
  CHECK(*in_our_words(setting("SAME"), words) == "same");
  CHECK_THROWS_WITH(in_our_words(setting("ours"), words), Catch::Contains("--key: no such \"ours\"; one of these"));
  CHECK_THROWS_WITH(in_our_words(setting("x"), {"a", "", ""}), Catch::Contains("\"x\" is not modelled"));
  CHECK(named(setting("")) == "--key");
  CHECK(named(setting("1")) == "--key 1");
  CHECK(named({"key", "", {}}) == "key: ");
}

TEST_CASE("nested settings are identified by their paths, lists of values as one") {
  const YamlNode document = parse_yaml("a: { b: 1, c: [x, y], d: ~ }\ne:\n  - { f: 2 }\n  - 3\n", "f");
  std::string words;
  for (const ForeignSetting& s : flat_settings(document))
    words += fmt::format("{}={}@{} ", s.key, s.value, s.where.line);
  CHECK(words == R"(a.b=1@1 a.c=[x, y]@1 a.d=null@1 e[0].f=2@3 e=[3]@2 )");
}

TEST_CASE("a rank's batch is shared by those that hold a replica with it") {
  const ImportInput input = named_input();
  Draft draft(input);
  draft.set("plan.tensor", "2", draft.nowhere(), "");
  draft.set("plan.context", "3", draft.nowhere(), "");
  draft.set("plan.pipeline", "2", draft.nowhere(), "");
  const ForeignSetting says{"--key", "6", {"f", 1, 1}};
  set_batch_of_rank(draft, 6, says);
  CHECK(draft.scalar("workload.train.global_batch_per_gpu") == "0.5");
  CHECK(number_of(draft, "plan.context") == 3);
  CHECK(number_of(draft, "plan.data") == 1);
  Draft reported(input);
  reported.set("workload.train.global_batch", "64", reported.nowhere(), "");
  set_batch_of_rank(reported, 6, says);
  CHECK_FALSE(reported.has("workload.train.global_batch_per_gpu"));
}

TEST_CASE("what the user says is there already") {
  ImportInput input = named_input();
  input.overrides = {"workload.train.global_batch=64", "plan.zero={ stage: 3 }"};
  Draft draft(input);
  CHECK(draft.has("workload.train.global_batch"));
  CHECK(draft.has("plan.zero.stage"));
  CHECK_FALSE(draft.has("plan"));
  set_batch_of_rank(draft, 6, {"--key", "6", {"f", 1, 1}});
  CHECK_FALSE(draft.has("workload.train.global_batch_per_gpu"));
}
