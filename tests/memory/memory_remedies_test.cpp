// R8: what fits, what does not, and what would.
#include "model/memory/memory.hpp"

#include "tests/catch.hpp"
#include "tests/memory/footprint.hpp"

using namespace foretrain;
using foretrain::test::Training;

namespace {

double gb(Bytes size) { return size.value() / 1e9; }

}  // namespace

TEST_CASE("R8: 7 billion parameters are 14 + 14 + 56 GB, more than one card has") {
  // fp16: 2 bytes of weight, 2 of gradient; AdamW: two fp32 moments, 8 bytes.
  const MemoryFootprint m = Training("fit-memory-7b").footprint();
  CHECK(gb(m.weights) == Approx(14.0).epsilon(0.002));
  CHECK(gb(m.gradients) == Approx(14.0).epsilon(0.002));
  CHECK(gb(m.optimizer) == Approx(56.0).epsilon(0.002));
  CHECK_FALSE(m.fits());
}

TEST_CASE("R8: ZeRO divides by eight what each of eight cards holds, and it fits") {
  struct Row {
    const char* scenario;
    double weights, gradients, optimizer;
  };
  for (const auto& [scenario, weights, gradients, optimizer] :
       {Row{"fit-zero-1", 14, 14, 7}, Row{"fit-zero-2", 14, 1.75, 7}, Row{"fit-zero-3", 1.75, 1.75, 7},
        Row{"fit-recompute", 14, 1.75, 7}}) {
    INFO(scenario);
    const MemoryFootprint m = Training(scenario).footprint();
    CHECK(gb(m.weights) == Approx(weights).epsilon(0.002));
    CHECK(gb(m.gradients) == Approx(gradients).epsilon(0.002));
    CHECK(gb(m.optimizer) == Approx(optimizer).epsilon(0.002));
    CHECK(m.fits());
  }
}

TEST_CASE("R8: eight sequences a card fit only when they are recomputed") {
  // Kept whole, a layer has 34 bytes a token and unit of width (arXiv 2205.05198, without attention's scores):
  // 34 · 8 · 2048 · 4224 · 32 layers = 75 GB; with full recomputation 2 bytes, 4.4 GB and the embedding's mask.
  const MemoryFootprint kept = Training("fit-recompute", {"workload.train.recompute=none"}).footprint();
  CHECK(gb(kept.activations) == Approx(34.0 * 8 * 2048 * 4224 * 32 / 1e9).epsilon(0.02));
  CHECK_FALSE(kept.fits());
  const MemoryFootprint recomputed = Training("fit-recompute").footprint();
  CHECK(gb(recomputed.activations) == Approx(2.0 * 8 * 2048 * 4224 * 32 / 1e9).epsilon(0.1));
  CHECK(recomputed.fits());
}

TEST_CASE("R8: with LoRA the weights are all that is left of 84 GB") {
  // Adapters of rank 16 beside q, k, v and output: 4 · 16 · (4224 + 4224) numbers a layer, 17.3 million in all, with 2
  // bytes of weight, 4 of gradient, 8 of states and 4 of an fp32 copy each.
  const double adapters = 32 * 4 * 16 * (4224.0 + 4224.0);
  const MemoryFootprint m = Training("fit-lora").footprint();
  CHECK(gb(m.weights) == Approx(14.0 + adapters * 2 / 1e9).epsilon(0.002));
  CHECK(m.gradients.value() == Approx(adapters * 4).epsilon(0.01));
  CHECK(m.optimizer.value() == Approx(adapters * 12).epsilon(0.01));
  CHECK(m.fits());
}

TEST_CASE("R8: with gradients and states in host memory one card is enough") {
  const MemoryFootprint m = Training("fit-offload-optimizer").footprint();
  CHECK(gb(m.weights) == Approx(14.0).epsilon(0.002));
  CHECK(m.gradients.value() + m.optimizer.value() == 0.0);
  CHECK(gb(m.host) == Approx(14.0 + 56.0).epsilon(0.002));
  CHECK(m.fits());
  // The host has a capacity too: 64 GiB are too few.
  const MemoryFootprint small = Training("fit-offload-optimizer", {"cluster.node.cpu.memory=64 GiB"}).footprint();
  CHECK(small.fits_gpu());
  CHECK_FALSE(small.fits());
}

TEST_CASE("ZeRO-Plan::Offload trains 13 billion parameters on one V100 of 32 GB") {
  // arXiv 2101.06840: 26 GB of fp16 weights stay, the other 14 bytes a parameter do not.
  const std::vector<std::string> base = {"cluster.node=dgx1-v100-32gb", "workload.train.model=gpt3-13b",
                                         "workload.train.recompute=full", "workload.train.model.sequence=1024"};
  CHECK(Training("fit-offload-optimizer", base).footprint().fits());
  std::vector<std::string> without = base;
  without.emplace_back("plan.offload=none");
  CHECK_FALSE(Training("fit-offload-optimizer", without).footprint().fits());
}

