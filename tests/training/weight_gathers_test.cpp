// Updated weights of ZeRO-1 and 2 on their way back: which messages, on which links, and what of them is waited for.
#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;
using test::BuiltStep;

namespace {

/// Nodes of eight A100 with four cards of 100 Gbit/s.
std::string roce(int nodes, const std::string& model, int batch) {
  return fmt::format(R"(
cluster: {{ node: dgx-a100-80gb, nodes: {}, network: {{ nics_per_node: 4, nic_bandwidth: 100 Gbit/s }} }}
workload:
  train: {{ model: {}, global_batch: {}, micro_batch: 1, precision: bf16, optimizer: adamw }}
plan: {{ zero: 1, sync: {{ gradient_precision: bf16 }} }}
)",
                     nodes, model, batch);
}

const std::string seven_billion =
    "{ family: llama, layers: 32, hidden: 4096, ffn_hidden: 11008, heads: 32, vocabulary: 103168, sequence: 2048, "
    "gated_ffn: true, tied_embeddings: false }";
const std::string small =
    "{ family: llama, layers: 4, hidden: 2048, ffn_hidden: 5632, heads: 16, vocabulary: 32000, sequence: 2048 }";

Scenario scenario_of(const std::string& text, std::vector<std::string> overrides) {
  return load_scenario_text(text, "roce.yaml", std::move(overrides));
}

/// All gathers of the first rank class: how many messages are sent, and of how many bytes together, as the rank next to
/// the first in the ring receives them.
struct Sent {
  std::string name;
  double messages = 0.0;
  Seconds time;
};
Sent sent_by(const Step& step) {
  Sent sent;
  for (const Step::Chunk& chunk : step.rank_classes.front().chunks) {
    for (const WeightGather& gather : chunk.gathers) {
      for (const int index : gather.transfers) {
        const Step::Transfer& transfer = step.transfers[at_index(index)];
        sent.name = transfer.name;
        sent.time += transfer.parts.front().uncontended;
        for (const LoweredCollective::Phase& phase : transfer.parts.front().lowered.phases) {
          sent.messages += static_cast<double>(phase.repeat);
        }
      }
    }
  }
  return sent;
}

CommunicationTime of_weights(const Result& result) {
  CommunicationTime sum;
  for (const auto& [name, time] : result.train()->communication) {
    if (!name.starts_with("weight ")) continue;
    sum.total += time.total;
    sum.exposed += time.exposed;
  }
  return sum;
}

/// One stage of equal parts, each of which waits for weights that take `gather`.
Step parts_that_wait(int parts, double forward, double gather) {
  Step step = test::data_parallel_step(1, forward * parts, 2.0 * forward * parts, 0.0, true);
  step.gather_overlap = true;
  const int transfer = test::add_transfer(step, gather, {0}, "weight all-gather");
  step.rank_classes[0].chunks[0].gathers.assign(at_index(parts), {{transfer}, {test::compute(forward)}});
  return step;
}

}  // namespace

TEST_CASE("what is waited for of gathered weights follows from buckets and layers") {
  // The first part waits for its own weights. Where a part takes longer than the next one's weights, nothing else is
  // waited for. Where it is shorter, all weights are there after n gathers, and the last part runs after that.
  for (const int parts : {1, 2, 5, 30}) {
    for (const double gather : {0.25, 1.0, 3.0}) {
      const double forward = 1.0, n = parts;
      const double first_pass = gather <= forward ? gather + n * forward : n * gather + forward;
      CAPTURE(parts, gather);
      const Step step = parts_that_wait(parts, forward, gather);
      CHECK(test::uncontended_times(step).end.value() == Approx(first_pass + 2.0 * n * forward));
      // Later micro-batches find the weights there: each takes its own passes alone.
      Step more = step;
      more.micro_batches = 4;
      CHECK(test::uncontended_times(more).end.value() ==
            Approx(first_pass + 2.0 * n * forward + 3 * 3.0 * n * forward));
    }
  }
}

