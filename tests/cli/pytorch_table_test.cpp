// validate/pytorch/train_steps.py writes a table of cases: its own logic, without PyTorch and without a GPU.
#include <filesystem>
#include <sstream>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

const std::string script = std::string(FORETRAIN_SOURCE_DIR) + "/validate/pytorch/train_steps.py";

FilterResult run_script(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"python3", script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_filter(command, "");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool no_python() {
  if (std::system("command -v python3 >/dev/null 2>&1") == 0) return false;
  WARN("no python3 here: the table of PyTorch's steps is not tested");
  return true;
}

/// What one_step.py printed of a case, as the script keeps it. The numbers are made up; the test is about names, units
/// and the table's form.
std::string record(const std::string& model, int batch, const std::string& sequence, const std::string& precision,
                   const std::string& execution) {
  const std::string ask = "import runpy, json; m = runpy.run_path('" + script + "'); c = dict(model='" + model +
                          "', batch=" + std::to_string(batch) + ", sequence=" + sequence + ", precision='" + precision +
                          "', execution='" + execution +
                          "'); r = m['record_of'](c, dict(values=[0.25, 0.5, 0.125], figures=dict(host_s=0.01, "
                          "device_used_bytes=5000000000, energy_j=None))); r.update(pytorch='2.0', cuda='13.0', "
                          "gpu='a GPU', date='2026-01-01'); print(json.dumps(r))";
  return run_filter({"python3", "-c", ask}, "").output;
}

}  // namespace

TEST_CASE("Every designed step has a name of its own, and the quick set is small") {
  if (no_python()) return;
  const FilterResult all = run_script({"--list"});
  const FilterResult quick = run_script({"--list", "--quick"});
  REQUIRE(all.status == 0);
  const std::vector<std::string> names = lines_of(all.output);
  std::vector<std::string> distinct = names;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  CHECK(distinct.size() == names.size());
  CHECK(names.size() >= 40);
  CHECK(lines_of(quick.output).size() <= 8);
  check_has(all.output,
            {"lenet", "resnet-18-d2l", "resnet-50", "bert-base", "gpt2-", "gpt2-medium", "gpt2-large", "gpt3-1.3b"});
}

TEST_CASE("Before Ampere every step in half precision is one of fp16, and none is in fp8") {
  if (no_python()) return;
  const std::string ask =
      "import runpy; m = runpy.run_path('" + script +
      "'); print('\\n'.join(m['name_of'](c) for c in m['designed_cases'](False, 'fp16', fp8=False)))";
  const FilterResult names = run_filter({"python3", "-c", ask}, "");
  CHECK(names.status == 0);
  CHECK_THAT(names.output, Catch::Contains("gpt2-b16-s1024-fp16-compiled") && !Catch::Contains("bf16"));
  std::vector<std::string> today = lines_of(run_script({"--list"}).output);
  std::erase_if(today, [](const std::string& name) { return name.find("-fp8-") != std::string::npos; });
  CHECK(lines_of(names.output).size() == today.size());
}

TEST_CASE("What was measured becomes a table that validate takes, medians and bytes as they are") {
  if (no_python()) return;
  const TemporaryFolder folder;
  write_file(folder.file("steps.jsonl"),
             record("lenet", 256, "None", "fp32", "eager") + record("gpt2", 4, "512", "bf16", "compiled") +
                 record("gpt2", 4, "512", "bf16", "cuda_graph") + record("llama3.2-1b", 1, "2048", "bf16", "eager") +
                 R"({"suite": "steps", "name": "gpt2-b8-s512-bf16-eager", "status": "failed", "note": "lost"})"
                 "\n" +
                 R"({"name": "cut o)");
  const FilterResult table = run_script({"-o", folder.file(""), "--table", "--node", "h200-x1"});
  INFO(table.errors);
  REQUIRE(table.status == 0);
  const std::string text = read_text_file(folder.file("cases_pytorch.csv"));
  CHECK_THAT(text, Catch::Contains("0.25 s,5000.0 MB"));  // the median of three, decimal megabytes
  CHECK(lines_of(text).size() == 5);                      // a head and four cases: what failed is left out
  check_has(output_of({"validate", "--cases", folder.file("cases_pytorch.csv"), "--json"}),
            {"pytorch-gpt2-b4-s512-bf16-compiled", R"("failed": [])"});
}