TEST_CASE("the largest micro-batch just fits, and one sample more just does not") {
  for (const char* scenario : {"fit-largest-batch", "fit-zero-2", "fit-fsdp-llama3-8b"}) {
    INFO(scenario);
    const Training training(scenario);
    const std::int64_t largest = largest_micro_batch(training.scenario, training.train);
    REQUIRE(largest > 0);
    const auto with = [&](std::int64_t micro) {
      return Training(scenario, {fmt::format("workload.train.micro_batch={}", micro),
                                 fmt::format("workload.train.global_batch={}", micro * 8)})
          .footprint();
    };
    CHECK(with(largest).fits());
    CHECK_FALSE(with(largest + 1).fits());
  }
  const Training hopeless("fit-memory-7b");
  CHECK(largest_micro_batch(hopeless.scenario, hopeless.train) == 0);
}

TEST_CASE("the headroom of a card stays free: what needs more of it fits barely, what needs more than the card not") {
  const double need = Training("fit-zero-2").footprint().total().value();
  const auto on = [&](double times, const char* headroom) {
    const std::string capacity = fmt::format("cluster.node.gpu.memory={:.0f} B", need * times);
    return verdict(Training("fit-zero-2", {capacity, std::string("plan.headroom=") + headroom}).footprint());
  };
  // Of a card 1.25 times as large, 80 % are needed and 20 % are left.
  CHECK(on(1.26, "20 %") == "fits");
  CHECK(on(1.24, "20 %") == "fits barely");
  CHECK(on(1.24, "19 %") == "fits");
  CHECK(on(0.99, "20 %") == "DOES NOT FIT");
}

TEST_CASE("a footprint never falls when the micro-batch grows") {
  for (const char* recompute : {"none", "selective", "selective_operators", "selective_modules", "full"}) {
    Bytes before;
    for (int micro = 1; micro <= 8; ++micro) {
      const Training training("fit-fsdp-llama3-8b", {fmt::format("workload.train.micro_batch={}", micro),
                                                     fmt::format("workload.train.global_batch={}", 8 * micro),
                                                     std::string("workload.train.recompute=") + recompute});
      const Bytes now = training.footprint().total();
      CHECK(now > before);
      before = now;
    }
  }
}

TEST_CASE("remedies name what fits, with numbers") {
  const Training training("fit-memory-7b");
  const std::vector<std::string> remedies = remedies_for_memory(training.scenario, training.train);
  const auto named = [&](const std::string& what) {
    return std::ranges::any_of(remedies, [&](const std::string& r) { return r.find(what) != std::string::npos; });
  };
  CHECK(named("lora: { rank: 16 }"));
  CHECK(named("offload: optimizer"));
  CHECK(named("zero: 1 over"));
  CHECK(named("zero: 2 over"));
  CHECK(named("zero: 3 over"));
  CHECK(remedies_for_memory(Training("fit-zero-2").scenario, Training("fit-zero-2").train).empty());
}

TEST_CASE("sharding is named over the replicas that there are, or the fewest twice as many on which it fits") {
  const auto over = [](const std::vector<std::string>& changes, int zero) {
    const Training training("fit-memory-7b", changes);
    for (const std::string& remedy : remedies_for_memory(training.scenario, training.train)) {
      int replicas = 0;
      const std::string form = fmt::format("fits with zero: {} over %d replicas", zero);
      if (std::sscanf(remedy.c_str(), form.c_str(), &replicas) == 1) return replicas;
    }
    return 0;
  };
  const std::vector<std::string> small = {"cluster.node.gpu.memory=40 GiB"};
  for (int zero = 1; zero <= 3; ++zero) {
    INFO(zero);
    Training training("fit-memory-7b", small);
    training.train.recompute = Recompute::full;
    training.scenario.plan.zero = zero;
    int fewest = 2;
    for (; fewest <= 512; fewest *= 2) {
      training.scenario.plan.data = fewest;
      training.train.global_batch = training.train.micro_batch * fewest;
      training.model = build_model(training.train.model, build_options(training.train, training.scenario.plan));
      if (training.footprint().fits()) break;
    }
    CHECK(over(small, zero) == fewest);
  }
  CHECK(over({"cluster.nodes=16", "plan.data=16", "workload.train.global_batch=16"}, 3) == 16);
}

TEST_CASE("remedies keep what the plan has: words of offload stay, servers allow no ZeRO") {
  const auto remedies = [](const std::vector<std::string>& changes) {
    const Training training("fit-memory-7b", changes);
    return remedies_for_memory(training.scenario, training.train);
  };
  // `plan.offload` is replaced as a whole: without the word that stands there already, activations would come back.
  for (const std::string& remedy : remedies({"plan.offload=activations"})) {
    CHECK(remedy.find("offload: optimizer") == std::string::npos);
  }
  for (const std::string& remedy :
       remedies({"cluster.nodes=2", "workload.train.global_batch=2", "plan.sync.algorithm=parameter_server"})) {
    CHECK(remedy.find("zero:") == std::string::npos);
  }
}

TEST_CASE("8-bit Adam keeps a byte for each of two states") {
  // And a 4-byte scale for 2,048 of them (arXiv 2110.02861).
  const MemoryFootprint m = Training("fit-memory-7b", {"workload.train.optimizer=adamw_8bit"}).footprint();
  CHECK(gb(m.optimizer) == Approx(14.0).epsilon(0.005));
}
