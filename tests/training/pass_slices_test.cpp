// A layer's pass cut where its collectives are: moments and work by hand.
#include "model/training/graph/pass_slices.hpp"
#include "model/training/pricing/layer_cost.hpp"

#include "tests/catch.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;

namespace {

/// "work:transfers" of each slice but the host's, those with a "|" beside their work: "2: 2.4|7 2: 3:5".
std::string reported(const PassCost::Part& part) {
  std::vector<PassSlice> slices =
      slices_of({test::compute(((part.again + part.own) * (part.to - part.from)).value()), {part}});
  CHECK(slices.back().work == Seconds(0.0));
  slices.pop_back();
  std::string text;
  for (const PassSlice& slice : slices) {
    std::string work = std::to_string(std::round(slice.work.value() * 1000.0) / 1000.0);
    work.erase(work.find_last_not_of('0') + 1);
    if (work.back() == '.') work.pop_back();
    text += (text.empty() ? "" : " ") + work + (slice.beside ? "|" : ":");
    for (const int transfer : slice.transfers) text += std::to_string(transfer);
  }
  return text;
}

/// A pass of 12 s.
std::string forward(const PassCalls& calls, double from = 0.0, double to = 1.0) {
  return reported({{}, Seconds(12.0), std::make_shared<LayerCalls>(LayerCalls{calls, {}, {}}), false, from, to});
}

}  // namespace

TEST_CASE("Collectives between kernels are spread evenly, the last one at the end") {
  PassCalls calls;
  CHECK(forward(calls) == "12:");
  calls.between = {1};
  CHECK(forward(calls) == "12:1");
  calls.between = {1, 2, 3};
  CHECK(forward(calls) == "4:1 4:2 4:3");
  // From a quarter to three quarters of the pass: 1 s of the first third, the second, and 1 s of the last.
  CHECK(forward(calls, 0.25, 0.75) == "1:1 4:2 1:");
}

TEST_CASE("What runs beside a pass's first kernels leaves the rest of them to the collectives between") {
  PassCalls calls;
  calls.beside = {7, 8};
  calls.hiding = 0.25;
  calls.between = {1, 2};
  CHECK(forward(calls) == "3|78 4.5:1 4.5:2");
}

TEST_CASE("Kernels that hide nothing lie evenly before, between and behind those that hide a collective") {
  PassCalls calls;
  calls.behind = {{4, 0.2}, {5, 0.3}};
  // Half of 12 s hides nothing: 2 s in each of three places.
  CHECK(forward(calls) == "2: 2.4|4 2: 3.6|5 2:");
  // A collective between kernels makes a place more: 1.5 s each, of which the last two end in it.
  calls.between = {1};
  CHECK(forward(calls) == "1.5: 2.4|4 1.5: 3.6|5 3:1");
}

TEST_CASE("A backward pass begins with what runs again") {
  const auto calls = std::make_shared<LayerCalls>();
  calls->recompute.between = {5};
  calls->backward.between = {6};
  Seconds again(4.0);
  const auto backward = [&](double from, double to) { return reported({again, Seconds(8.0), calls, true, from, to}); };
  CHECK(backward(0.0, 1.0) == "4:5 8:6");
  // 2 to 8 s of 12: half of the recomputation, and half of the rest.
  CHECK(backward(1.0 / 6.0, 2.0 / 3.0) == "2:5 4:");
  CHECK(backward(1.0 / 3.0, 1.0) == "8:6");
  again = Seconds(0.0);
  CHECK(backward(0.5, 1.0) == "4:6");
}

TEST_CASE("Of a pass's kernels those that no product's collective takes may run beside others, as far as they hide") {
  PassCalls calls;
  calls.behind = {{4, 0.2}, {5, 0.5}};
  calls.beside = {7};
  calls.hiding = 0.2;
  CHECK(calls.share_beside() == Approx(0.2));
  calls.hiding = 0.6;
  CHECK(calls.share_beside() == Approx(0.3));
  calls.hiding = 0.2;
  CHECK(calls.share_of_exchanges() == Approx(0.1));  // kernels of another pass, all that are left
}

TEST_CASE("Dispatch runs ahead of kernels, collectives and copies together") {
  LayerPassCost cost;
  cost.kernels = Seconds(3.0);
  cost.exposed = Seconds(1.0);
  cost.exposed_copies = Seconds(2.0);
  cost.dispatch = Seconds(6.0);
  CHECK(cost.time_breakdown().host.value() == 0.0);
  CHECK(cost.time_breakdown().total().value() == Approx(6.0));
  cost.dispatch = Seconds(10.0);
  CHECK(cost.time_breakdown().host.value() == Approx(4.0));
  // Copies are no collectives of the step.
  CHECK(cost.time_breakdown().exposed.value() == Approx(1.0));
}
