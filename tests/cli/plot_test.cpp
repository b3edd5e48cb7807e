#include <filesystem>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

/// The picture, which is the same bytes each time.
std::string drawn_twice(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const auto draw = [&](const char* picture) {
    output_of(with(arguments, {"-o", folder.file(picture)}));
    return text_of(folder.file(picture));
  };
  const std::string text = draw("one.svg");
  CHECK(draw("two.svg") == text);
  return text;
}

const std::vector<std::string> estimated = {"--fidelity", "estimate"};

}  // namespace

TEST_CASE("Scaling is printed as a table and drawn as a picture") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  CHECK_THAT(output_of({"plot", "scaling", file, "--gpus", "16,1,2", "--algorithms", "ring,naive", "--fidelity",
                        "estimate", "-o", folder.file("out.svg")}),
             Catch::Contains("small step: time of one step, 8 sequences per GPU, bf16"));
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
  const std::string tasks = drawn_twice({"plot", "timeline", "front-end-matmul-synchronised"});
  check_has(tasks, {">cpu<", ">gpu0<", ">host<"});
  CHECK_THAT(drawn_twice({"plot", "timeline", folder.file("small.yaml", small_step)}),
             Catch::Contains("stage 0 compute"));
}

TEST_CASE("A timeline needs something that takes time") {
  const TemporaryFolder folder;
  const std::string op =
      folder.file("op.yaml", "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy, size: 1 MB } }\n");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{op}, std::vector<std::string>{"front-end-matmul-synchronised", "--until", "1"}}) {
    CHECK(run_program(with({"plot", "timeline", "-o", folder.file("none.svg")}, arguments)).status == 2);
    CHECK_FALSE(std::filesystem::exists(folder.file("none.svg")));
  }
}

TEST_CASE("A picture that cannot be written is refused before anything is predicted") {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json");
  check_refused({"plot", "timeline", "gpt3-175b-1024-a100", "-o", trace},
                {".svg, .png or .pdf; `foretrain timeline` writes a trace"});
  CHECK_FALSE(std::filesystem::exists(trace));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"validate"},
                                                  {"explain", "gpt2-xl-dgx-a100"},
                                                  {"plot", "scaling", "gpt2-xl-dgx-a100"}}) {
    check_refused(with(command, {"-o", folder.file("picture.jpeg")}), {"a picture is written as .svg, .png or .pdf"});
  }
  output_of({"plot", "roofline", "accelerator-roofline", "-o", folder.file("roofline.pdf")});
  CHECK_THAT(text_of(folder.file("roofline.pdf")), Catch::StartsWith("%PDF"));
}

TEST_CASE("Goodput over the interval is reported and drawn beside the formula, latency beside what was measured") {
  const TemporaryFolder folder;
  const std::string picture = folder.file("goodput.svg"), table = folder.file("latency.csv");
  check_has(output_of(with({"plot", "goodput", "failures-no-spare-machines", "-o", picture}, estimated)),
            {"goodput by interval between checkpoints", "Daly's formula", "worked between"});
  check_has(text_of(picture), {"simulated", "best: ", "Daly: "});
  const std::string measured = FORETRAIN_SOURCE_DIR "/validate/measurements/2026-11-22-host-memory-before.json";
  output_of({"plot", "latency", measured, "-o", folder.file("latency.svg"), "--csv", table});
  CHECK_THAT(text_of(table), Catch::Contains(",load,") && Catch::Contains(",\"load, measured\","));
  for (const char* other : {ring_of_four, "gpt2-xl-dgx-a100"}) {
    check_refused({"plot", "goodput", other, "-o", folder.file("none.svg")}, {"cluster.failures"});
  }
}

