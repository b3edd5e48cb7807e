// Memory of a framework's code beside its operators, and the cost of plans that may be short of memory.
#include "model/memory/allocator.hpp"
#include "model/memory/memory.hpp"
#include "tests/catch.hpp"
#include "tests/memory/footprint.hpp"

using namespace foretrain;
using foretrain::test::Training;

namespace {

constexpr double hidden_state = 2.0 * 2048 * 12288 * 2;  // bytes: two sequences, GPT-3's width, bf16

/// GPT-3 on 1,024 A100, of which tensor ranks hold 50 whole hidden states for their collectives.
struct Waiting {
  explicit Waiting(const std::string& plan, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"plan=" + plan, "workload.train.micro_batch=2"};
    all.insert(all.end(), more.begin(), more.end());
    const Training without("gpt3-175b-1024-a100", all);
    all.emplace_back("workload.train.pending_stream_buffers=50");
    const Training with("gpt3-175b-1024-a100", all);
    tensors = (with.footprint().total() - without.footprint().total()).value() / hidden_state;
  }
  double tensors = 0.0;
};

}  // namespace

TEST_CASE("tensor ranks hold hidden states that wait for collectives, whole and in any number of layers") {
  // 1,536 sequences: of 16 micro-batches a replica some follow a backward pass, of one none does.
  CHECK(Waiting("{ data: 48, tensor: 8 }", {"cluster.nodes=48"}).tensors == Approx(50.0));
  CHECK(Waiting("{ data: 768, tensor: 8 }", {"cluster.nodes=768"}).tensors == Approx(20.0));
  CHECK(Waiting("{ data: 48 }", {"cluster.nodes=6"}).tensors == Approx(0.0));
}

TEST_CASE("in a pipeline hidden states wait where the device is slower than the host, or other stages are") {
  const std::string two = "{ data: 48, tensor: 8, pipeline: 2 }", eight = "{ data: 16, tensor: 8, pipeline: 8 }";
  const std::vector<std::string> nodes_of_two = {"cluster.nodes=96"};
  // A block of GPT-3 takes a tensor rank some 35 ms at a quarter of the rate: a host that takes 1 ms is far ahead. One
  // that takes a second is not, but while its GPU waits for the other stage: a seventh of the queue.
  CHECK(Waiting(two, {"cluster.nodes=96", "workload.train.layer_dispatch=1 ms"}).tensors == Approx(50.0));
  const Waiting slow(two, {"cluster.nodes=96", "workload.train.layer_dispatch=1 s"});
  CHECK(slow.tensors == Approx(50.0 / 7.0));
  CHECK(Waiting(eight, {"workload.train.layer_dispatch=1 s"}).tensors == Approx(50.0));
  // Host time for other tensor ranks counts as well: 7 · 200 ms.
  CHECK(Waiting(two, {"cluster.nodes=96", "workload.train.p2p_dispatch_overhead=200 ms"}).tensors ==
        Approx(50.0 / 7.0));
}

TEST_CASE("half as many hidden states wait where host and device take equally long for a block") {
  // A block's products are 12 · 12288² weights, of which a tensor rank has an eighth, for 4,096 tokens: 1.86e12
  // operations, and 0.05e12 of attention. Thrice that both ways, of which half a pass at a quarter of 312 TFLOP/s.
  const double block = 3.0 * (2.0 * 12 * 12288.0 * 12288 * 4096 / 8 + 0.05e12) * 0.5 / (0.25 * 312e12);
  const Waiting even("{ data: 48, tensor: 8, pipeline: 2 }",
                     {"cluster.nodes=96", fmt::format("workload.train.layer_dispatch={} ms", block * 1e3)});
  CHECK(even.tensors == Approx(25.0).epsilon(0.03));
}

