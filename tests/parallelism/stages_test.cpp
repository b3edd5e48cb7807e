#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/parallelism/stages.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Layer layer_of(const std::string& name, bool splittable, double rows) {
  Layer layer;
  layer.name = name;
  layer.splittable = splittable;
  layer.forward.push_back({name, Matmul{1, static_cast<std::int64_t>(rows), 8, 8, false}, Precision::fp16, 1});
  return layer;
}

Model transformer_of(int blocks) {
  Model model;
  model.layers.push_back({layer_of("embedding", false, 1), 1});
  model.layers.push_back({layer_of("block", true, 10), blocks});
  model.layers.push_back({layer_of("head", false, 5), 1});
  return model;
}

int blocks_in(const std::vector<LayerRun>& chunk) {
  int blocks = 0;
  for (const LayerRun& run : chunk) blocks += run.group == 1 ? run.count : 0;
  return blocks;
}

}  // namespace

TEST_CASE("equal layers are divided evenly, with the embedding first and the head last") {
  const auto chunks = split_layers(transformer_of(96), 8, 1);
  REQUIRE(chunks.size() == 8);
  for (const auto& chunk : chunks) CHECK(blocks_in(chunk) == 12);
  CHECK(chunks.front().front().group == 0);
  CHECK(chunks.back().back().group == 2);
}

TEST_CASE("layers that do not divide leave the first and the last stage lighter") {
  // 30 layers over 4 stages: 7 each and two more, which go to the middle.
  const auto chunks = split_layers(transformer_of(30), 4, 1);
  CHECK(blocks_in(chunks[0]) == 7);
  CHECK(blocks_in(chunks[1]) == 8);
  CHECK(blocks_in(chunks[2]) == 8);
  CHECK(blocks_in(chunks[3]) == 7);
}

TEST_CASE("no division of unequal layers has a lighter heaviest stage, and layers without a cost are no exception") {
  std::uint64_t state = 1;
  for (int round = 0; round < 200; ++round) {
    // Up to nine layers of 0 to 9, as all their divisions can be tried.
    const int layers = 3 + static_cast<int>(split_mix(state) % 7), stages = 2 + static_cast<int>(split_mix(state) % 2);
    std::vector<double> cost;
    Model model;
    for (int i = 0; i < layers; ++i) {
      cost.push_back(static_cast<double>(split_mix(state) % 10));
      model.layers.push_back({layer_of("layer" + std::to_string(i), true, cost.back()), 1});
    }
    const auto heaviest = [&](const std::vector<int>& sizes) {
      double most = 0.0;
      for (int k = 0, i = 0; k < static_cast<int>(sizes.size()); ++k) {
        double sum = 0.0;
        for (const int end = i + sizes[at_index(k)]; i < end; ++i) sum += cost[at_index(i)];
        most = std::max(most, sum);
      }
      return most;
    };
    double least = 1e9;
    for (int a = 1; a < layers; ++a) {
      if (stages == 2) least = std::min(least, heaviest({a, layers - a}));
      for (int b = 1; stages == 3 && a + b < layers; ++b) least = std::min(least, heaviest({a, b, layers - a - b}));
    }
    std::vector<int> sizes;
    for (const auto& chunk : split_layers(model, stages, 1)) sizes.push_back(static_cast<int>(chunk.size()));
    CAPTURE(cost, sizes);
    CHECK(heaviest(sizes) == least);
    CHECK(*std::ranges::min_element(sizes) >= 1);
  }
}

TEST_CASE("ten thousand unequal layers are divided at once") {
  Model model = transformer_of(5000);
  model.layers.push_back({layer_of("wide", true, 20), 5000});
  const auto chunks = split_layers(model, 50, 2);
  REQUIRE(chunks.size() == 100);
  for (const auto& chunk : chunks) {
    double cost = 0.0;
    for (const LayerRun& run : chunk) cost += run.count * (run.group == 3 ? 20.0 : run.group == 1 ? 10.0 : 0.0);
    CHECK(cost <= 1500.0);  // 150,000 over a hundred
  }
}

TEST_CASE("unequal layers are cut where the heaviest stage is lightest") {
  // Costs 8 4 4 2 2 2 2 over three stages: only 8 | 4+4 | 2+2+2+2 has no stage above 8.
  Model model;
  for (const double rows : {8.0, 4.0, 4.0, 2.0, 2.0, 2.0, 2.0})
    model.layers.push_back({layer_of("layer", true, rows), 1});
  const auto chunks = split_layers(model, 3, 1);
  CHECK(chunks[0].size() == 1);
  CHECK(chunks[1].size() == 2);
  CHECK(chunks[2].size() == 4);
}