TEST_CASE("A sweep of buckets is printed with its best value and drawn") {
  const TemporaryFolder folder;
  check_has(output_of({"plot", "sweep", folder.file("small.yaml", small_step), "--vary",
                       "plan.sync.bucket=1 MB,25 MB,1000 MB", "--fidelity", "estimate", "-o", folder.file("out.svg")}),
            {"step is shortest at", "exposed communication"});
  CHECK_THAT(text_of(folder.file("out.svg")), Catch::Contains("gradient bucket"));
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

TEST_CASE("A map of rings and parameter servers is made from what sweeps wrote") {
  const TemporaryFolder folder;
  // On machines with one card each, 8 workers: one server's card carries all of them, 8 S each way, the ring's 2 · 7/8
  // S: 16 / 1.75 = 9.1 times as long.
  const auto sweep_to = [&](const std::string& name, const std::vector<std::string>& more) {
    output_of(with(with({"sweep", "servers-map", "--vary", "workload.collective.size=1 GB,2 GB", "--vary",
                         "cluster.network.nic_bandwidth=10 Gbit/s,100 Gbit/s", "--vary", "workload.collective.ranks=8",
                         "-o", folder.file(name)},
                        estimated),
                   more));
    return folder.file(name);
  };
  const std::string rings = sweep_to("rings.csv", {"--set", "workload.collective.algorithm=ring"});
  const std::string servers =
      sweep_to("servers.csv", {"--set", "workload.collective.algorithm=parameter_server", "--set",
                               "workload.collective.servers=1", "--set", "workload.collective.placement=dedicated"});
  const std::string picture = folder.file("map.svg");
  CHECK_THAT(output_of({"plot", "map", rings, servers, "-o", picture}),
             Catch::Contains("8 predictions") && Catch::Contains(" 9.14 "));
  CHECK_THAT(text_of(picture), Catch::Contains("One dedicated server against a ring"));
  // Without one of the two there is nothing to compare; without the column no axis.
  CHECK(run_program({"plot", "map", rings}).status == 2);
  check_refused({"plot", "map", rings, servers, "--x", "cluster.price"},
                {"rings.csv: there is no column cluster.price"});
  CHECK(run_program({"plot", "map", folder.file("missing.csv")}).status == 2);
}

TEST_CASE("Scaling fills nodes as far as the scenario uses them") {
  // 8 GPUs at 4 a node are two nodes, whose gradients pass the network; 8 of one node's they would not.
  const auto output_with = [](const std::vector<std::string>& command) {
    return output_of(
        with(with(command, estimated), {"--set", "cluster.gpus_per_node=4", "--set", "plan.sync.algorithm=ring"}));
  };
  const std::string predicted =
      output_with({"predict", "gpt2-xl-dgx-a100", "--set", "workload.train.global_batch=128"});
  CHECK_THAT(output_with({"plot", "scaling", "gpt2-xl-dgx-a100", "--gpus", "8", "--algorithms", "ring"}),
             Catch::Contains(step_time_in(predicted)));
}

TEST_CASE("plot timeline draws a measured step beside the predicted one") {
  const TemporaryFolder folder;
  write_file(folder.file("trace.json"),
             R"({"traceEvents": [{"name": "backward", "cat": "compute", "ph": "X", "ts": 1000, "dur": 5000, "tid": 1},)"
             R"({"name": "gloo:all_reduce", "cat": "communication", "ph": "X", "ts": 4000, "dur": 9000, "tid": 2}]})");
  const std::string picture = folder.file("step.svg");
  output_of({"plot", "timeline", "data-parallel-hosts", "--beside", folder.file("trace.json"), "-o", picture});
  CHECK_THAT(read_text_file(picture), Catch::Contains("measured compute") && Catch::Contains("measured communication"));
  write_file(folder.file("none.json"), "{}");
  const std::string both = folder.file("both.json");
  output_of({"timeline", "data-parallel-hosts", "--beside", folder.file("trace.json"), "-o", both});
  check_has(read_text_file(both), {": rank class 0", ": measured\"", "measured compute"});
  check_refused({"plot", "timeline", "data-parallel-hosts", "--beside", folder.file("none.json"), "-o", picture},
                {"no trace in Chrome's format"});
}

TEST_CASE("Attention by length is printed and drawn for what runs on the GPU") {
  const TemporaryFolder folder;
  const std::string result =
      output_of({"plot", "attention", "attention-crossover", "--constant-tokens", "-o", folder.file("a.svg")});
  CHECK_THAT(result, Catch::Contains("flash_2 is faster than standard at every length"));
  CHECK_THAT(result, !Catch::Contains("flash_3"));
  CHECK(std::filesystem::exists(folder.file("a.svg")));
  check_refused({"plot", "attention", ring_of_four}, {"no attention operator"});
}

TEST_CASE("Attention says its memory") {
  const FilterResult text = run_program({"predict", "attention-flash-2"});
  CHECK_THAT(text.output, Catch::Contains("peak"));
  const FilterResult json = run_program({"predict", "attention-flash-2", "--json"});
  check_has(json.output, {"\"memory_bytes\"", "\"saved\""});
}

}  // namespace foretrain::test