TEST_CASE("The records of steps are points that calibrate fits, about a quarter of them held out") {
  if (no_python()) return;
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("raw"));
  write_file(folder.file("raw/machine.json"),
             R"({"date":"2026-01-01","gpus":[{"index":0,"name":"Synthetic 5000","compute_capability":"8.9","sms":100,)"
             R"("sm_clock_hz":2000000000,"memory_clock_hz":8000000000,"memory_bytes":34359738368,)"
             R"("memory_bus_bits":256,"l2_bytes":50331648}]})");
  std::string lines;
  for (const char* execution : {"eager", "compiled"}) {
    for (const int batch : {1, 4, 16}) lines += record("gpt2", batch, "512", "bf16", execution);
  }
  write_file(folder.file("raw/steps.jsonl"), lines);
  check_has(output_of({"calibrate", "--from", folder.file("raw"), "-o", folder.file("out.json")}),
            {"steps, eager", "steps, compiled", "training steps: MAPE"});
  const std::string ask = "import runpy; m = runpy.run_path('" + script +
                          "'); c = m['designed_cases'](False); n = sum(m['held_out'](m['name_of'](x)) for x in c); "
                          "print('a quarter' if 0.15 < n / len(c) < 0.35 else n)";
  CHECK(run_filter({"python3", "-c", ask}, "").output == "a quarter\n");
}

TEST_CASE("What nvidia-smi says of a GPU while steps ran becomes the record's state") {
  if (no_python()) return;
  const std::string folder = std::filesystem::path(script).parent_path().string();
  // 0x4 is the board's power, 0x20 heat; what is no number, or was cut off, says nothing.
  const std::string ask = "import sys, json, types; sys.path.insert(0, '" + folder +
                          "'); sys.modules['models'] = types.ModuleType('models'); import one_step; "
                          "print(json.dumps(one_step.state_of(['1980, 650.0, 0x0000000000000004', '1500, 700.0, "
                          "0x0000000000000024', '1700, [N/A], 0x0000000000000000', '17'])), one_step.state_of([]))";
  const FilterResult state = run_filter({"python3", "-B", "-c", ask}, "");
  INFO(state.errors);
  CHECK(state.output == R"({"sm_mhz": 1700.0, "throttle": ["power", "thermal"], "power_w": 675.0} None)"
                        "\n");
}

TEST_CASE("operators.py names what it lacks, and how it is used") {
  if (no_python()) return;
  const std::string program = std::filesystem::path(script).parent_path() / "operators.py";
  const FilterResult help = run_filter({"python3", "-B", program, "--help"}, "");
  CHECK(help.status == 0);
  CHECK_THAT(help.output, Catch::Contains("--minutes") && Catch::Contains("workload.operator.clock"));
  const FilterResult none = run_filter({"python3", "-B", program, "no-such-table.csv", "-o", "/nonexistent"}, "");
  CHECK(none.status == 2);
  CHECK_THAT(none.errors, Catch::Contains("no-such-table.csv: no such file"));
}

TEST_CASE("Whose attention ran is what the step's scenario says") {
  if (no_python()) return;
  const std::string folder = std::filesystem::path(script).parent_path().string();
  const std::string ask =
      "import sys, types; sys.path.insert(0, '" + folder +
      "'); sys.modules['models'] = types.ModuleType('models'); import one_step, train_steps; "
      "names = ['cudnn_generated_fort_native_sdpa_sm90_flash_fprop', 'void pytorch_flash::flash_fwd_kernel', "
      "'fmha_cutlassF_f32', 'cudnn::bn_fw_tr']; print([one_step.attention_of([[n]]) for n in names]); "
      "c = dict(model='gpt2', batch=1, sequence=512, precision='bf16', execution='eager'); "
      "r = train_steps.record_of(c, dict(values=[1.0], figures={}, attention='cudnn'))['scenario']; "
      "print(r['workload.train.attention'], r['workload.train.native_attention'])";
  const FilterResult said = run_filter({"python3", "-B", "-c", ask}, "");
  INFO(said.errors);
  CHECK(said.output == "['cudnn', 'flash_2', 'memory_efficient', None]\nflash true\n");
}

TEST_CASE("A step in fp8 is scaled by its own tensors, and no transformer's gradients are clipped") {
  if (no_python()) return;
  const std::string said = record("llama3-8b", 1, "4096", "fp8", "compiled");
  check_has(said, {R"("workload.train.fp8.scaling": "current")", R"("workload.train.clip_gradients": "false")",
                   R"("workload.train.fused_optimizer": "true")", R"("workload.train.attention": "flash")"});
  CHECK_THAT(record("resnet-50", 32, "None", "bf16", "eager"), !Catch::Contains("clip") && !Catch::Contains("fp8"));
}

TEST_CASE("Without a measured case, with an unknown model or without PyTorch the script says so") {
  if (no_python()) return;
  const TemporaryFolder folder;
  CHECK(run_script({"-o", folder.file(""), "--table"}).status == 1);
  const FilterResult unknown = run_script({"-o", folder.file(""), "--only", "gtp2"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.errors, Catch::Contains("there is no model gtp2"));
  CHECK(run_script({}).status == 2);
}

}  // namespace foretrain::test
