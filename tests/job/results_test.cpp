// Fields of results against sums and ratios of other fields.
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

TEST_CASE("what sticks out of the passes is shared out between pushes and pulls") {
  // Most of both is hidden behind the backward and the next forward pass; as many bytes go there as back.
  const TrainResult train = trained("servers-sharded-servers");
  const Seconds exposed = train.breakdown.exposed_communication;
  const CommunicationTime push = train.communication.at("gradient push"), pull = train.communication.at("weight pull");
  REQUIRE(exposed > Seconds(0.0));
  REQUIRE(exposed < 0.5 * push.total);
  CHECK(push.exposed.value() == Approx(0.5 * exposed.value()));
  CHECK(pull.exposed.value() == Approx(0.5 * exposed.value()));
}

TEST_CASE("MFU is of the workers' GPUs; servers on machines of their own have none that train") {
  // Eight workers: every image is 3 x 8.2 GFLOP forward and backward, of eight times 15.7 TFLOP/s.
  const TrainResult train = trained("servers-sharded-servers");
  const double images = train.samples_per_second;
  CHECK(train.mfu == Approx(images * 3.0 * 8.2e9 / (8.0 * 15.7e12)).epsilon(0.03));
  CHECK(train.model_flops_per_second_per_gpu.value() == Approx(images * 3.0 * 8.2e9 / 8.0).epsilon(0.03));
  CHECK(train.tokens_per_second_per_gpu == Approx(train.tokens_per_second / 8.0));
}
