// R13: cutting communication. 13 B parameters on eight A100, step by step, and compression on Ethernet.
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

TrainResult train(const std::string& scenario, const Overrides& overrides = {},
                  Fidelity fidelity = Fidelity::estimate) {
  return *predicted(scenario, fidelity, overrides).train();
}

double seconds(const std::string& scenario, const Overrides& overrides = {}, Fidelity fidelity = Fidelity::estimate) {
  return train(scenario, overrides, fidelity).step_time.value();
}

/// Time of the gradients' collectives, hidden or not.
double exchange(const TrainResult& result) {
  double total = 0.0;
  for (const auto& [name, time] : result.communication) {
    if (name.starts_with("gradient")) total += time.total.value();
  }
  return total;
}

}  // namespace

TEST_CASE("R13: the all-reduce of 13 B fp32 gradients, in one message and in many") {
  // 12.85 B parameters: 51.4 GB. In one message 2 · 7/8 · 51.4 GB at the 235 GB/s that rings reach on this NVSwitch (in
  // nccl-tests' bus bandwidth) is 383 ms, and a tenth more for each rank's own part.
  const double whole = exchange(train("traffic-baseline", {"plan.sync.bucket=60 GB"}));
  CHECK(whole == Approx(2.0 * 7 / 8 * 51.4 / 235).epsilon(0.1));
  // In 2057 messages of 25 MB every one pays its launch and 14 steps again: the text's 500 ms lie between.
  const double many = exchange(train("traffic-baseline"));
  CHECK(whole < 0.5);
  CHECK(many > 0.5);
  CHECK(many < 0.65);
}

TEST_CASE("R13: every cut by half and more, as the exercise asks for") {
  const TrainResult baseline = train("traffic-baseline");
  const double exposed = baseline.breakdown.exposed_communication.value();
  // Half the bytes take half the time, less what is paid for each of half as many messages.
  CHECK(exchange(train("traffic-bf16-gradients")) == Approx(exposed / 2).epsilon(0.02));
  // The last bucket stays exposed after overlapping: at most two of forty layers and the embedding.
  CHECK(train("traffic-overlap").breakdown.exposed_communication.value() < 0.05 * exposed);
  // Eight times the samples for one exchange.
  const TrainResult accumulated = train("traffic-accumulation");
  CHECK(accumulated.breakdown.exposed_communication.value() == Approx(exposed).epsilon(0.001));
  CHECK(accumulated.samples_per_second > 1.1 * baseline.samples_per_second);
  for (const char* scenario : {"traffic-buckets", "traffic-powersgd", "traffic-top-k"}) {
    INFO(scenario);
    CHECK(train(scenario).breakdown.exposed_communication.value() < 0.5 * exposed);
  }
}

TEST_CASE("R13: synchronising after every micro-batch costs an exchange for each") {
  const double once = seconds("traffic-accumulation");
  const double each = seconds("traffic-accumulation", {"plan.sync.sync_each_micro_batch=true"});
  const double time = exchange(train("traffic-accumulation"));
  CHECK(each - once == Approx(7 * time).epsilon(0.001));
  // With overlap only what sticks out of each backward pass is paid again, and kernels slowed by a quarter of the
  // exchange's time.
  const double overlapped_once = seconds("traffic-accumulation", {"plan.sync.overlap=true"});
  const double overlapped =
      seconds("traffic-accumulation", {"plan.sync.overlap=true", "plan.sync.sync_each_micro_batch=true"});
  CHECK(overlapped > overlapped_once);
  CHECK(overlapped - overlapped_once < 0.35 * (each - once));
}

TEST_CASE("R13: the best bucket is neither the smallest nor the largest") {
  // Small buckets: 161 tensors of ResNet-50 one by one, each at least 2 · 15 steps of 30 us. Large ones: the whole
  // gradient waits for the end of the backward pass. In between DDP's default of 25 MB is near the best.
  std::vector<double> times;  // from 1 KB on, each twice the one before
  for (int i = 0; i < 18; ++i) {
    const std::string bucket = fmt::format("plan.sync.bucket={} B", 1e3 * std::pow(2.0, i));
    times.push_back(seconds("traffic-ethernet-resnet-50", {bucket}));
  }
  const auto best = static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
  CHECK(best > 0);
  CHECK(best + 1 < times.size());
  CHECK(times.front() > 1.2 * times[best]);
  CHECK(times.back() > 1.2 * times[best]);
  CHECK(seconds("traffic-ethernet-resnet-50") < 1.05 * times[best]);
  // From one bucket to one of twice the size nothing leaps, but where the last two become one.
  for (std::size_t i = 0; i + 2 < times.size(); ++i) {
    INFO("bucket of " << 1e3 * std::pow(2.0, static_cast<double>(i)) << " B");
    CHECK(times[i + 1] == Approx(times[i]).epsilon(0.06));
  }
}

TEST_CASE("R13: PyTorch's small first bucket starts the exchange earlier") {
  // Beside a backward pass that ends before the exchange does, what starts earlier ends earlier.
  const auto bert = [](const std::string& first) {
    return seconds("traffic-ethernet-bert-large", {"plan.sync.bucket=600 MB", "plan.sync.first_bucket=" + first});
  };
  CHECK(bert("1 MB") < bert("600 MB"));
}

