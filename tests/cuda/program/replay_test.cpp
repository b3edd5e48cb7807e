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
  /// Of a graph that can be run.
  [[nodiscard]] Json measured(const replay::Graph& graph, const std::string& settings = "",
                              const std::string& limit = "2") const {
    const FilterResult end = run({write(graph)}, settings, limit);
    INFO(end.errors);
    REQUIRE(end.status == 0);
    Json one = result(graph.name);
    CHECK(one["status"] == "measured");
    return one;
  }

 private:
  TemporaryFolder folder_;
};

/// captured(), by another name and with other work.
replay::Graph captured(const std::string& name, std::vector<Work> work) {
  replay::Graph g = captured();
  g.name = name;
  g.blocks[0].work = std::move(work);
  return g;
}

}  // namespace

TEST_CASE("A graph of everything runs, says when each task did, and is not run again", "[gpu]") {
  const Replays replays;
  const Json result = replays.measured(everything());
  CHECK(result["identity"] == replay::identity_of(everything()));
  CHECK(result["step"]["values"].size() >= 7);
  CHECK(result["step"]["median"].get<double>() > 1e-5);  // the host sleeps for ten microseconds, twice
  CHECK(result["memory_bytes"].get<double>() > 0.0);
  CHECK(result["machine"]["gpu_count"] == 1);
  CHECK(result["state"]["sm_mhz"].get<double>() > 0.0);
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
  const FilterResult again = replays.run({replays.path("everything.graph")});
  CHECK(again.status == 0);
  CHECK_THAT(again.errors, Catch::Contains("everything: measured before"));
}

TEST_CASE("A step is captured as one CUDA graph, its sums by NCCL, on one, two and four GPUs", "[gpu]") {
  const Replays replays;
  for (const int gpus : {1, 2, 4}) {
    replay::Graph step = captured();
    step.gpus = gpus;
    step.name += std::to_string(gpus);
    step.blocks[0].work.emplace_back(CollectiveWork{"nccl", 4096.0_B, gpus, 1, 1});
    CHECK_THAT(replays.measured(step, "devices=4")["notes"].dump(), Catch::Contains("CUDA graphs"));
  }
}

TEST_CASE("Operands stay what they were drawn as: no result is an input of a product", "[gpu]") {
  // Products of products would be infinite after a few steps; on the stand-in they are so at once. Attention without
  // fusion is made of products, too, there and back.
  std::vector<Work> chain(12, product("4096"));
  for (const char* backward : {"false", "true"}) {
    const std::map<std::string, std::string> fields = {
        {"batch", "2"},     {"heads", "4"},         {"kv_heads", "2"},
        {"sequence", "64"}, {"head_dim", "32"},     {"attention", "standard"},
        {"causal", "true"}, {"backward", backward}, {"precision", "fp16"}};
    chain.emplace_back(KernelWork{"unfused", "attention", fields, 1, 1.0_us});
  }
  CHECK(Replays().measured(captured("chain", chain))["work"].size() == 14);
}

TEST_CASE("Streaming operators read what the kernel before them wrote", "[gpu]") {
  // 64 MiB read and as much written, twice: where the second reads the first one's result three buffers do; where it
  // reads numbers of its own four are needed.
  const Replays replays;
  const auto memory = [&](const char* pattern) {
    const std::map<std::string, std::string> fields = {
        {"read", "67108864"}, {"written", "67108864"}, {"pattern", pattern}, {"precision", "bf16"}};
    replay::Graph chain = captured(pattern, std::vector<Work>(2, KernelWork{pattern, "traffic", fields, 1, 1.0_us}));
    chain.resources.pop_back();
    chain.tasks = {{0, 0, {}}};
    return replays.measured(chain)["memory_bytes"].get<double>();
  };
  const double buffer = 67108864.0;
  CHECK(memory("gather") - memory("elementwise") == Approx(buffer).epsilon(0.01));
  CHECK(memory("gather") - memory("reduction") == Approx(buffer).epsilon(0.01));
  // Rows of a table and an optimizer's states were written long before.
  CHECK(memory("optimizer") == Approx(memory("gather")));
}

