#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/cuda/program/gpu_program.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

bool says(const FilterResult& run, const std::string& words) { return run.errors.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("A machine on which nothing can be measured ends with 2 and a remedy", "[gpu]") {
  const std::pair<const char*, const char*> rows[] = {
      {"driver=none", "no NVIDIA driver was found: install one that knows CUDA"},
      {"driver=old", "the NVIDIA driver is too old: it knows CUDA 11.4"},
      {"devices=0", "no GPU is visible: see nvidia-smi, and CUDA_VISIBLE_DEVICES"},
      {"busy=1", "the GPU is in exclusive use by another process: see nvidia-smi"}};
  for (const auto& [settings, words] : rows) {
    INFO(settings);
    const MeasuredFolder folder;
    const FilterResult run = folder.measure("launch", settings);
    INFO(run.errors);
    CHECK(run.status == 2);
    CHECK(says(run, words));
    CHECK(folder.records("launch").empty());
    CHECK(folder.text("machine.json").empty());
    CHECK(run_gpu({"probe"}, settings).output.empty());
  }
}

TEST_CASE("Without a driver the real libraries give the same answer", "[gpu]") {
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY)) {
    dlclose(driver);
    WARN("this machine has a driver");
    return;
  }
  const FilterResult run = run_filter({FORETRAIN_GPU_PROGRAM, "probe"}, "");
  CHECK(run.status == 2);
  CHECK(says(run, "no NVIDIA driver was found"));
}

TEST_CASE("A GPU that fails at one point costs that point, and the next run tries it again", "[gpu]") {
  // The 60th launch of a process falls into the second point, whose calls are made by the hundred.
  const std::pair<const char*, const char*> rows[] = {
      {"ecc_at=60", "the GPU's memory has an uncorrectable error: see nvidia-smi -q -d ECC, dmesg"},
      {"hang_at=60", "hung: nothing was heard for 2 s, so its process was ended"},
      {"crash_at=60", "its process was ended by signal 11"}};
  for (const auto& [fault, words] : rows) {
    INFO(fault);
    const MeasuredFolder folder;
    const std::string settings = std::string(fault) + ",once=" + folder.beside("once");
    const FilterResult run = folder.measure("launch", settings, {}, {"--point-limit", "2"});
    INFO(run.errors);
    CHECK(run.status == 1);
    CHECK(says(run, "failed: kernel_back_to_back timing=stream blocks=1: "));
    CHECK(says(run, words));
    CHECK(folder.count("launch", "failed").size() == 1);
    CHECK(folder.count("launch", "measured").size() == 5);  // another process went on with what was left
    CHECK(folder.measure("launch").status == 0);
    CHECK(folder.count("launch", "measured").size() == 6);
  }
}

TEST_CASE("A GPU that fails again and again is given up after four processes", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("memory", "ecc_at=60");
  CHECK(run.status == 1);
  CHECK(folder.records("memory").size() >= 4);
  CHECK(folder.count("memory", "failed").size() == 4);
}

TEST_CASE("NCCL's errors are listed", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("collective", "devices=2,nccl=error");
  INFO(run.errors);
  CHECK(run.status == 1);
  CHECK(says(run, "unhandled system error"));
  CHECK(folder.count("collective", "measured").empty());
}

TEST_CASE("What does not fit into the GPU's memory is left out, and the rest is measured", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("memory", "memory=600000000");
  INFO(run.errors);
  CHECK(run.status == 0);
  const auto points = folder.count("memory", "measured");
  CHECK(points.size() > 10);
  for (const auto& [name, times] : points) CHECK(name.find("working_set=1073741824B") == std::string::npos);
}

TEST_CASE("What may spoil measurements is said", "[gpu]") {
  const MeasuredFolder folder;
  const FilterResult run = folder.measure("launch", "others=1,throttle=1");
  CHECK(run.status == 0);
  CHECK(says(run, "warning: GPU 0 (Imaginary GPU) is in use by process 4242"));
  CHECK(says(run, "warning: clocks were lowered by heat"));
  const auto state = folder.records("launch").front()["state"];
  CHECK(state["throttle"] == nlohmann::json({"power", "thermal"}));
}

TEST_CASE("Two runs do not measure into one folder", "[gpu]") {
  const MeasuredFolder folder;
  std::filesystem::create_directories(folder.path());
  const int file = open((folder.path() + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(flock(file, LOCK_EX | LOCK_NB) == 0);
  const FilterResult second = folder.measure("launch");
  close(file);
  CHECK(second.status == 2);
  CHECK(says(second, "another run measures into this folder"));
  CHECK(folder.measure("launch").status == 0);
}

TEST_CASE("A command line that cannot be obeyed ends with 2 and what would be right", "[gpu]") {
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{}, "a subcommand is missing; there are probe, measure and replay"},
      {{"mesure"}, "mesure: no such subcommand; there are probe, measure and replay"},
      {{"measure"}, "a folder is missing: -o FOLDER"},
      {{"measure", "-o"}, "-o: no such option here, or not with this value; see foretrain-gpu --help"},
      {{"measure", "-o", "x", "--fast"}, "--fast: no such option here"},
      {{"measure", "-o", "x", "--quick=1"}, "--quick=1: no such option here, or not with this value"},
      {{"measure", "-o", "x", "--only", "gem"}, "there is no suite gem; there are launch, memory"},
      {{"measure", "-o", "x", "--only", "gemm,,copy"}, "an empty name between commas"},
      {{"measure", "-o", "x", "--point-limit=0"}, "0: a limit is in whole seconds, at least 1"},
      {{"measure", "-o", "x", "folder"}, "folder: nothing is expected here"},
      {{"measure", "-o", "/dev/null/x"}, "/dev/null/x"},
  };
  for (const auto& [words, answer] : rows) {
    const FilterResult run = run_gpu(words);
    INFO(answer << "\n" << run.errors);
    CHECK(run.status == 2);
    CHECK(says(run, answer));
    CHECK(run.output.empty());
  }
  CHECK_FALSE(std::filesystem::exists("x"));
  CHECK(run_gpu({"--help"}).output.find("foretrain-gpu measure -o FOLDER") != std::string::npos);
  CHECK(run_gpu({"--version"}).output.rfind("foretrain-gpu ", 0) == 0);
}