TEST_CASE("R13: PowerSGD pays on Ethernet and not on NVSwitch") {
  // NVSwitch: the exchange is hidden anyway, the factors' kernels are not.
  CHECK(exchange(train("traffic-powersgd")) < 0.15 * exchange(train("traffic-buckets")));
  CHECK(seconds("traffic-powersgd") > seconds("traffic-buckets"));
  // 10 Gbit/s: 1.3 GB a step at 1.19 GB/s. With rank 4 a thousandth of it is left, and latency.
  const double plain = seconds("traffic-ethernet-bert-large");
  CHECK(seconds("traffic-ethernet-bert-large", {"plan.sync.compression=powersgd(4)"}) < 0.4 * plain);
  CHECK(seconds("traffic-ethernet-bert-large", {"plan.sync.compression=fp16"}) < 0.65 * plain);
}

TEST_CASE("R13: gathered gradients grow with the ranks, summed ones do not") {
  const auto on = [](const std::string& nodes, const std::string& compression) {
    const int batch = 32 * std::stoi(nodes);
    return exchange(train("traffic-ethernet-bert-large",
                          {"cluster.nodes=" + nodes, "workload.train.global_batch=" + std::to_string(batch),
                           "plan.sync.compression=" + compression}));
  };
  // All-gather: (n-1) · k · 8 bytes, 15/7 = 2.14 times as many for 16 ranks as for 8. All-reduce: 2 (n-1)/n, 1.07.
  CHECK(on("16", "top_k(1 %)") / on("8", "top_k(1 %)") == Approx(15.0 / 7.0).epsilon(0.03));
  CHECK(on("16", "none") / on("8", "none") == Approx((15.0 / 16) / (7.0 / 8)).epsilon(0.03));
}

TEST_CASE("R13: 100 Gbit/s need no compression, 10 Gbit/s one of two to four") {
  // Zhang et al. 2020 (arXiv 2006.10103) for ResNet-50 and V100: where the network is fully used, scaling is nearly
  // linear at 100 Gbit/s without compression, and at 10 Gbit/s with a ratio of 2 to 5.
  const TrainResult free = train("traffic-ethernet-resnet-50",
                                 {"cluster.network.nic_bandwidth=100000 Gbit/s", "cluster.network.latency=0.001 us"});
  const auto slower = [&](const std::string& bandwidth, const std::string& compression) {
    return seconds("traffic-ethernet-resnet-50",
                   {"cluster.network.nic_bandwidth=" + bandwidth + " Gbit/s", "plan.sync.compression=" + compression}) /
           free.step_time.value();
  };
  CHECK(slower("100", "none") < 1.05);
  CHECK(slower("10", "none") > 1.15);
  CHECK(slower("10", "fp16") < 1.10);
  CHECK(slower("10", "fp8") < 1.06);
}

TEST_CASE("R13: the text's ratio of communication to computation, beside what the model finds") {
  const TrainResult result = train("traffic-baseline");
  REQUIRE(result.communication_to_compute);
  // 2 · 51.4 GB over the 276 GB/s between two GPUs on the NVSwitch; the batch's FLOPs at 312 TFLOP/s.
  const double flops = result.model_flops_per_second_per_gpu.value() * result.step_time.value();
  const double formula = 2.0 * result.memory.gradients.value() / 276e9 / (flops / 312e12);
  CHECK(result.communication_to_compute->formula == Approx(formula).epsilon(0.001));
  CHECK(result.communication_to_compute->simulated ==
        Approx(exchange(result) / result.breakdown.compute.value()).epsilon(1e-9));
  // It falls with the batch: eight times the samples, an eighth.
  const TrainResult accumulated = train("traffic-accumulation");
  CHECK(accumulated.communication_to_compute->formula == Approx(formula / 8).epsilon(0.001));
  // One replica has nothing to exchange; two machines share what eight cards of 25 GB/s · 0.93 carry.
  CHECK_FALSE(train("traffic-baseline", {"cluster.gpus_per_node=1", "plan.data=1"}).communication_to_compute);
  const TrainResult two =
      train("traffic-baseline", {"cluster.nodes=2", "plan.data=16", "workload.train.global_batch=32"});
  CHECK(two.communication_to_compute->formula == Approx(formula * 276.0 / 186.0).epsilon(0.001));
}

TEST_CASE("R13: the simulation agrees with the estimate") {
  for (const char* scenario : {"traffic-baseline", "traffic-accumulation", "traffic-buckets", "traffic-powersgd",
                               "traffic-top-k", "traffic-ethernet-resnet-50"}) {
    INFO(scenario);
    const double estimate = seconds(scenario);
    CHECK(seconds(scenario, {}, Fidelity::flows) == Approx(estimate).epsilon(0.01));
    CHECK(seconds(scenario, {}, Fidelity::steps) == Approx(estimate).epsilon(0.01));
  }
  const Overrides each = {"plan.sync.sync_each_micro_batch=true", "plan.sync.overlap=true",
                          "plan.sync.compression=powersgd(2)"};
  CHECK(seconds("traffic-accumulation", each, Fidelity::flows) ==
        Approx(seconds("traffic-accumulation", each)).epsilon(0.01));
}