TEST_CASE("copies stretch what a block keeps for its backward pass, and not what is recomputed") {
  const auto activations = [](const std::string& recompute, const std::string& stretch) {
    return Training("gpt3-175b-1024-a100",
                    {"workload.train.recompute=" + recompute, "workload.train.activation_stretch=" + stretch})
        .footprint()
        .activations.value();
  };
  CHECK(activations("none", "1.3") == Approx(1.3 * activations("none", "1")).epsilon(0.01));
  CHECK(activations("selective", "1.3") == Approx(1.3 * activations("selective", "1")).epsilon(0.01));
  CHECK(activations("full", "1.3") == Approx(activations("full", "1")));
}

TEST_CASE("a loss in place makes one fp32 copy of the widened logits") {
  // 2-byte logits, 4 widened, 4 of the copy over which softmax and gradient are written: 10 instead of 14 bytes for
  // each of 2,048 tokens and an eighth of 512,000 words. The loss comes last: it decides the peak of a single block.
  const auto total = [](const std::string& setting, const std::string& sequences) {
    return Training("gpt3-175b-1024-a100", {"cluster.nodes=1", "plan={ tensor: 8 }", "workload.train.model.layers=1",
                                            "workload.train.model.vocabulary=512000", "workload.train.global_batch=2",
                                            "workload.train.micro_batch=" + sequences, "workload.train." + setting})
        .footprint()
        .total()
        .value();
  };
  const double fragmented = 1.03;  // memory.fragmentation of what comes and goes
  const double four_bytes_each = 4.0 * 2048 * 512000 / 8 * fragmented;
  CHECK(total("inplace_cross_entropy=false", "1") - total("inplace_cross_entropy=true", "1") ==
        Approx(four_bytes_each).epsilon(0.01));
  // A copy of two bytes without the last tokens, and an output of four. One sequence is cut without a copy.
  CHECK(total("shifted_logits=true", "1") == total("shifted_logits=false", "1"));
  CHECK(total("shifted_logits=true", "2") - total("shifted_logits=false", "2") ==
        Approx(3.0 * four_bytes_each).epsilon(0.01));
}

TEST_CASE("free blocks that shorter samples leave are as large as frequent samples") {
  // A half of what comes and goes with 2,048 tokens, which is an eighth of what does with four times as many.
  const auto left_free = [](const std::string& sequence) {
    const auto fullest = [&](const std::string& share) {
      const MemoryTimeline timeline = Training("fit-memory-7b", {"workload.train.model.sequence=" + sequence,
                                                                 "workload.train.fragmentation=" + share})
                                          .timeline();
      return timeline.moments.at(timeline.peak).parts;
    };
    using P = MemoryPart;
    const MemoryParts with = fullest("0.5"), without = fullest("0");
    const Bytes moving = with[P::activations] + with[P::recomputed] + with[P::temporaries] + with[P::loss];
    return (with[P::allocator] - without[P::allocator]) / moving;
  };
  CHECK(left_free("1024") == Approx(0.5));
  CHECK(left_free("2048") == Approx(0.5));
  CHECK(left_free("8192") == Approx(0.125));
}

TEST_CASE("PEFT's adapters are fp32 beside weights of two bytes") {
  // Adapters of rank 16 beside the joined query, key and value of 32 blocks, 4,224 wide: 16 · (1 + 3) · 4,224 each, of
  // four bytes for weight and gradient and eight for Adam's states. DeepSpeed's weights are of two bytes, as frozen
  // ones.
  const double adapters = 32 * 16 * 4 * 4224.0;
  const std::vector<std::string> lora = {"workload.train.precision=bf16", "workload.train.lora={ rank: 16 }",
                                         "workload.train.fused_optimizer=true", "plan.sync.gradient_precision=bf16"};
  const auto with = [&](const std::string& trainer) {
    std::vector<std::string> all = lora;
    all.push_back("plan.framework=" + trainer);
    return Training("fit-memory-7b", all).footprint();
  };
  CHECK(with("ddp").gradients.value() == Approx(adapters * 4));
  CHECK(with("ddp").optimizer.value() == Approx(adapters * 8));
  CHECK((with("ddp").weights - with("deepspeed").weights).value() == Approx(adapters * 2));
}

