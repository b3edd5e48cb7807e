#include <filesystem>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

TEST_CASE("Scaling is printed as a table and drawn as a picture") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const FilterResult result = run_program({"plot", "scaling", file, "--gpus", "16,1,2", "--algorithms", "ring,naive",
                                           "--fidelity", "estimate", "-o", folder.file("out.svg")});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("small step: time of one step, 8 sequences per GPU, bf16"));
  const std::string svg = text_of(folder.file("out.svg"));
  for (const char* label : {"small step", "GPUs", "ring", "naive", ">16<"}) CHECK_THAT(svg, Catch::Contains(label));
}

TEST_CASE("Numbers of GPUs that do not make whole nodes are left out with a warning") {
  const TemporaryFolder folder;
  const FilterResult result = run_program({"plot", "scaling", folder.file("small.yaml", small_step), "--gpus", "8,12",
                                           "--algorithms", "ring", "--fidelity", "estimate"});
  CHECK(result.status == 1);
  CHECK_THAT(result.errors, Catch::Contains("left out on 12 GPUs"));
}

TEST_CASE("A timeline is drawn of tasks and of a step, the same every time") {
  const TemporaryFolder folder;
  const auto draw = [&](const std::string& scenario, const std::string& picture) {
    const FilterResult result = run_program({"plot", "timeline", scenario, "-o", folder.file(picture)});
    INFO(result.errors);
    REQUIRE(result.status == 0);
    return text_of(folder.file(picture));
  };
  const std::string tasks = draw("front-end-matmul-synchronised", "one.svg");
  for (const char* row : {">cpu<", ">gpu0<", ">host<"}) CHECK_THAT(tasks, Catch::Contains(row));
  CHECK(tasks == draw("front-end-matmul-synchronised", "two.svg"));
  CHECK_THAT(draw(folder.file("small.yaml", small_step), "step.svg"), Catch::Contains("stage 0 compute"));
}

TEST_CASE("A timeline needs something that takes time") {
  const TemporaryFolder folder;
  const std::string op =
      folder.file("op.yaml", "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy, size: 1 MB } }\n");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{op}, std::vector<std::string>{"front-end-matmul-synchronised", "--from", "1 s"},
        std::vector<std::string>{"front-end-matmul-synchronised", "--until", "1"}}) {
    std::vector<std::string> all = {"plot", "timeline", "-o", folder.file("none.svg")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    CHECK(run_program(all).status == 2);
    CHECK_FALSE(std::filesystem::exists(folder.file("none.svg")));
  }
}

TEST_CASE("A picture that cannot be written is refused before anything is predicted") {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json");
  const FilterResult timeline = run_program({"plot", "timeline", "gpt3-175b-1024-a100", "-o", trace});
  CHECK(timeline.status == 2);
  CHECK_THAT(timeline.errors, Catch::Contains(".svg, .png or .pdf; `foretrain timeline` writes a trace"));
  CHECK_FALSE(std::filesystem::exists(trace));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"validate"},
                                                  {"explain", "gpt2-xl-dgx-a100"},
                                                  {"plot", "scaling", "gpt2-xl-dgx-a100"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-o", folder.file("picture.jpeg")});
    const FilterResult result = run_program(arguments);
    CHECK(result.status == 2);
    CHECK_THAT(result.errors, Catch::Contains("a picture is written as .svg, .png or .pdf"));
  }
  CHECK(run_program({"plot", "roofline", "accelerator-roofline", "-o", folder.file("roofline.pdf")}).status == 0);
  CHECK_THAT(text_of(folder.file("roofline.pdf")), Catch::StartsWith("%PDF"));
}

TEST_CASE("Goodput over the interval is told and drawn beside the formula, latency beside what was measured") {
  const TemporaryFolder folder;
  const FilterResult goodput = run_program(
      {"plot", "goodput", "failures-no-spare-machines", "--fidelity", "estimate", "-o", folder.file("goodput.svg")});
  INFO(goodput.errors);
  CHECK(goodput.status == 0);
  CHECK_THAT(goodput.output, Catch::Contains("Daly's formula") && Catch::Contains("worked between"));
  CHECK_THAT(text_of(folder.file("goodput.svg")), Catch::Contains("best: ") && Catch::Contains("Daly: "));
  const std::string measured = FORETRAIN_SOURCE_DIR "/validate/measurements/2026-11-22-host-memory-before.json";
  const std::string table = folder.file("latency.csv");
  CHECK(run_program({"plot", "latency", measured, "-o", folder.file("latency.svg"), "--csv", table}).status == 0);
  CHECK_THAT(text_of(table), Catch::Contains(",load,") && Catch::Contains(",\"load, measured\","));
  const FilterResult none = run_program({"plot", "goodput", "gpt2-xl-dgx-a100"});
  CHECK(none.status == 2);
  CHECK_THAT(none.errors, Catch::Contains("cluster.failures"));
}

