// The accuracy that is claimed, compared with the published training runs that come with the program.
#include "reports/measured/accuracy.hpp"
#include "tests/catch.hpp"
#include "tests/reports/accuracy_bar.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// Pairs of a table's rows that differ in these keys, but for one group.
PairReport pairs_in(const std::string& table, const char* left_out, const std::vector<std::string>& keys) {
  const std::vector<Case> rows = shipped_cases(table);
  std::vector<Rival> rivals;
  for (const Case& row : rows) {
    if (row.group == left_out) continue;
    for (Comparison& comparison : compare(row, predict(scenario_of(row), Fidelity::flows))) {
      rivals.push_back({&row, std::move(comparison)});
    }
  }
  return compare_pairs(rivals, keys);
}

bool is_of_one_gpu(const Case& row) {
  const auto workload = std::get<TrainWorkload>(scenario_of(row).workload);
  return workload.global_batch == workload.micro_batch;
}

/// Mean errors below this of a group of a table, or of each of its groups where none is named.
struct Bar {
  const char* table;
  std::string group;
  double bar;
  int rows = 0;  ///< where they are counted
};

}  // namespace

TEST_CASE("A bar that is missed names the worst row") {
  CHECK(missed(0.05, {.n = 3, .mape = 0.049, .worst = -0.08, .worst_case = "second"}) == "");
  CHECK(missed(0.05, {.n = 3, .mape = 0.05, .worst = -0.08, .worst_case = "second"}) ==
        "mean error 5.0 % of 3 rows, the bar is 5.0 %; worst is second, -8.0 %");
}

TEST_CASE("Published training runs are predicted within the bars that are claimed") {
  for (const Bar& bar : {
           Bar{"cases_vtrain_a100.csv", "vtrain", 0.10, 41},
           // 5.5 % with fused kernels; as FSDP runs them, operation by operation, 6.2 %.
           {"cases_llm_foundry_a100_80gb.csv", "llm-foundry-a100_80gb", 0.07, 61},
           {"cases_dgxc_llama3_h100.csv", "", 0.05},
           // On P100 and K80, parameter server and replicated.
           {"cases_tensorflow_2017.csv", "", 0.08},
           {"cases_nemo_fp8_h100.csv", "nemo-fp8-h100", 0.15},  // no row fitted
           // The first rows say `flash`, which is FlashAttention-4 here; what they ran is not printed, and all are
           // predicted too fast. The second are rates, predicted too slow, which weighs more as a time.
           {"cases_llama70b_b200_megatron.csv", "simumax-b200-70b", 0.14},
           {"cases_llama_fp8_h100_b200.csv", "mbridge-dense-b200-8b-fp8", 0.09},
           {"cases_torchtitan_cp_2d.csv", "", 0.06},  // memory
           {"cases_qwen3_30b_moe.csv", "mbridge-moe-h100-q30-fp8", 0.12},
           {"cases_qwen3_30b_moe.csv", "mbridge-moe-b200-q30-fp8", 0.12},
           // Nearly all are predicted too fast. A share of a product's speed had been fitted to these rows alone (4 %,
           // and 29 % without them): tiles and waves of all experts together know nothing of them.
           {"cases_grok1_moe_bf16_h100.csv", "grok1-moe-bf16", 0.12},
           {"cases_finetune_llama3_8b_h100.csv", "", 0.12},
           {"cases_megatron_deepspeed_a100.csv", "bigscience-a100", 0.06},
           {"cases_megatron_deepspeed_memory.csv", "bigscience-memory", 0.08},
           // Servers against rings over 25 Gbit/s. Servers are TensorFlow's, whose steps end with a barrier: 26 %.
           {"cases_horovod_2017_25g.csv", "horovod-2017-servers", 0.30},
           {"cases_horovod_2017_25g.csv", "horovod-2017-nccl", 0.20},
       }) {
    bool met = false;
    for (const auto& [name, errors] : errors_by(&Case::group, {bar.table})) {
      if (!bar.group.empty() && name != bar.group) continue;
      INFO(bar.table << " " << name);
      CHECK(missed(bar.bar, errors) == "");
      if (bar.rows > 0) CHECK(errors.n == bar.rows);
      met = true;
    }
    CHECK(met);
  }
}

