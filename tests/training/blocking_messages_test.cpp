// Messages between stages that block the sender, on steps small enough to be written down.
#include "model/scenario/load/load.hpp"
#include "model/training/graph/step_graph.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;

namespace {

/// Stages whose passes take a second forward and two backward, and messages between them that take `hop`.
Step step_of(int stages, int micro_batches, double hop, bool blocking, bool overlap = true) {
  Step step = test::pipeline_step(PipelineSchedule::one_forward_one_backward, stages, 1, micro_batches, {}, hop);
  step.blocking_messages = blocking;
  step.overlap = overlap;
  return step;
}

double length(const Step& step) { return run(step_graph(step).graph).makespan.value(); }

}  // namespace

TEST_CASE("A blocking message holds up the next pass of the stage that has sent it") {
  // Two stages, one micro-batch: nobody has anything else to do. 1 + h + 1 + 2 + h + 2.
  CHECK(length(step_of(2, 1, 0.5, false)) == Approx(7.0));
  CHECK(length(step_of(2, 1, 0.5, true)) == Approx(7.0));

  // Four micro-batches in 1F1B. The first stage does F0 0–1 and F1 1–2, the second F0 from 1.5, B0 –4.5, F1, B1 –7.5.
  // B0's gradients arrive at 5: B0 5–7, F2 7–8, which the second stage has at 8.5: F2, B2 –11.5. B1 8–10, F3 10–11,
  // there at 11.5: F3, B3 –14.5. The last gradients arrive at 15: B3 15–17.
  CHECK(length(step_of(2, 4, 0.5, false)) == Approx(17.0));
  // Blocking, F1 waits for F0's arrival, 1.5–2.5. The second stage waits for B0's gradients till 5: F1, B1 5–8, sent
  // till 8.5. The first: B0 5–7, F2 7–8, arrived 8.5. Second: F2, B2 8.5–11.5, sent till 12. First: B1 8.5–10.5, F3
  // –11.5, arrived 12. Second: F3, B3 12–15, sent till 15.5. First: B3 15.5–17.5.
  CHECK(length(step_of(2, 4, 0.5, true)) == Approx(17.5));
}

TEST_CASE("Blocking messages never make a step shorter, and cost nothing where messages do not") {
  for (const int stages : {2, 3, 4}) {
    for (const int micro_batches : {1, 2, 5, 8}) {
      for (const bool overlap : {false, true}) {
        INFO(stages << " stages, " << micro_batches << " micro-batches");
        double before = length(step_of(stages, micro_batches, 0.0, true, overlap));
        CHECK(before == Approx(length(step_of(stages, micro_batches, 0.0, false, overlap))));
        for (const double hop : {0.1, 0.4, 1.0}) {
          const double blocking = length(step_of(stages, micro_batches, hop, true, overlap));
          CHECK(blocking >= length(step_of(stages, micro_batches, hop, false, overlap)) - 1e-12);
          CHECK(blocking > before);
          before = blocking;
        }
      }
    }
  }
}

TEST_CASE("Every schedule's stages can wait for their messages") {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe"}) {
    INFO(schedule);
    std::vector<std::string> plan{"cluster.nodes=2",
                                  "plan={ pipeline: 4, data: 4, schedule: " + std::string(schedule) +
                                      ", interleave: " + (std::string(schedule) == "interleaved" ? "2" : "1") + " }",
                                  "workload.train.global_batch=32", "workload.train.micro_batch=1"};
    const test::BuiltStep asynchronous(load_scenario("gpt2-xl-dgx-a100", plan));
    plan.emplace_back("plan.pipeline_messages=blocking");
    const test::BuiltStep blocking(load_scenario("gpt2-xl-dgx-a100", plan));
    CHECK(length(blocking.step) > length(asynchronous.step));
  }
}

TEST_CASE("What hosts take to agree on a message lengthens it there and back") {
  // Two stages and one micro-batch: nothing hides a message. One goes there and one comes back, each 5 ms longer.
  const auto step_with = [](const char* overhead) {
    const test::BuiltStep built(
        load_scenario("gpt2-xl-dgx-a100",
                      {"cluster.nodes=2", "plan={ pipeline: 2, data: 8 }", "workload.train.global_batch=8",
                       "workload.train.micro_batch=1", std::string("workload.train.message_overhead=") + overhead}));
    return length(built.step);
  };
  CHECK(step_with("5 ms") - step_with("0 ms") == Approx(0.010).epsilon(1e-6));
}

TEST_CASE("A host's work for other tensor ranks counts at each block, where stages are on different machines") {
  // Eight tensor ranks have seven others: 10 ms for each is what 70 ms at a block would be. Two stages of four ranks on
  // one machine have no message between machines, and one stage has none at all.
  const auto step_with = [](const char* nodes, const char* plan, const std::string& setting) {
    const test::BuiltStep built(
        load_scenario_text("cluster: { node: dgx-a100-80gb }\n"
                           "workload: { train: { global_batch: 16, micro_batch: 1, model: { family: gpt, layers: 12, "
                           "hidden: 1024, heads: 16, "
                           "vocabulary: 51200, sequence: 1024 } } }\n",
                           "run.yaml", {std::string("cluster.nodes=") + nodes, std::string("plan=") + plan, setting}));
    return length(built.step);
  };
  const std::string of_peers = "workload.train.p2p_dispatch_overhead=10 ms",
                    none = "workload.train.p2p_dispatch_overhead=0 ms";
  const char* across = "{ tensor: 8, pipeline: 2 }";
  CHECK(step_with("2", across, of_peers) == Approx(step_with("2", across, "workload.train.layer_dispatch=70 ms")));
  CHECK(step_with("2", across, of_peers) > 2.0 * step_with("2", across, none));
  for (const char* inside : {"{ tensor: 4, pipeline: 2 }", "{ tensor: 8 }"}) {
    CHECK(step_with("1", inside, of_peers) == step_with("1", inside, none));
  }
}