TEST_CASE("frozen weights are kept as fp8 products read them where modules cast their own operands") {
  // A stage of GPT-3 has 12 of 96 blocks, a tensor rank an eighth of their 12 · 12,288² weights: a byte less for each.
  const auto weights = [](const std::string& precision, const std::string& kernels) {
    return Training("gpt3-175b-1024-a100",
                    {"cluster.node=dgx-h100", "plan.framework=megatron", "workload.train.precision=" + precision,
                     "workload.train.kernels=" + kernels, "workload.train.lora={ rank: 16, targets: attention }"})
        .footprint()
        .weights.value();
  };
  const double stage = 12.0 * 12.0 * 12288 * 12288 / 8;
  CHECK(weights("bf16", "fused") - weights("fp8", "fused") == Approx(stage).epsilon(0.01));
  CHECK(weights("fp8", "plain") == Approx(weights("bf16", "plain")));
}

TEST_CASE(
    "gradients that are added up apart take room of their own where a forward pass follows, or all ranks have them") {
  const auto gradients = [](const std::string& plan, const std::string& batch) {
    const Training training("gpt3-175b-1024-a100",
                            {"cluster.nodes=4", "plan=" + plan, "workload.train.global_batch=" + batch});
    return training.footprint().gradients.value() / training.footprint().weights.value();
  };
  const std::string two_stages =
      "data: 2, tensor: 8, pipeline: 2, sync: { fp32_accumulation: true, gradient_precision: fp32 }";
  // 2-byte weights, fp32 gradients: twice the weights, or three times.
  CHECK(gradients("{ " + two_stages + ", zero: 1 }", "4") == Approx(2.0));
  CHECK(gradients("{ " + two_stages + ", zero: 1 }", "8") == Approx(3.0));
  CHECK(gradients("{ " + two_stages + " }", "4") == Approx(3.0));
}

TEST_CASE("QLoRA holds blocks in half a byte and the rest in fp32") {
  // Llama 3 8B: 32 blocks of 218,112,000 numbers, embedding and output layer of 128,256 x 4,096 and a norm; adapters of
  // rank 16 beside all matrices hold 1,310,720 numbers a block, in bf16.
  const std::vector<std::string> qlora = {"workload.train.model=llama3-8b", "workload.train.precision=bf16",
                                          "workload.train.lora={ rank: 16, targets: [attention, ffn] }",
                                          "workload.train.quantisation={ weights: nf4 }"};
  const double blocks = 32 * 218'112'000.0, ends = 2 * 128'256.0 * 4096 + 4096, adapters = 32 * 1'310'720.0;
  const double stored = 0.5 + (1.0 + 4.0 / 256) / 64;
  CHECK(Training("fit-memory-7b", qlora).footprint().weights.value() ==
        Approx(blocks * stored + ends * 4 + adapters * 2));
}

TEST_CASE("PyTorch's states are as the weights, and its updates need a square root of each") {
  // 7 billion bf16 weights without fp32 copies: 2 of weight, 2 of gradient, 4 of states; launched tensor by tensor, 2
  // more while the optimizer updates, when no activations are there.
  const std::vector<std::string> pure = {"workload.train.precision=bf16", "workload.train.fp32_states=false"};
  const Training fused("fit-memory-7b", pure);
  const double weights = fused.footprint().weights.value();
  CHECK(fused.footprint().gradients.value() == Approx(weights));
  CHECK(fused.footprint().optimizer.value() == Approx(2.0 * weights));
  std::vector<std::string> apart = pure;
  apart.insert(apart.end(), {"workload.train.fused_optimizer=false", "workload.train.micro_batch=1",
                             "workload.train.global_batch=1"});
  const MemoryTimeline::Moment update = Training("fit-memory-7b", apart).timeline().moments.back();
  CHECK(update.parts[MemoryPart::temporaries].value() == Approx(weights));
}

