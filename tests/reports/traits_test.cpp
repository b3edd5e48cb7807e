// What a trainer's file says stands line by line in a prediction that tells all.
#include <sstream>

#include "model/scenario/load/load.hpp"
#include "reports/result/text.hpp"
#include "sim/simulate.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Habit {
  const char* key;
  const char* value;
  const char* other;
};

const std::vector<Habit> habits = {{"plan.sync.algorithm", "ring", "tree"},
                                   {"plan.sync.bucket", "ddp", "whole"},
                                   {"plan.sync.first_bucket", "2 MB", "3 MB"},
                                   {"plan.sync.bucketing", "by_layer", "by_tensor"},
                                   {"plan.sync.overlap", "true", "false"},
                                   {"plan.sync.copied", "false", "true"},
                                   {"plan.sync.accumulation", "fused", "added"},
                                   {"plan.sync.gradient_precision", "fp32", "bf16"},
                                   {"plan.execution", "eager", "compiled"},
                                   {"workload.train.kernels", "fused", "plain"},
                                   {"workload.train.fusions", "none", "norm"},
                                   {"workload.train.joined_projections", "true", "false"},
                                   {"workload.train.native_attention", "true", "false"},
                                   {"workload.train.cast_weights", "false", "true"},
                                   {"workload.train.fused_optimizer", "true", "false"},
                                   {"workload.train.clip_gradients", "true", "false"},
                                   {"workload.train.context_pieces", "balanced", "in_order"},
                                   {"workload.train.narrow_gathers", "true", "false"},
                                   {"workload.train.keep_gathered", "false", "true"},
                                   {"workload.train.loss", "eager", "fused"},
                                   {"workload.train.loss_in_place", "false", "true"},
                                   {"workload.train.master_weights", "true", "false"},
                                   {"workload.train.layer_overhead", "1 us", "2 us"},
                                   {"workload.train.layer_dispatch", "1 us", "2 us"},
                                   {"workload.train.memory_stretch", "1.1", "1.2"},
                                   {"workload.train.kernel_slowdown", "1.1", "1.2"},
                                   {"workload.train.activation_stretch", "1.1", "1.2"}};

/// A trainer's file with these habits, of which the one at `changed` has its other value.
std::string trainer_file(std::size_t changed) {
  std::string text = "kind: trainer\nname: mine\nhabits:\n";
  for (std::size_t i = 0; i < habits.size(); ++i) {
    text += fmt::format("  {}: {{ value: {}, kind: assumption, source: mine }}\n", habits[i].key,
                        i == changed ? habits[i].other : habits[i].value);
  }
  return text;
}

/// The lines about traits, their columns one blank apart; sources stand below them.
std::vector<std::string> trait_lines(std::size_t changed) {
  const TemporaryFolder folder;
  const std::string scenario =
      "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: 64 } }\nplan: { trainer: " +
      folder.write("mine.yaml", trainer_file(changed)).string() + " }\n";
  std::istringstream text(
      to_text(predict(load_scenario_text(scenario, "traits.yaml"), Fidelity::estimate), TextOptions{.verbose = true}));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line);
    std::string joined;
    for (std::string cell; cells >> cell;) joined += (joined.empty() ? "" : " ") + cell;
    if (joined.starts_with("plan.") || joined.starts_with("workload.train.")) lines.push_back(joined);
    if (joined == "mine" && !lines.empty()) lines.back() += " mine";  // a setting's source
  }
  return lines;
}

}  // namespace

TEST_CASE("A trait that changes in a trainer's file changes its own line and no other") {
  const std::vector<std::string> before = trait_lines(habits.size());
  for (std::size_t changed = 0; changed < habits.size(); ++changed) {
    const auto& [key, value, other] = habits[changed];
    CAPTURE(key);
    const std::vector<std::string> after = trait_lines(changed);
    REQUIRE(after.size() == before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool own = before[i].starts_with(fmt::format("{} = {} ", key, value));
      CHECK(after[i] == (own ? fmt::format("{} = {} (framework) mine", key, other) : before[i]));
    }
    CHECK(std::ranges::count(before, fmt::format("{} = {} (framework) mine", key, value)) == 1);
  }
}