TEST_CASE("weights come back in the messages of the trainer") {
  // 16 ranks. In buckets of 100 MB of bf16 gradients: as many gathers as gradients' collectives, at least bytes / 100
  // MB. Whole: one. By owners of tensors: one broadcast each, or fewer where there are fewer tensors. By tensors: two
  // for each matrix, of which four layers have four (q, k and v as one, and so the two that come first of the gated
  // part), embedding and head one each: 2 x (4 x 4 + 2).
  struct Row {
    const char* gather;
    const char* name;
    double least, most;
  };
  const std::string text = roce(2, small, 32);
  for (const Row& row : {Row{"buckets", "weight all-gather", 5, 12}, Row{"whole", "weight all-gather", 1, 1},
                         Row{"owners", "weight broadcast", 15, 16}, Row{"tensors", "weight broadcast", 36, 36}}) {
    CAPTURE(row.gather);
    const BuiltStep built(
        scenario_of(text, {"plan.sync.bucket=100 MB", fmt::format("plan.sync.gather={}", row.gather)}));
    const Sent sent = sent_by(built.step);
    CHECK(sent.name == row.name);
    CHECK(sent.messages >= row.least - 0.5);
    CHECK(sent.messages <= row.most + 0.5);
  }
}

TEST_CASE("owners are never more than tensors") {
  // 1,024 ranks hold four layers of 5 to 7 matrices with a vector beside each, embedding and head.
  const BuiltStep built(scenario_of(roce(128, small, 1024), {"plan.sync.gather=owners"}));
  CHECK(sent_by(built.step).messages < 100.0);
  // The owner of the largest tensor, 65.5 million numbers of the embedding, updates all of it: a thousandth would be
  // less.
  const BuiltStep whole(scenario_of(roce(128, small, 1024), {"plan.sync.gather=whole"}));
  CHECK(built.step.rank_classes.front().optimizer.compute > whole.step.rank_classes.front().optimizer.compute * 10.0);
}

TEST_CASE("ZeRO-1 by all-reduce moves gradients as no ZeRO does, whatever the shard") {
  for (const char* zero : {"{ stage: 1, by: all_reduce }", "{ stage: 1, shard: 8, by: all_reduce }",
                           "{ stage: 2, gradients: kept, by: all_reduce }"}) {
    CAPTURE(zero);
    const std::string text = roce(2, small, 32);
    const auto result = [&](const std::string& level) {
      return estimate(scenario_of(text, {"plan.sync.bucket=100 MB", "plan.zero=" + level}));
    };
    const Result divided = result(zero), plain = result("0");
    const auto& sent = divided.train()->communication;
    CHECK_FALSE(sent.contains("gradient reduce-scatter"));
    CHECK(sent.at("gradient all-reduce").total.value() ==
          Approx(plain.train()->communication.at("gradient all-reduce").total.value()));
    CHECK(of_weights(divided).total > Seconds(0.0));
  }
}

TEST_CASE(
    "states divided within a node beat states over all ranks; where owners broadcast, the more so the more there are") {
  // Over all ranks the weights cross the cards: 14.6 GB at less than 50 GB/s a node, and every message waits for n - 1
  // steps; within a node they pass NVLink. Gradients cross the cards in either case. As many broadcasts as ranks make
  // n (n - 1) steps, until there are as many as tensors.
  const std::string smaller =
      "{ family: llama, layers: 24, hidden: 2048, ffn_hidden: 5504, heads: 16, vocabulary: 92544, sequence: 4096 }";
  const std::string larger =
      "{ family: llama, layers: 40, hidden: 5120, ffn_hidden: 13824, heads: 40, vocabulary: 103168, sequence: 2048 }";
  for (const std::string& model : {smaller, seven_billion, larger}) {
    for (const char* trainer : {"internevo", "tuned", "deepspeed", "megatron"}) {
      double gained_before = 0.0;
      for (const int nodes : {32, 64, 128}) {
        CAPTURE(model, trainer, nodes);
        const auto step = [&](const char* zero) {
          return estimate(scenario_of(roce(nodes, model, nodes * 64),
                                      {fmt::format("plan.framework={}", trainer), fmt::format("plan.zero={}", zero),
                                       "plan.sync.overlap=true", "workload.train.micro_batch=2"}))
              .train()
              ->step_time.value();
        };
        const double gained = step("1") - step("{ stage: 1, shard: 8 }");
        CHECK(gained > 0.0);
        if (std::string_view(trainer) == "internevo") CHECK(gained > gained_before);
        gained_before = gained;
      }
    }
  }
}