TEST_CASE("A breakdown has one bar per value") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const std::vector<std::string> arguments = {
      "plot", "breakdown", file, "--vary", "plan.sync.algorithm=ring,naive", "--fidelity", "estimate", "-o"};
  for (const char* picture : {"one.svg", "two.svg"}) {
    std::vector<std::string> all = arguments;
    all.push_back(folder.file(picture));
    REQUIRE(run_program(all).status == 0);
  }
  CHECK_THAT(text_of(folder.file("one.svg")), Catch::Contains(">naive<"));
  CHECK(text_of(folder.file("one.svg")) == text_of(folder.file("two.svg")));
}

TEST_CASE("A sweep of buckets is printed with its best value and drawn") {
  const TemporaryFolder folder;
  const FilterResult result =
      run_program({"plot", "sweep", folder.file("small.yaml", small_step), "--vary",
                   "plan.sync.bucket=1 MB,25 MB,1000 MB", "--fidelity", "estimate", "-o", folder.file("out.svg")});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("step is shortest at"));
  CHECK_THAT(result.output, Catch::Contains("exposed communication"));
  CHECK_THAT(text_of(folder.file("out.svg")), Catch::Contains("gradient bucket"));
}

TEST_CASE("A second key of a sweep makes a curve for each of its values") {
  const TemporaryFolder folder;
  const FilterResult result =
      run_program({"plot", "sweep", folder.file("small.yaml", small_step), "--vary", "plan.sync.bucket=1 MB,1 GB",
                   "--vary", "plan.sync.compression=none,powersgd(2)", "--fidelity", "estimate"});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("powersgd(2) is shortest at"));
}

TEST_CASE("A sweep needs names or numbers of one unit for its axis, and points that can be predicted") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const auto sweep = [&](const std::string& vary) { return run_program({"plot", "sweep", file, "--vary", vary}); };
  CHECK(sweep("plan.sync.algorithm=ring,tree").status == 0);
  CHECK(sweep("plan.sync.algorithm=ring,ring").status == 2);
  CHECK_THAT(sweep("plan.sync.bucket=1 MB,1 s").errors, Catch::Contains("numbers of one unit"));
  CHECK(sweep("plan.sync.bucket=1 MB,1 s").status == 2);
  CHECK(sweep("plan.sync.bucket=1 MB,0.001 GB").status == 2);
  CHECK(sweep("workload.train.micro_batch=7,8").status == 1);
}

TEST_CASE("Only training can be plotted") {
  const TemporaryFolder folder;
  CHECK(run_program({"plot", "scaling", ring_of_four}).status == 2);
  CHECK(run_program({"plot", "breakdown", ring_of_four, "-o", folder.file("out.svg")}).status == 2);
  CHECK_FALSE(std::filesystem::exists(folder.file("out.svg")));
}

TEST_CASE("A map of rings and parameter servers is made from what sweeps wrote") {
  const TemporaryFolder folder;
  // On machines with one card each, 8 workers: one server's card carries all of them, 8 S each way, the ring's 2 · 7/8
  // S: 16 / 1.75 = 9.1 times as long.
  const std::vector<std::string> sweep = {"sweep",      "servers-map",
                                          "--vary",     "workload.collective.size=1 GB,2 GB",
                                          "--vary",     "cluster.network.nic_bandwidth=10 Gbit/s,100 Gbit/s",
                                          "--vary",     "workload.collective.ranks=8",
                                          "--fidelity", "estimate"};
  const auto sweep_to = [&](const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = sweep;
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"-o", output});
    return run_program(arguments).status;
  };
  const std::string rings = folder.file("rings.csv");
  const std::string servers = folder.file("servers.csv");
  REQUIRE(sweep_to(rings, {"--set", "workload.collective.algorithm=ring"}) == 0);
  REQUIRE(sweep_to(servers, {"--set", "workload.collective.algorithm=parameter_server", "--set",
                             "workload.collective.servers=1", "--set", "workload.collective.placement=dedicated"}) ==
          0);
  const std::string picture = folder.file("map.svg");
  const FilterResult result = run_program({"plot", "map", rings, servers, "-o", picture});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("8 predictions") && Catch::Contains("9.14 x"));
  CHECK_THAT(text_of(picture), Catch::Contains("One dedicated server against a ring"));
  // Without one of the two there is nothing to compare; without the column no axis.
  CHECK(run_program({"plot", "map", rings}).status == 2);
  const FilterResult no_column = run_program({"plot", "map", rings, servers, "--x", "cluster.price"});
  CHECK(no_column.status == 2);
  CHECK_THAT(no_column.errors, Catch::Contains("rings.csv: there is no column cluster.price"));
  CHECK(run_program({"plot", "map", folder.file("missing.csv")}).status == 2);
}

