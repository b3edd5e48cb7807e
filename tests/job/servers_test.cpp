// What a step by parameter servers says of its messages.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("what sticks out of the passes is shared out between pushes and pulls") {
  // Most of both is hidden behind the backward and the next forward pass; as many bytes go there as back.
  const TrainResult train = *estimate(load_scenario("servers-sharded-servers")).train();
  const Seconds exposed = train.breakdown.exposed_communication;
  const CommunicationTime push = train.communication.at("gradient push"), pull = train.communication.at("weight pull");
  REQUIRE(exposed > Seconds(0.0));
  REQUIRE(exposed < 0.5 * push.total);
  CHECK(push.exposed.value() == Approx(0.5 * exposed.value()));
  CHECK(pull.exposed.value() == Approx(0.5 * exposed.value()));
}

TEST_CASE("MFU is of the workers' GPUs; servers on machines of their own have none that train") {
  // Eight workers: every image is 3 x 8.2 GFLOP forward and backward, of eight times 15.7 TFLOP/s.
  const TrainResult train = *estimate(load_scenario("servers-sharded-servers")).train();
  const double images = train.samples_per_second;
  CHECK(train.mfu == Approx(images * 3.0 * 8.2e9 / (8.0 * 15.7e12)).epsilon(0.03));
  CHECK(train.model_flops_per_second_per_gpu.value() == Approx(images * 3.0 * 8.2e9 / 8.0).epsilon(0.03));
  CHECK(train.tokens_per_second_per_gpu == Approx(train.tokens_per_second / 8.0));
}
