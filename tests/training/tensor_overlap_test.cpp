// Collectives of tensor ranks in chunks behind their products.
#include "model/training/pricing/tensor_overlap.hpp"

#include "model/scenario/load/load.hpp"
#include "model/training/graph/pass_slices.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/pricing/layer_cost.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;
using test::BuiltStep;
using test::with;

namespace {

const char* const tensor_parallel = R"(
cluster: { node: dgx-a100-80gb, nodes: 1 }
workload:
  train:
    model: { family: gpt, layers: 4, hidden: 12288, heads: 96, vocabulary: 51200, sequence: 2048 }
    global_batch: 4
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: { tensor: 8, sequence_parallel: true, tensor_overlap: true }
)";

BuiltStep built(const std::vector<std::string>& overrides) {
  return BuiltStep(load_scenario_text(tensor_parallel, "tensor.yaml", overrides));
}

const std::vector<std::string> large = {"workload.train.micro_batch=4", "workload.train.global_batch=8"};

std::vector<std::vector<std::string>> product_names(const std::vector<std::vector<Operator>>& products) {
  std::vector<std::vector<std::string>> names;
  for (const std::vector<Operator>& list : products) {
    std::vector<std::string>& of_list = names.emplace_back();
    for (const Operator& op : list) of_list.push_back(op.name);
  }
  return names;
}

/// Time of slices one after the other without other traffic.
Seconds time_of(const std::vector<PassSlice>& slices, const TransferTable& transfers) {
  Seconds sum;
  for (const PassSlice& slice : slices) {
    Seconds moving;
    for (const int transfer : slice.transfers) moving += transfers.time(transfer, 0);
    sum += slice.beside ? std::max(slice.work, moving) : slice.work + moving;
  }
  return sum;
}

double step_of(const BuiltStep& built) {
  return step_time(built.step, test::uncontended_times(built.step).end).value();
}

}  // namespace

TEST_CASE("each gather belongs to the products behind it, each scatter to the product before it") {
  using Names = std::vector<std::vector<std::string>>;
  const BuiltStep b = built({});
  const Layer& block = b.model.layers[1].layer;
  const OverlappedProducts forward = overlapped_products(block.forward, false);
  CHECK(product_names(forward.gathers) == Names{{"qkv projection"}, {"ffn up"}});
  CHECK(product_names(forward.scatters) == Names{{"attention output"}, {"ffn down"}});
  // Backward, gradients of results are gathered for the products that were scattered, and the other way round.
  const OverlappedProducts backward = overlapped_products(block.backward, true);
  CHECK(product_names(backward.gathers) == Names{{"attention output data gradient"}, {"ffn down data gradient"}});
  CHECK(product_names(backward.scatters) == Names{{"qkv projection data gradient"}, {"ffn up data gradient"}});
  // Embedding and loss are not chunked.
  CHECK(overlapped_products(b.model.layers[2].layer.forward, false).gathers.empty());
}

TEST_CASE("a chunked collective is exposed where all but one of its product's chunks are shorter") {
  // A pass of 10 s of kernels. Products' chunks of 3 s hide a gather of 2 s whole, chunks of 4 s a scatter of 5 s in
  // part. Multiprocessors that move data take a quarter of the hidden time from the kernels: 10 + (2 + 4) · 0.25 =
  // 11.5 s, of which the second product's 4.6 s are beside the scatter: 0.4 s stick out. A third collective, of 1 s,
  // waits for its kernels.
  const Scenario scenario = load_scenario_text(tensor_parallel, "tensor.yaml");
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const Topology topology(scenario.cluster);
  std::vector<Step::Transfer> known;
  for (const double seconds : {2.0, 5.0, 1.0}) {
    Step::Transfer::Part part;
    part.uncontended = Seconds(seconds);
    part.rank_classes = {0};
    known.push_back({"collectives inside layers", {part}, nullptr, 0.25});
  }
  const TransferTable transfers(scenario, topology, known);
  LayerCalls calls;
  calls.forward.behind = {{0, 0.3}, {1, 0.4}};
  calls.forward.between = {2};
  LayerCost cost;
  cost.forward.kernels = Seconds(10.0);
  cost = LayerPricer(scenario, train).on_class(cost, calls, 1.0, 0, transfers);
  CHECK(cost.forward.kernels.value() == Approx(11.5));
  CHECK(cost.forward.exposed.value() == Approx(0.4 + 1.0));
  // Cut into slices, the pass takes the same.
  const PricedLayer layer{nullptr, cost, std::make_shared<LayerCalls>(calls)};
  CHECK(time_of(slices_of({cost.forward.time_breakdown(), {layer.part(false, 1)}}), transfers).value() ==
        Approx(11.5 + 1.4));
  // A device of half the speed has twice the time to hide them: 20 + 7 · 0.25 s, and the third collective.
  cost.forward.kernels = Seconds(10.0);
  cost = LayerPricer(scenario, train).on_class(cost, calls, 0.5, 0, transfers);
  CHECK(cost.forward.kernels.value() == Approx(21.75));
  CHECK(cost.forward.exposed.value() == Approx(1.0));
}

