// What results say of a step, against sums and ratios of what they say beside it.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

TrainResult trained(const std::string& run) { return *estimate(load_scenario(run)).train(); }

}  // namespace

TEST_CASE("A token meets the shared weights and those of its experts alone") {
  // 671 billion weights in all, of which 37 are used for a token (the model's own report).
  const TrainResult experts = trained("deepseek-v3-2048-h100");
  CHECK(experts.parameters == Approx(671e9).epsilon(0.02));
  CHECK(experts.active_parameters == Approx(37e9).epsilon(0.05));
  const TrainResult dense = trained("failures-waiting-for-checkpoints");
  CHECK(dense.active_parameters == dense.parameters);
  // 512 sequences of 2,048 tokens a step, on 512 GPUs.
  CHECK(dense.tokens_per_second == Approx(512.0 * 2048.0 / dense.step_time.value()));
  CHECK(dense.tokens_per_second_per_gpu == Approx(2048.0 / dense.step_time.value()));
}

TEST_CASE("The parts of a step by servers are its time, and links and servers are used as far as they bound it") {
  for (const char* run : {"servers-sharded-servers", "servers-colocated-servers", "servers-hashed-keys"}) {
    INFO(run);
    const TrainResult train = trained(run);
    CHECK(train.breakdown.total().value() == Approx(train.step_time.value()));
    CHECK(train.breakdown.data_stall.value() == Approx(0.0).margin(1e-9 * train.step_time.value()));
    REQUIRE(train.parameter_server);
    const double link = train.parameter_server->link_bound / train.step_time;
    const double server = train.parameter_server->server_bound / train.step_time;
    CHECK(train.parameter_server->link_utilisation == Approx(link < 1.0 ? link : 1.0));
    CHECK(train.parameter_server->cpu_utilisation == Approx(server < 1.0 ? server : 1.0));
  }
}
