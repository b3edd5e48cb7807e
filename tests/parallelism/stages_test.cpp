
#include "model/parallelism/stages.hpp"
#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
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
  // With a third one the first stage has it, still not the last.
  const auto more = split_layers(transformer_of(31), 4, 1);
  CHECK(blocks_in(more[0]) == 8);
  CHECK(blocks_in(more[3]) == 7);
}

TEST_CASE("layers whose weights are frozen in part are no others; frozen layers of another size are") {
  // Four layers of cost 20 and two of 40: alike they are divided three and three, else four and two.
  const auto first_stage = [](double trained, double frozen) {
    Model model;
    model.layers = {{layer_of("block", true, 20), 4}, {layer_of("block", true, 40), 2}};
    model.layers[0].layer.parameters = 100.0;
    model.layers[1].layer.parameters = trained;
    model.layers[1].layer.frozen_parameters = frozen;
    return split_layers(model, 2, 1).front();
  };
  CHECK(first_stage(100.0, 0.0).size() == 1);
  CHECK(first_stage(100.0, 0.0).front().count == 3);
  CHECK(first_stage(60.0, 40.0).front().count == 3);
  CHECK(first_stage(100.0, 900.0).front().count == 4);
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
  CHECK_THROWS_WITH(split_layers(transformer_of(6), 8, 1), Catch::Contains("use at most 6 stages"));
  CHECK_THROWS_WITH(split_layers(transformer_of(6), 9, 1, true), Catch::Contains("use at most 8 stages"));
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

TEST_CASE("no division by speed has a faster slowest stage, whatever each takes") {
  std::uint64_t state = 7;
  for (int round = 0; round < 200; ++round) {
    const int layers = 3 + static_cast<int>(split_mix(state) % 5);
    std::vector<StageTimes> stages(3);
    for (StageTimes& stage : stages) {
      for (int i = 0; i < layers; ++i) stage.layers.emplace_back(1.0 + static_cast<double>(split_mix(state) % 20));
      stage.before = Seconds(static_cast<double>(split_mix(state) % 10));
      stage.behind = Seconds(static_cast<double>(split_mix(state) % 10));
    }
    const auto slowest = [&](const std::vector<int>& sizes) {
      Seconds most;
      for (int s = 0, i = 0; s < 3; ++s) {
        Seconds own = (s == 0 ? stages[0].before : Seconds(0.0)) + (s == 2 ? stages[2].behind : Seconds(0.0));
        for (const int end = i + sizes[at_index(s)]; i < end; ++i) own += stages[at_index(s)].layers[at_index(i)];
        most = std::max(most, own);
      }
      return most;
    };
    Seconds least = Seconds::infinity();
    for (int a = 1; a < layers; ++a) {
      for (int b = 1; a + b < layers; ++b) least = std::min(least, slowest({a, b, layers - a - b}));
    }
    const std::vector<int> sizes = layers_by_speed(stages);
    CAPTURE(round, sizes);
    CHECK(slowest(sizes) == least);
    CHECK(*std::ranges::min_element(sizes) >= 1);
  }
}

TEST_CASE("every order runs each micro-batch once through each chunk, forward before backward") {
  using enum PipelineSchedule;
  for (const auto& [schedule, stages, interleave] :
       {std::tuple(gpipe, 4, 1), std::tuple(one_forward_one_backward, 4, 1), std::tuple(interleaved, 4, 2),
        std::tuple(interleaved, 5, 3), std::tuple(zero_bubble, 4, 1), std::tuple(zero_bubble, 6, 2),
        std::tuple(dualpipe, 4, 1), std::tuple(dualpipe, 2, 1), std::tuple(dualpipe, 6, 1)}) {
    for (const int micro_batches : {1, 4, 10, 12, 18}) {
      if (schedule == dualpipe && micro_batches < 2 * stages) continue;
      for (int stage = 0; stage < stages; ++stage) {
        const ChunkPlacement placement(schedule, stages, interleave);
        std::map<std::pair<int, int>, int> forward, backward, weights;
        const std::vector<PipelinePass> order = pipeline_order(schedule, stages, stage, interleave, micro_batches);
        for (const PipelinePass& pass : order) {
          const std::pair own(pass.chunk, pass.micro_batch);
          const bool goes_forward = pass.kind == PassKind::forward || pass.kind == PassKind::paired;
          if (goes_forward) ++forward[own];
          if (pass.kind == PassKind::backward || pass.kind == PassKind::inputs) {
            ++backward[own];
            REQUIRE(forward[own] == 1);
          }
          if (pass.kind == PassKind::weights) REQUIRE(backward[own] == 1);
          if (pass.makes_weight_gradients()) ++weights[own];
        }
        // DualPipe sends half of them each way.
        const int of_chunk = schedule == dualpipe ? micro_batches / 2 : micro_batches;
        for (const auto* passes : {&forward, &backward, &weights}) {
          REQUIRE(passes->size() == at_index(of_chunk * placement.chunks()));
          for (const auto& [own, count] : *passes) REQUIRE(count == 1);
        }
      }
    }
  }
}

TEST_CASE("what follows a chunk leads back to it, position by position") {
  using enum PipelineSchedule;
  for (const auto& [schedule, interleave] : {std::pair(one_forward_one_backward, 1), std::pair(interleaved, 3),
                                             std::pair(zero_bubble, 2), std::pair(dualpipe, 1)}) {
    const ChunkPlacement placement(schedule, 4, interleave);
    for (int stage = 0; stage < 4; ++stage) {
      for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
        const int position = placement.position(stage, chunk);
        const auto next = placement.next(stage, chunk);
        CHECK(placement.previous(stage, chunk).has_value() == (position > 0));
        REQUIRE(next.has_value() == (position < 4 * interleave - 1));
        if (!next) continue;
        CHECK(placement.position(next->stage, next->chunk) == position + 1);
        const auto back = placement.previous(next->stage, next->chunk);
        REQUIRE(back);
        CHECK(std::pair(back->stage, back->chunk) == std::pair(stage, chunk));
      }
    }
  }
}