TEST_CASE("embedding and loss may count as layers") {
  // Llama 3 405B: 126 layers and two ends over 16 stages are 8 each, so that the first and the last have 7 layers.
  const auto stages = split_layers(transformer_of(126), 16, 1, true);
  CHECK(blocks_in(stages[0]) == 7);
  CHECK(blocks_in(stages[1]) == 8);
  CHECK(blocks_in(stages[15]) == 7);
  // Over 128 chunks the ends fill one each.
  const auto chunks = split_layers(transformer_of(126), 16, 8, true);
  CHECK(blocks_in(chunks.front()) == 0);
  CHECK(chunks.front().front().group == 0);
  CHECK(blocks_in(chunks[1]) == 1);
  CHECK(blocks_in(chunks.back()) == 0);
  CHECK(chunks.back().front().group == 2);
  CHECK_THROWS_AS(split_layers(transformer_of(126), 129, 1, true), ImpossiblePlan);
  // Costs 8 4 4 2 2 2 2 have a mean of 24 / 7 = 3.4, which the embedding and the loss add: 3.4 + 8 | 4 + 4 | 4 · 2
  // + 3.4 has no stage above 11.4.
  Model model;
  for (const double rows : {8.0, 4.0, 4.0, 2.0, 2.0, 2.0, 2.0})
    model.layers.push_back({layer_of("layer", true, rows), 1});
  const auto unequal = split_layers(model, 3, 1, true);
  CHECK(unequal[0].size() == 1);
  CHECK(unequal[1].size() == 2);
  CHECK(unequal[2].size() == 4);
}

TEST_CASE("more chunks than layers are refused with the number that would do") {
  CHECK_THROWS_AS(split_layers(transformer_of(6), 8, 1), ImpossiblePlan);
  CHECK_NOTHROW(split_layers(transformer_of(8), 8, 1));
}

TEST_CASE("the first stage holds as many micro-batches as there are stages, or all of them") {
  const auto most_in_flight = [](PipelineSchedule schedule, int stages, int stage, int micro_batches) {
    int now = 0, most = 0;
    for (const PipelinePass& pass : pipeline_order(schedule, stages, stage, 1, micro_batches)) {
      now += pass.backward() ? -1 : 1;
      most = std::max(most, now);
    }
    return most;
  };
  // arXiv 2104.04473, section 2.2.1: at most p in flight on the first stage, one on the last.
  constexpr auto alternating = PipelineSchedule::one_forward_one_backward;
  CHECK(most_in_flight(alternating, 8, 0, 64) == 8);
  CHECK(most_in_flight(alternating, 8, 7, 64) == 1);
  CHECK(most_in_flight(alternating, 8, 0, 4) == 4);  // never more than there are
  CHECK(most_in_flight(PipelineSchedule::gpipe, 8, 7, 64) == 64);
}

TEST_CASE("layers by the speed of stages: the slowest stage is as fast as can be") {
  const auto stage = [](double seconds, double before = 0.0, double behind = 0.0) {
    return StageTimes{std::vector<Seconds>(12, Seconds(seconds)), Seconds(before), Seconds(behind)};
  };
  // Two stages, the second at half the speed: 8 layers of 1 s and 4 of 2 s take 8 s each.
  CHECK(layers_by_speed({stage(1.0), stage(2.0)}) == std::vector<int>{8, 4});
  // A loss of 5 s behind the last layer: 10 layers of 1 s, and 2 of 2 s with it 9 s; 9 and 3 would be 9 and 11.
  CHECK(layers_by_speed({stage(1.0), stage(2.0, 0.0, 5.0)}) == std::vector<int>{10, 2});
  // Equal stages have equal shares.
  CHECK(layers_by_speed({stage(1.0), stage(1.0), stage(1.0)}) == std::vector<int>{4, 4, 4});
}

TEST_CASE("stages hold the layers that a plan states") {
  Plan plan;
  plan.pipeline = 3;
  plan.stage_layers = {10, 6, 4};
  const auto chunks = split_layers(transformer_of(20), plan);
  REQUIRE(chunks.size() == 3);
  CHECK(blocks_in(chunks[0]) == 10);
  CHECK(blocks_in(chunks[1]) == 6);
  CHECK(blocks_in(chunks[2]) == 4);
  CHECK(chunks[0].front().group == 0);
  CHECK(chunks[2].back().group == 2);
}