TEST_CASE("optimizer states go by the optimizer and their format") {
  // Adam and LAMB have two moments of a parameter, LARS one, each of 4 bytes or in bf16 of 2; Muon one for the matrices
  // of its blocks and Adam's for what is outside these.
  const auto optimizer = [](const std::string& key) {
    const Training training("fit-memory-7b", {"workload.train.precision=bf16", "plan.zero=0", key});
    return training.footprint().optimizer.value() / training.model.parameters;
  };
  const std::string name = "workload.train.optimizer=";
  CHECK(optimizer(name + "lamb") == Approx(8.0));
  CHECK(optimizer(name + "lars") == Approx(4.0));
  CHECK(optimizer("workload.train.state_precision=bf16") == Approx(4.0));
  const Training training("fit-memory-7b");
  double matrices = 0.0;
  for (const LayerGroup& group : training.model.layers) matrices += group.layer.orthogonal() * group.repeat;
  CHECK(optimizer(name + "muon") == Approx(8.0 - 4.0 * matrices / training.model.parameters));
}

TEST_CASE("two of every four blocks are recomputed, the others keep their activations") {
  const auto kept = [](const std::string& key) {
    Bytes sum;
    for (const LayerGroup& group : Training("fit-memory-7b", {"workload.train.recompute=full", key}).model.layers) {
      if (group.layer.splittable) sum += group.layer.kept(Recompute::full) * static_cast<double>(group.repeat);
    }
    return sum.value();
  };
  const double all = kept("workload.train.recompute_layers=4 of 4"),
               none = kept("workload.train.recompute_layers=0 of 4");
  CHECK(none > 5.0 * all);
  CHECK(kept("workload.train.recompute_layers=2 of 4") == Approx(0.5 * (all + none)));
}

TEST_CASE("states of a paged optimizer that find no room lie in the host's memory") {
  // 7 billion parameters of 2 + 4 + 8 bytes are more than 80 GB with a word of activations.
  const std::vector<std::string> eight = {"workload.train.precision=bf16", "plan.sync.gradient_precision=fp32"};
  std::vector<std::string> paged = eight;
  paged.emplace_back("workload.train.optimizer=paged_adamw_32bit");
  const MemoryFootprint whole = Training("fit-memory-7b", eight).footprint();
  const MemoryFootprint moved = Training("fit-memory-7b", paged).footprint();
  REQUIRE_FALSE(whole.fits());
  CHECK(moved.fits());
  CHECK(moved.host.value() == Approx((whole.total() - whole.capacity * (1.0 - whole.headroom)).value()));
}

TEST_CASE("DeepSpeed widens gradients for the update and keeps many weights gathered") {
  // A million of a rank's gradients at a time, 4 bytes each. A billion weights gathered are 2 GB, where two layers are
  // 4 bytes for each number of one.
  const auto most = [](const std::string& more, MemoryPart part) {
    Bytes largest;
    for (const MemoryTimeline::Moment& moment : Training("fit-zero-3", {more}).timeline().moments) {
      largest = std::max(largest, moment.parts[part]);
    }
    return largest.value();
  };
  const std::string nothing = "plan.update_group=0";
  CHECK(most("plan.update_group=1e6", MemoryPart::gradients) - most(nothing, MemoryPart::gradients) == Approx(4e6));
  const double block = 12.0 * 4224 * 4224 + 13.0 * 4224;
  CHECK(most("plan.gathered_parameters=1e9", MemoryPart::gathered) - most(nothing, MemoryPart::gathered) ==
        Approx(2e9 - 4.0 * block).epsilon(0.001));
}

TEST_CASE("a plan predicted to fill its memory is short of it in half of all cases, and then four times as slow") {
  CHECK(chance_of_shortage(1.0, 0.1) == Approx(0.5));
  CHECK(chance_of_shortage(std::exp(-0.1), 0.1) == Approx(0.158655));  // one standard deviation below
  CHECK(chance_of_shortage(0.99, 0.0) == 0.0);                         // nothing is known of errors
  CHECK(chance_of_shortage(1.01, 0.0) == 1.0);
  CHECK(expected_slowdown(0.5) == Approx(2.5));
  CHECK(spread_of_shortfall(std::expm1(0.128)) == Approx(0.1).epsilon(0.01));  // nine of ten lie below 1.28 deviations
}
