// Impossible requests of a plan are reported at its key.
#include "model/base/error.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

std::string complaint(const std::string& workload, const std::string& plan) {
  const std::string text = "cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: " + workload + "\n" + plan;
  return test::complaint_of([&] { make_job(load_scenario_text(text, "s.yaml"), Fidelity::estimate); });
}

}  // namespace

TEST_CASE("What cannot be carried out is told at the key that asked for it") {
  const std::string network = "{ train: { model: resnet-50, global_batch: 64 } }";
  CHECK_THAT(complaint(network, "plan: { tensor: 2 }\n"),
             Catch::StartsWith("s.yaml:3:") && Catch::Contains("plan.tensor: 2 for a network that is no transformer"));
  // A DGX A100's switches add nothing up; the reader knows nothing of schedules, the schedule nothing of keys.
  CHECK_THAT(complaint("{ collective: { operation: all_reduce, size: 1 GB, algorithm: in_network } }", ""),
             Catch::StartsWith("s.yaml:2:") && Catch::Contains("workload.collective.algorithm: in_network"));
  CHECK(complaint(network, "plan: { data: 16 }\n") == "accepted");
}
