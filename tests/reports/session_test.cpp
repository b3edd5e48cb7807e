// Caches of a session never change results.
#include "model/base/session.hpp"

#include "model/scenario/load/load.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/changes.hpp"

namespace foretrain::test {

namespace {

std::string answer(const std::vector<std::string>& overrides, Fidelity fidelity) {
  return to_json(predict(load_scenario_text(small_training, "small.yaml", overrides), fidelity));
}

std::string fresh_answer(const std::vector<std::string>& overrides, Fidelity fidelity) {
  Session fresh;
  const SessionScope scope(fresh);
  return answer(overrides, fidelity);
}

}  // namespace

TEST_CASE("A session that knows others answers as a fresh one, whatever it forgets at the same time") {
  constexpr std::size_t little = 2'000'000;  // so that what one point needs goes before the next one comes
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    Session much, forgetful(little);
    const std::string unchanged = fresh_answer({}, fidelity);
    for (const auto& [key, value] : changes) {
      INFO(key << "=" << value);
      const std::vector<std::string> overrides = {key + "=" + value};
      const std::string expected = fresh_answer(overrides, fidelity);
      for (Session* shared : {&much, &forgetful}) {
        const SessionScope scope(*shared);
        CHECK(answer(overrides, fidelity) == expected);
      }
    }
    const SessionScope scope(much);
    CHECK(answer({}, fidelity) == unchanged);
    CHECK(much.size() > forgetful.size());
  }
}

}  // namespace foretrain::test