TEST_CASE("A map is made of a training sweep, its axes what varies") {
  const TemporaryFolder folder;
  const auto sweep_to = [&](const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"sweep",      "servers-map-training",
                                          "--vary",     "cluster.network.nic_bandwidth=10 Gbit/s,100 Gbit/s",
                                          "--vary",     "workload.train.global_batch=64,128",
                                          "--fidelity", "estimate",
                                          "-o",         output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments).status;
  };
  REQUIRE(sweep_to(folder.file("ring.csv"), {"--set", "plan.sync.algorithm=ring"}) == 0);
  REQUIRE(sweep_to(folder.file("servers.csv"),
                   {"--set", "plan.sync.algorithm=parameter_server", "--set", "plan.sync.placement=colocated"}) == 0);
  const FilterResult map =
      run_program({"plot", "map", folder.file("ring.csv"), folder.file("servers.csv"), "-o", folder.file("map.svg")});
  INFO(map.errors);
  CHECK(map.status == 0);
  CHECK_THAT(map.output, Catch::Contains("8 predictions") && Catch::Contains("Up to which samples of a step"));
  CHECK_THAT(text_of(folder.file("map.svg")), Catch::Contains("network speed (Gbit/s)"));
}

TEST_CASE("Scaling fills nodes as far as the scenario uses them") {
  // 8 GPUs at 4 a node are two nodes, whose gradients pass the network; 8 of one node's they would not.
  const std::vector<std::string> with = {
      "--set", "cluster.gpus_per_node=4", "--set", "plan.sync.algorithm=ring", "--fidelity", "estimate"};
  std::vector<std::string> scaling = {"plot", "scaling", "gpt2-xl-dgx-a100", "--gpus", "8", "--algorithms", "ring"};
  std::vector<std::string> predict = {"predict", "gpt2-xl-dgx-a100"};
  for (auto* arguments : {&scaling, &predict}) arguments->insert(arguments->end(), with.begin(), with.end());
  predict.insert(predict.end(), {"--set", "workload.train.global_batch=128"});
  const FilterResult drawn = run_program(scaling), predicted = run_program(predict);
  REQUIRE(drawn.status == 0);
  REQUIRE(predicted.status == 0);
  const std::size_t at = predicted.output.find("Step time") + 9;
  const std::string step = predicted.output.substr(at, predicted.output.find('(', at) - at);
  CHECK_THAT(drawn.output, Catch::Contains(step.substr(step.find_first_not_of(' '),
                                                       step.find_last_not_of(' ') + 1 - step.find_first_not_of(' '))));
}

TEST_CASE("plot timeline draws a measured step beside the predicted one") {
  const TemporaryFolder folder;
  write_file(folder.file("trace.json"),
             R"({"traceEvents": [{"name": "backward", "cat": "compute", "ph": "X", "ts": 1000, "dur": 5000, "tid": 1},)"
             R"({"name": "gloo:all_reduce", "cat": "communication", "ph": "X", "ts": 4000, "dur": 9000, "tid": 2}]})");
  const std::string picture = folder.file("step.svg");
  REQUIRE(run_program({"plot", "timeline", "data-parallel-hosts", "--beside", folder.file("trace.json"), "-o", picture})
              .status == 0);
  CHECK_THAT(read_text_file(picture), Catch::Contains("measured compute") && Catch::Contains("measured communication"));
  write_file(folder.file("none.json"), "{}");
  const FilterResult refused =
      run_program({"plot", "timeline", "data-parallel-hosts", "--beside", folder.file("none.json"), "-o", picture});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.errors, Catch::Contains("no trace in Chrome's format"));
}

}  // namespace foretrain::test
