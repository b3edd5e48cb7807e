// foretrain-gpu replay on libraries that stand in for CUDA: the flow, its files and its errors. Times are those of the
// stand-in's clock; nothing here says anything about a GPU.
#include "tests/catch.hpp"
#include "tests/cuda/program/gpu_program.hpp"
#include "validate/replay/graph_text.hpp"
#include "validate/replay/result.hpp"

using namespace foretrain;
using namespace foretrain::test;
using Json = nlohmann::json;

namespace {

using HostAction = HostWork::Action;
using replay::Resource;

KernelWork traffic(const std::string& bytes) {
  return {"activation", "traffic", {{"read", bytes}, {"written", bytes}}, 2, 1.0_us};
}
KernelWork product(const std::string& size) {
  return {"product", "matmul", {{"m", size}, {"n", size}, {"k", size}, {"precision", "fp32"}}, 1, 10.0_us};
}

/// A bit of everything that one GPU does: kernels by themselves and as a CUDA graph, copies both ways, pageable and
/// pinned, an all-reduce, and a host thread that launches, waits, sleeps, allocates and prints.
replay::Graph everything() {
  replay::Graph g;
  g.name = "everything";
  g.scenario = "a bit of everything";
  g.hardware = "h200-x1";
  g.fidelity = "estimate";
  g.predicted = 1e-3;
  g.resources = {{"cpu", Resource::Kind::host, 0},
                 {"launches", Resource::Kind::path, 0},
                 {"gpu0", Resource::Kind::stream, 0},
                 {"gpu0:d2h", Resource::Kind::copies, 0},
                 {"gpu0:h2d", Resource::Kind::copies, 0}};
  const auto host = [](HostAction action, int kernels = 0, bool graph = false) {
    return replay::Block{"host", "host", 1e-6, {HostWork{action, 10.0_us, 4096.0_B, kernels, graph}}};
  };
  g.blocks = {host(HostAction::dispatch, 1),
              host(HostAction::launch),
              {"forward", "compute", 1e-5, {product("64"), traffic("4096")}},
              host(HostAction::dispatch, 2, true),
              {"small", "compute", 1e-6, {traffic("4096")}},
              host(HostAction::sleep),
              host(HostAction::page_lock),
              {"to host", "communication", 1e-6, {CopyWork{"gpu0", "cpu", 4096.0_B, false}}},
              {"to device", "communication", 1e-6, {CopyWork{"cpu", "gpu0", 4096.0_B, true}}},
              host(HostAction::format),
              host(HostAction::synchronize),
              {"sum", "communication", 1e-5, {CollectiveWork{"nccl", 4096.0_B, 1, 1, 2}}}};
  g.tasks = {{0, 0, {}}, {1, 1, {0}}, {2, 2, {1}}, {3, 0, {}},  {1, 1, {3}}, {4, 2, {4}},   {4, 2, {}},
             {5, 0, {}}, {6, 0, {}},  {7, 3, {6}}, {8, 4, {9}}, {9, 0, {9}}, {11, 2, {10}}, {10, 0, {12}}};
  for (std::size_t i = 0; i < g.tasks.size(); ++i) g.tasks[i].end = 1e-3;
  return g;
}

/// A step that is captured as a whole, on every GPU.
replay::Graph captured() {
  replay::Graph g = everything();
  g.name = "captured";
  g.replicated = g.capture = true;
  g.resources = {{"compute", Resource::Kind::stream, 0}, {"kernels", Resource::Kind::stream, 0}};
  g.blocks = {{"forward", "compute", 1e-5, {product("64"), traffic("4096")}}};
  g.tasks = {{0, 0, {}}, {0, 1, {0}}, {0, 0, {1}}};
  return g;
}

class Replays {
 public:
  [[nodiscard]] std::string write(const replay::Graph& graph) const {
    return folder_.write(graph.name + ".graph", to_text(graph)).string();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] FilterResult run(const std::vector<std::string>& graphs, const std::string& settings = "",
                                 const std::string& limit = "2") const {
    std::vector<std::string> words = {"replay", "-o", path("out"), "--quick", "--limit", limit};
    words.insert(words.end(), graphs.begin(), graphs.end());
    return run_gpu(words, settings);
  }
  [[nodiscard]] Json result(const std::string& name) const {
    std::ifstream in(path("out/replay-" + name + ".json"), std::ios::binary);
    return Json::parse(in);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("A graph of everything runs, says when each task did, and is not run again", "[gpu]") {
  const Replays replays;
  const std::string graph = replays.write(everything());
  const FilterResult first = replays.run({graph});
  INFO(first.errors);
  REQUIRE(first.status == 0);
  const Json result = replays.result("everything");
  CHECK(result["status"] == "measured");
  CHECK(result["identity"] == replay::identity_of(everything()));
  CHECK(result["step"]["values"].size() >= 7);
  CHECK(result["step"]["median"].get<double>() > 1e-5);  // the host sleeps for ten microseconds, twice
  CHECK(result["memory_bytes"].get<double>() > 0.0);
  CHECK(result["machine"]["gpu_count"] == 1);
  REQUIRE(result["tasks"].size() == everything().tasks.size());
  for (const Json& task : result["tasks"]) {
    if (task.contains("end_s")) CHECK(task["end_s"].get<double>() >= task["start_s"].get<double>());
  }
  CHECK(result["tasks"][2].contains("start_s"));
  CHECK(!result["tasks"][5].contains("start_s"));  // within a CUDA graph
  // The block of two pieces: product and activation.
  REQUIRE(result["work"].size() == 2);
  CHECK(result["work"][1]["name"] == "activation");
  // By which it can be predicted anew, also by who does not have the graph.
  CHECK(result["work"][1]["kind"] == "traffic");
  CHECK(result["work"][1]["count"] == 2);
  CHECK(result["work"][1]["fields"]["read"] == "4096");
  CHECK_THAT(result["notes"].dump(), Catch::Contains("nccl"));
  const FilterResult again = replays.run({graph});
  CHECK(again.status == 0);
  CHECK_THAT(again.errors, Catch::Contains("everything: measured before"));
}

TEST_CASE("A step is captured as one CUDA graph, its sums by NCCL, on one, two and four GPUs", "[gpu]") {
  const Replays replays;
  for (const int gpus : {1, 2, 4}) {
    replay::Graph step = captured();
    step.name += std::to_string(gpus);
    step.gpus = gpus;
    step.blocks[0].work.emplace_back(CollectiveWork{"nccl", 4096.0_B, gpus, 1, 1});
    const FilterResult run = replays.run({replays.write(step)}, "devices=4");
    INFO(run.errors);
    CHECK(run.status == 0);
    CHECK(replays.result(step.name)["status"] == "measured");
    CHECK_THAT(replays.result(step.name)["notes"].back().get<std::string>(), Catch::Contains("CUDA graphs"));
  }
}

TEST_CASE("Operands stay what they were drawn as: no result is an input, and all are finite after the last step",
          "[gpu]") {
  // Of 4096 numbers below 1 a sum is 64 times as large as they are. Were results inputs, the third product's would be
  // 64 times 64, and after a few steps of a dozen none would be finite, even in bf16.
  const Replays replays;
  replay::Graph chain = captured();
  chain.name = "chain";
  chain.blocks[0].work.assign(12, product("4096"));
  for (Work& work : chain.blocks[0].work) std::get<KernelWork>(work).fields["precision"] = "bf16";
  const FilterResult run = replays.run({replays.write(chain)});
  INFO(run.errors);
  CHECK(run.status == 0);
  CHECK(replays.result("chain")["status"] == "measured");
}

TEST_CASE("Streaming operators read what the kernel before them wrote", "[gpu]") {
  // 64 MiB read and as much written, twice: where the second reads the first one's result three buffers do; where it
  // reads numbers of its own four are needed.
  const Replays replays;
  const auto memory = [&](const char* pattern) {
    replay::Graph chain = captured();
    chain.name = pattern;
    chain.resources = {{"compute", Resource::Kind::stream, 0}};
    chain.tasks = {{0, 0, {}}};
    const std::map<std::string, std::string> fields = {
        {"read", "67108864"}, {"written", "67108864"}, {"pattern", pattern}, {"precision", "bf16"}};
    chain.blocks[0].work.assign(2, KernelWork{pattern, "traffic", fields, 1, 1.0_us});
    const FilterResult run = replays.run({replays.write(chain)});
    INFO(run.errors);
    REQUIRE(run.status == 0);
    return replays.result(pattern)["memory_bytes"].get<double>();
  };
  const double buffer = 67108864.0;
  CHECK(memory("gather") - memory("elementwise") == Approx(buffer).epsilon(0.01));
  CHECK(memory("gather") - memory("reduction") == Approx(buffer).epsilon(0.01));
  // Rows of a table and an optimizer's states were written long before.
  CHECK(memory("optimizer") == Approx(memory("gather")));
}

TEST_CASE("A framework's host hands kernels over no faster than it was predicted to", "[gpu]") {
  // Two kernels at 5 ms each keep the device waiting for 10 ms; then the host is busy for 3 ms between steps.
  const Replays replays;
  replay::Graph paced = captured();
  paced.name = "paced";
  paced.capture = false;
  paced.resources = {{"compute", Resource::Kind::stream, 0}, {"dispatch", Resource::Kind::framework, 0}};
  paced.blocks.push_back({"dispatch", "host", 10e-3, {HostWork{HostAction::dispatch, 10.0_ms, {}, 2, false}}});
  paced.blocks.push_back({"between steps", "host", 3e-3, {HostWork{HostAction::dispatch, 3.0_ms, {}, 0, false}}});
  paced.blocks[0].work = {traffic("4096")};  // launched twice
  paced.tasks = {{1, 1, {}}, {0, 0, {0}}, {2, 1, {1}}};
  const FilterResult run = replays.run({replays.write(paced)});
  INFO(run.errors);
  REQUIRE(run.status == 0);
  const Json result = replays.result("paced");
  CHECK(result["host_s"].get<double>() >= 13e-3);
  CHECK(result["tasks"][0]["host_s"].get<double>() >= 10e-3);
  CHECK(result["tasks"][2]["host_s"].get<double>() >= 3e-3);
  CHECK_THAT(result["notes"].dump(), Catch::Contains("as slowly as it was predicted to"));
}

TEST_CASE("Before Ampere a graph in bf16 is run in fp16, and says so", "[gpu]") {
  const Replays replays;
  replay::Graph half = captured();
  half.name = "half";
  KernelWork norm{"norm", "traffic", {{"read", "65536"}, {"written", "65536"}, {"pattern", "reduction"}}, 1, 1.0_us};
  half.blocks[0].work = {product("64"), norm};
  for (Work& work : half.blocks[0].work) std::get<KernelWork>(work).fields["precision"] = "bf16";
  const FilterResult run = replays.run({replays.write(half)}, "capability=75");
  INFO(run.errors);
  CHECK(run.status == 0);
  CHECK(replays.result("half")["status"] == "measured");
  CHECK_THAT(replays.result("half")["notes"].dump(), Catch::Contains("workload.train.precision=fp16"));
  // It counts as a replay of the graph in fp16, which is what it is to be compared with.
  for (Work& work : half.blocks[0].work) std::get<KernelWork>(work).fields["precision"] = "fp16";
  CHECK(replays.result("half")["identity"] == replay::identity_of(half));
}

TEST_CASE("Layers of one shape are planned once", "[gpu]") {
  const Replays replays;
  replay::Graph layers = captured();
  layers.name = "layers";
  const std::map<std::string, std::string> attention = {
      {"batch", "8"},        {"heads", "12"},        {"sequence", "1024"}, {"head_dim", "64"},
      {"precision", "bf16"}, {"attention", "flash"}, {"causal", "true"},   {"backward", "true"}};
  const std::map<std::string, std::string> convolution = {{"batch", "64"}, {"channels", "64"},   {"height", "56"},
                                                          {"width", "56"}, {"filters", "64"},    {"kernel", "3"},
                                                          {"pad", "1"},    {"precision", "bf16"}};
  layers.blocks[0].work.assign(12, KernelWork{"attention backward", "attention", attention, 1, 1.0_us});
  for (int i = 0; i < 5; ++i) {
    layers.blocks[0].work.emplace_back(KernelWork{"convolution", "convolution", convolution, 1, 1.0_us});
  }
  const FilterResult run = replays.run({replays.write(layers)}, "plans=" + replays.path("plans"));
  INFO(run.errors);
  CHECK(run.status == 0);
  std::ifstream in(replays.path("plans"));
  int plans = 0;
  for (std::string line; std::getline(in, line);) ++plans;
  CHECK(plans == 3);  // attention there and back, and the convolution
}

TEST_CASE("One kernel moves the bytes of every pattern, another those that are gathered", "[gpu]") {
  const Replays replays;
  replay::Graph kinds = captured();
  kinds.name = "kinds";
  kinds.blocks[0].work.clear();
  for (const char* pattern : {"elementwise", "elementwise", "reduction", "gather", "optimizer"}) {
    const std::map<std::string, std::string> fields = {
        {"read", "131072"}, {"written", "65536"}, {"pattern", pattern}, {"precision", "bf16"}};
    kinds.blocks[0].work.emplace_back(KernelWork{pattern, "traffic", fields, 1, 1.0_us});
  }
  const FilterResult run = replays.run({replays.write(kinds)});
  INFO(run.errors);
  CHECK(run.status == 0);
  // On the stand-in a kernel's time follows from its name.
  const Json work = replays.result("kinds")["work"];
  REQUIRE(work.size() == 5);
  const auto time = [&](std::size_t i) { return work[i]["measured_s"].get<double>(); };
  CHECK(time(1) == Approx(time(2)).margin(1e-7));
  CHECK(time(1) == Approx(time(4)).margin(1e-7));
  CHECK(time(2) != Approx(time(3)).margin(1e-7));
}

TEST_CASE("A graph of more GPUs than there are is passed over", "[gpu]") {
  const Replays replays;
  replay::Graph two = captured();
  two.gpus = 2;
  const FilterResult run = replays.run({replays.write(two)});
  CHECK(run.status == 0);
  CHECK_THAT(run.errors, Catch::Contains("needs 2 GPUs; 1 are here"));
  CHECK(replays.result("captured")["status"] == "skipped");
}

TEST_CASE("What does not fit says what it needs; other graphs are run", "[gpu]") {
  const Replays replays;
  replay::Graph large = captured();
  large.name = "large";
  large.blocks[0].work = {product("30000")};  // three matrices of 3.6 GB
  const FilterResult run = replays.run({replays.write(large), replays.write(captured())}, "memory=4000000000");
  INFO(run.errors);
  CHECK(run.status == 1);
  CHECK_THAT(run.errors, Catch::Contains("large needs at least 21.60 GB") && Catch::Contains("smaller batch"));
  CHECK(replays.result("large")["status"] == "skipped");
  CHECK(replays.result("captured")["status"] == "measured");
}

TEST_CASE("A parameter server is carried out between hosts, not on GPUs", "[gpu]") {
  const Replays replays;
  replay::Graph server = captured();
  server.blocks[0].work = {CollectiveWork{"server_cpu", 4096.0_B, 1, 1, 2}};
  const FilterResult run = replays.run({replays.write(server)});
  CHECK(run.status == 1);
  CHECK(replays.result("captured")["status"] == "skipped");
  CHECK_THAT(run.errors, Catch::Contains("between hosts (foretrain replay)"));
}

TEST_CASE("An operator that cannot be run is named", "[gpu]") {
  const Replays replays;
  replay::Graph odd = captured();
  odd.blocks[0].work = {KernelWork{"riddle", "crystal_ball", {}, 1}};
  const FilterResult run = replays.run({replays.write(odd)});
  CHECK(run.status == 1);
  CHECK_THAT(run.errors, Catch::Contains("riddle") && Catch::Contains("crystal_ball"));
}

TEST_CASE("A fault of the GPU ends one graph, not the others", "[gpu]") {
  for (const char* fault : {"ecc_at=30", "crash_at=30", "hang_at=30"}) {
    const Replays replays;
    const std::string settings = std::string(fault) + ",once=" + replays.path("happened");
    const FilterResult run = replays.run({replays.write(captured()), replays.write(everything())}, settings);
    INFO(fault << "\n" << run.errors);
    CHECK(run.status == 1);
    CHECK_THAT(run.errors, Catch::Contains("captured: could not be run"));
    CHECK(replays.result("everything")["status"] == "measured");
  }
}

TEST_CASE("A step of seconds is repeated a few times, not as often as a short one", "[gpu]") {
  // The host sleeps for 400 ms in each: seven of them are more than the second that --quick has.
  const Replays replays;
  replay::Graph slow = everything();
  slow.name = "slow";
  for (replay::Block& block : slow.blocks) {
    for (Work& work : block.work) {
      auto* host = std::get_if<HostWork>(&work);
      if (host != nullptr && host->action == HostAction::sleep) host->duration = 400.0_ms;
    }
  }
  REQUIRE(replays.run({replays.write(slow)}, "", "30").status == 0);
  CHECK(replays.result("slow")["step"]["values"].size() == 3);
  REQUIRE(replays.run({replays.write(everything())}).status == 0);
  CHECK(replays.result("everything")["step"]["values"].size() >= 7);
  // The clock and the power that a step ran at are kept with it.
  CHECK(replays.result("everything")["state"]["sm_mhz"].get<double>() > 0.0);
}

TEST_CASE("Bad graphs and no GPU end with status 2 before anything is run", "[gpu]") {
  const Replays replays;
  const std::string good = replays.write(captured());
  CHECK(replays.run({}).status == 2);
  CHECK(replays.run({good, good}).status == 2);
  CHECK(replays.run({good, replays.path("missing.graph")}).status == 2);
  const FilterResult none = replays.run({good}, "driver=none");
  CHECK(none.status == 2);
  CHECK_THAT(none.errors, Catch::Contains("driver"));
  CHECK(!std::filesystem::exists(replays.path("out")));
}