TEST_CASE("seven of eight chunks of a product hide its collective; each chunk is launched by itself") {
  const BuiltStep b = built({}), plain = built({"plan.tensor_overlap=false"});
  std::vector<Step::Transfer> known;
  TransferTable transfers(b.scenario, b.topology, known);
  const LayerPricer pricer(b.scenario, b.train());
  const Layer& block = b.model.layers[1].layer;
  const LayerCost cost = pricer.price(block);
  const LayerCalls calls = pricer.calls(block, cost, 0, transfers);
  REQUIRE(calls.forward.behind.size() == 4);
  CHECK(calls.forward.between.empty());
  // The first gather's product: 2,048 tokens, 3 · 12,288 / 8 outputs of 12,288 inputs, in eight chunks of 256 tokens.
  const auto time_of = [&](const Matmul& product) {
    return pricer.kernels({{"", product, Precision::bf16, 1}}).value();
  };
  CHECK((cost.forward.kernels * calls.forward.behind.front().share).value() ==
        Approx(7.0 * time_of(linear_forward(256, 3 * 12288 / 8, 12288))));
  // All four products do: qkv, attention's output, up and down.
  const auto products = [&](std::int64_t tokens) {
    return time_of(linear_forward(tokens, 3 * 12288 / 8, 12288)) + time_of(linear_forward(tokens, 12288, 12288 / 8)) +
           time_of(linear_forward(tokens, 4 * 12288 / 8, 12288)) +
           time_of(linear_forward(tokens, 12288, 4 * 12288 / 8));
  };
  const LayerCost whole = LayerPricer(plain.scenario, plain.train()).price(block);
  CHECK((cost.forward.kernels - whole.forward.kernels).value() == Approx(8.0 * products(256) - products(2048)));
  CHECK(8.0 * products(256) > products(2048));
  // Four products of eight launches instead of one; backward two, for which gradients of results are gathered. Those of
  // inputs are scattered behind a whole product, the last of them that of the layer up.
  const double launch = b.scenario.calibration.host.dispatch_us * 1e-6;
  CHECK((cost.forward.dispatch - whole.forward.dispatch).value() == Approx(4 * 7 * launch));
  CHECK((cost.backward.dispatch - whole.backward.dispatch).value() == Approx(2 * 7 * launch));
  REQUIRE(calls.backward.behind.size() == 6);
  const auto behind = [&](std::size_t i) { return (cost.backward.kernels * calls.backward.behind[i].share).value(); };
  CHECK(behind(3) == Approx(time_of(linear_data_gradient(2048, 4 * 12288 / 8, 12288))));
  // The gathers for the weights' gradients run beside the same products of data.
  CHECK(behind(5) == behind(3));
}

TEST_CASE("an input is gathered again beside its own product's data gradient alone, and not at all where it was kept") {
  std::vector<Step::Transfer> known;
  const auto backward = [&](const std::vector<std::string>& changes) {
    const BuiltStep b = built(with(changes, "plan.tensor_overlap=false"));
    TransferTable transfers(b.scenario, b.topology, known);
    const LayerPricer pricer(b.scenario, b.train());
    const Layer& block = b.model.layers[1].layer;
    return pricer.calls(block, pricer.price(block), 0, transfers).backward;
  };
  const PassCalls again = backward({}), kept = backward({"workload.train.keep_gathered_inputs=true"});
  CHECK(again.behind.size() == 2);
  CHECK(again.between.size() == 4);
  CHECK(again.beside.empty());
  CHECK(kept.behind.empty());
  CHECK(kept.between.size() == 4);
  // If experts follow, and in each half of a block that is a layer by itself, one product begins.
  CHECK(backward({"workload.train.model.experts=8", "workload.train.model.experts_per_token=2"}).behind.size() == 1);
}

TEST_CASE("chunked collectives shorten a step whose chunks fill the device, and nothing without tensor parallelism") {
  // Eight chunks of 1,024 tokens. Of 256 tokens each is 36 tiles of 128 × 256 on 108 multiprocessors: longer than what
  // it hides.
  CHECK(step_of(built(large)) < 0.97 * step_of(built(with(large, "plan.tensor_overlap=false"))));
  CHECK(step_of(built({})) > step_of(built({"plan.tensor_overlap=false"})));
  const std::vector<std::string> alone = {"plan.tensor=1", "workload.train.global_batch=8",
                                          "workload.train.model.layers=1"};
  CHECK(step_of(built(alone)) == step_of(built(with(alone, "plan.tensor_overlap=false"))));
}
