// A framework file's settings stand line by line in the verbose output.
#include <sstream>

#include "model/scenario/load/load.hpp"
#include "reports/result/text.hpp"
#include "sim/simulate.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct StatedRow {
  const char* key;
  const char* value;
  const char* other;
};

const std::vector<StatedRow> settings = {{"plan.sync.algorithm", "ring", "tree"},
                                         {"plan.sync.bucket", "ddp", "whole"},
                                         {"plan.sync.first_bucket", "2 MB", "3 MB"},
                                         {"plan.sync.bucketing", "by_layer", "by_tensor"},
                                         {"plan.sync.overlap", "true", "false"},
                                         {"plan.sync.separate_bucket_buffers", "false", "true"},
                                         {"plan.sync.accumulation", "fused", "added"},
                                         {"plan.sync.gradient_precision", "fp32", "bf16"},
                                         {"plan.execution", "eager", "compiled"},
                                         {"workload.train.kernels", "fused", "unfused"},
                                         {"workload.train.fusions", "none", "norm"},
                                         {"workload.train.fused_qkv", "true", "false"},
                                         {"workload.train.native_attention", "true", "false"},
                                         {"workload.train.cache_cast_weights", "false", "true"},
                                         {"workload.train.fused_optimizer", "true", "false"},
                                         {"workload.train.clip_gradients", "true", "false"},
                                         {"workload.train.context_sharding", "zigzag", "contiguous"},
                                         {"workload.train.fp8_all_gather", "true", "false"},
                                         {"workload.train.keep_gathered_inputs", "false", "true"},
                                         {"workload.train.loss", "eager", "fused"},
                                         {"workload.train.inplace_cross_entropy", "false", "true"},
                                         {"workload.train.master_weights", "true", "false"},
                                         {"workload.train.layer_overhead", "1 us", "2 us"},
                                         {"workload.train.layer_dispatch", "1 us", "2 us"},
                                         {"workload.train.memory_stretch", "1.1", "1.2"},
                                         {"workload.train.kernel_slowdown", "1.1", "1.2"},
                                         {"workload.train.activation_stretch", "1.1", "1.2"}};

/// A trainer's file with these settings, of which the one at `changed` has its other value.
std::string trainer_file(std::size_t changed) {
  std::string text = "kind: framework\nname: mine\nhabits:\n";
  for (std::size_t i = 0; i < settings.size(); ++i) {
    text += fmt::format("  {}: {{ value: {}, kind: assumption, source: mine }}\n", settings[i].key,
                        i == changed ? settings[i].other : settings[i].value);
  }
  return text;
}

/// The lines about settings, their columns one blank apart; sources stand below them.
std::vector<std::string> setting_lines(std::size_t changed) {
  const TemporaryFolder folder;
  const std::string scenario =
      "cluster: { node: dgx-h100 }\nworkload: { train: { model: gpt2, global_batch: 64 } }\nplan: { trainer: " +
      folder.write("mine.yaml", trainer_file(changed)).string() + " }\n";
  std::istringstream text(to_text(predict(load_scenario_text(scenario, "settings.yaml"), Fidelity::estimate),
                                  TextOptions{.verbose = true}));
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

TEST_CASE("A setting that changes in a trainer's file changes its own line and no other") {
  const std::vector<std::string> before = setting_lines(settings.size());
  for (std::size_t changed = 0; changed < settings.size(); ++changed) {
    const auto& [key, value, other] = settings[changed];
    CAPTURE(key);
    const std::vector<std::string> after = setting_lines(changed);
    REQUIRE(after.size() == before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool own = before[i].starts_with(fmt::format("{} = {} ", key, value));
      CHECK(after[i] == (own ? fmt::format("{} = {} (framework) mine", key, other) : before[i]));
    }
    CHECK(std::ranges::count(before, fmt::format("{} = {} (framework) mine", key, value)) == 1);
  }
}