TEST_CASE("A framework's host hands kernels over no faster than it was predicted to", "[gpu]") {
  // Two kernels at 5 ms each keep the device waiting for 10 ms; then the host is busy for 3 ms between steps.
  replay::Graph paced = captured("paced", {traffic("4096")});  // launched twice
  paced.capture = false;
  paced.resources = {{"compute", Resource::Kind::stream, 0}, {"dispatch", Resource::Kind::framework, 0}};
  paced.blocks.push_back({"dispatch", "host", 10e-3, {HostWork{HostAction::dispatch, 10.0_ms, {}, 2, false}}});
  paced.blocks.push_back({"between steps", "host", 3e-3, {HostWork{HostAction::dispatch, 3.0_ms, {}, 0, false}}});
  paced.tasks = {{1, 1, {}}, {0, 0, {0}}, {2, 1, {1}}};
  const Json result = Replays().measured(paced);
  CHECK(result["host_s"].get<double>() >= 13e-3);
  CHECK(result["tasks"][0]["host_s"].get<double>() >= 10e-3);
  CHECK(result["tasks"][2]["host_s"].get<double>() >= 3e-3);
  CHECK_THAT(result["notes"].dump(), Catch::Contains("as slowly as it was predicted to"));
}

TEST_CASE("Before Ampere a graph in bf16 is run in fp16, and says so", "[gpu]") {
  KernelWork half = product("64");
  half.fields["precision"] = "bf16";
  const Json result = Replays().measured(captured("half", {half}), "capability=75");
  CHECK_THAT(result["notes"].dump(), Catch::Contains("workload.train.precision=fp16"));
  // It counts as a replay of the graph in fp16, which is what it is to be compared with.
  half.fields["precision"] = "fp16";
  CHECK(result["identity"] == replay::identity_of(captured("half", {half})));
}

TEST_CASE("Layers of one shape are planned once", "[gpu]") {
  const Replays replays;
  const std::map<std::string, std::string> attention = {
      {"batch", "8"},        {"heads", "12"},        {"sequence", "1024"}, {"head_dim", "64"},
      {"precision", "bf16"}, {"attention", "flash"}, {"causal", "true"},   {"backward", "true"}};
  const std::map<std::string, std::string> convolution = {{"batch", "64"}, {"channels", "64"},   {"height", "56"},
                                                          {"width", "56"}, {"filters", "64"},    {"kernel", "3"},
                                                          {"pad", "1"},    {"precision", "bf16"}};
  std::vector<Work> layers(12, KernelWork{"attention backward", "attention", attention, 1, 1.0_us});
  layers.insert(layers.end(), 5, KernelWork{"convolution", "convolution", convolution, 1, 1.0_us});
  CHECK(replays.measured(captured("layers", layers), "plans=" + replays.path("plans"))["work"].size() == 17);
  std::ifstream in(replays.path("plans"));
  int plans = 0;
  for (std::string line; std::getline(in, line);) ++plans;
  CHECK(plans == 3);  // attention there and back, and the convolution
}

TEST_CASE("What cannot be run is passed over and named; other graphs are run", "[gpu]") {
  struct Row {
    replay::Graph graph;
    int status;
    const char* why;
  };
  replay::Graph two = captured("two", {product("64")});
  two.gpus = 2;
  const Row rows[] = {
      {two, 0, "it needs 2 GPUs; 1 are here"},
      // Three matrices of 3.6 GB.
      {captured("large", {product("30000")}), 1, "large does not fit: product (matmul k=30000 m=30000 n=30000"},
      {captured("large", {product("30000")}), 1, "export it with a smaller batch"},
      {captured("server", {CollectiveWork{"server_cpu", 4096.0_B, 1, 1, 2}}), 1, "between hosts (foretrain replay)"},
      {captured("odd", {KernelWork{"riddle", "crystal_ball", {}, 1}}), 1, "riddle (crystal_ball)"}};
  for (const Row& row : rows) {
    const Replays replays;
    const FilterResult run = replays.run({replays.write(row.graph), replays.write(captured())}, "memory=4000000000");
    INFO(run.errors);
    CHECK(run.status == row.status);
    CHECK_THAT(run.errors, Catch::Contains(row.why));
    CHECK(replays.result(row.graph.name)["status"] == "skipped");
    CHECK(replays.result("captured")["status"] == "measured");
  }
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
  replay::Graph slow = everything();
  for (replay::Block& block : slow.blocks) {
    for (Work& work : block.work) {
      auto* host = std::get_if<HostWork>(&work);
      if (host != nullptr && host->action == HostAction::sleep) host->duration = 400.0_ms;
    }
  }
  CHECK(Replays().measured(slow, "", "30")["step"]["values"].size() == 3);
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
