// The communication table names what carries each collective out.
#include "model/scenario/load/load.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("the communication table says by which algorithm, named or chosen") {
  const auto predicted = [](std::vector<std::string> changes) {
    return estimate(load_scenario("gpt2-xl-dgx-a100", std::move(changes)));
  };
  const auto gradients = [](const Result& result) { return result.train()->communication.at("gradient all-reduce"); };
  const Result named = predicted({});  // by ring, as the run says
  CHECK(gradients(named).algorithm == "ring");
  CHECK(gradients(predicted({"plan.sync.algorithm=naive"})).algorithm == "naive");
  CHECK(gradients(predicted({"plan.sync.algorithm=auto"})).algorithm.starts_with("ring/"));
  // Between tensor ranks of one node nobody named anything: the library's choice, of each size of message.
  const Result divided = estimate(load_scenario("gpt3-175b-1024-a100"));
  CHECK(divided.train()->communication.at("collectives inside layers").algorithm.find('/') != std::string::npos);
  CHECK(to_text(named).find("  ring\n") != std::string::npos);
  CHECK(to_json(named).find(R"("algorithm": "ring")") != std::string::npos);
}