TEST_CASE("TensorFlow 2017, the 46 rows of one GPU, convolutions and little else: within 8 % per platform") {
  // Five networks whose convolutions differ: AlexNet's long filters, VGG's 3x3, Inception's 1x7 and odd channels,
  // ResNet's 1x1. None is more than 17 % off on any platform.
  const auto platform_of = [](const Case& row) { return is_of_one_gpu(row) ? row.group : ""; };
  int rows = 0;
  for (const auto& [name, errors] : errors_by(platform_of, {"cases_tensorflow_2017.csv"})) {
    INFO(name);
    CHECK(missed(0.08, errors) == "");
    CHECK(std::fabs(errors.worst) < 0.17);
    rows += errors.n;
  }
  CHECK(rows == 46);
}

TEST_CASE("TensorFlow 2017: the faster way to synchronise is predicted to be the faster one") {
  // Google's and Amazon's machines hold the same eight K80; on one variables always lay on the CPU, on the other on
  // CPU, GPU or every GPU, by model. Of the pairs that this makes, those more than 5 % apart count.
  // Without P100: another GPU is no question of synchronisation.
  const PairReport pairs = pairs_in("cases_tensorflow_2017.csv", "tf2017-dgx1-p100", {"plan.sync", "cluster.node"});
  CHECK(pairs.n >= 4);
  CHECK(pairs.share() >= 0.85);
}

TEST_CASE("TensorFlow 2017: what its authors chose for each model and machine is predicted to be no mistake") {
  // The guide calls the settings of its tables optimal for each platform (performance guide, "Variables"): on P100 the
  // CPU for Inception and ResNets, replicated variables for AlexNet and VGG; on the K80s of Google the CPU, on those of
  // Amazon CPU, GPU or replicated by model. For every model, batch and number of GPUs above one: none of the other two
  // ways may be predicted more than 5 % faster than the chosen one.
  const std::vector<std::pair<std::string, std::string>> ways = {
      {"parameter_server", "cpu"}, {"parameter_server", "gpu"}, {"auto", ""}};
  int chosen_well = 0, all = 0;
  for (const Case& row : shipped_cases("cases_tensorflow_2017.csv")) {
    if (!row.source.ends_with("synthetic data")) continue;  // the same scenarios as with real data
    if (is_of_one_gpu(row)) continue;
    const double chosen = predict(scenario_of(row), Fidelity::flows).train()->samples_per_second;
    double best = 0.0;
    for (const auto& [algorithm, placement] : ways) {
      Case other = row;
      std::erase_if(other.overrides, [](const Override& cell) { return cell.key.starts_with("plan.sync."); });
      other.overrides.push_back({"plan.sync.algorithm", algorithm, row.where});
      if (algorithm == "parameter_server") other.overrides.push_back({"plan.sync.barrier", "true", row.where});
      if (!placement.empty()) other.overrides.push_back({"plan.sync.placement", placement, row.where});
      best = std::max(best, predict(scenario_of(other), Fidelity::flows).train()->samples_per_second);
    }
    ++all;
    if (chosen * 1.05 >= best) ++chosen_well;
  }
  CHECK(all == 69);
  CHECK(chosen_well >= 0.85 * all);
}

TEST_CASE("Servers against rings over 25 Gbit/s: the faster way is predicted to be the faster one") {
  const PairReport pairs = pairs_in("cases_horovod_2017_25g.csv", "horovod-2017-one-gpu",
                                    {"plan.sync", "plan.framework", "cluster.network"});
  CHECK(pairs.n == 6);
  CHECK(pairs.share() == 1.0);
}
