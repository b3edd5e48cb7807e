// validate/on_gpu.sh on machines that are not there: nvidia-smi, CMake and Python are scripts, foretrain-gpu runs on
// the libraries that stand in for CUDA.
#include "tests/catch.hpp"
#include "tests/cuda/program/gpu_program.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// A clone with the script and two graphs, and a folder of programs in front of the system's.
class Clone {
 public:
  Clone() {
    namespace fs = std::filesystem;
    const fs::path source = FORETRAIN_SOURCE_DIR;
    fs::create_directories(folder_.path() / "validate/cuda/graphs");
    fs::copy(source / "validate/on_gpu.sh", folder_.path() / "validate/on_gpu.sh");
    for (const char* graph : {"lenet-256.graph", "front-end-matmul-synchronised.graph"}) {
      fs::copy(source / "validate/cuda/graphs" / graph, folder_.path() / "validate/cuda/graphs" / graph);
    }
    program("nvcc", "");
    program("nvidia-smi", "case $* in *compute-apps*) ;; *) echo 9.0 ;; esac");
    program("nproc", "echo 16");
    // Instead of a build: foretrain-gpu on the stand-ins, whose kernels compute nothing.
    program("cmake",
            "[ \"$1\" = --version ] && echo \"cmake version ${CMAKE_IS:-3.25.1}\" && exit\n"
            "echo \"cmake $*\" >> " +
                file("calls") +
                "\nmkdir -p build-gpu\n"
                "printf '%s\\n' '#!/bin/sh' 'echo \"gpu $*\" >> " +
                file("calls") +
                "' "
                "'LD_LIBRARY_PATH=" FORETRAIN_FAKE_LIBRARIES " exec " FORETRAIN_GPU_PROGRAM
                " \"$@\"' "
                "> build-gpu/foretrain-gpu\nchmod +x build-gpu/foretrain-gpu\n");
    program("python3", "echo \"python $*\" >> " + file("calls") + "\n");
  }
  [[nodiscard]] FilterResult run(const std::vector<std::string>& words, const std::vector<std::string>& settings = {},
                                 const std::vector<std::string>& wrapper = {}) const {
    std::vector<std::string> command = {"env", "PATH=" + file("bin") + ":" + std::getenv("PATH")};
    command.insert(command.end(), settings.begin(), settings.end());
    command.insert(command.end(), wrapper.begin(), wrapper.end());
    command.push_back(file("validate/on_gpu.sh"));
    command.insert(command.end(), words.begin(), words.end());
    return run_filter(command, "");
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(file(name), std::ios::binary).rdbuf();
    return all.str();
  }

  /// A program in front of the system's.
  void program(const std::string& name, const std::string& script) const {
    namespace fs = std::filesystem;
    fs::permissions(folder_.write("bin/" + name, "#!/bin/sh\n" + script + "\n"), fs::perms::owner_all);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("on_gpu.sh measures the ground truth first, hands --quick to every part, and leaves architectures to CMake",
          "[gpu]") {
  const Clone clone;
  const FilterResult run = clone.run({"--quick"});
  INFO(run.errors);
  CHECK(run.status == 0);
  const std::string calls = clone.text("calls");
  INFO(calls);
  const std::size_t pytorch = calls.find("python validate/pytorch/train_steps.py --quick");
  const std::size_t replays = calls.find("gpu replay validate/cuda/graphs/");
  const std::size_t kernels = calls.find("gpu measure --quick");
  CHECK(pytorch < replays);
  CHECK(replays < kernels);
  CHECK(kernels != std::string::npos);
  CHECK(calls.find("lenet-256.graph --quick") != std::string::npos);
  CHECK(calls.find("-DFORETRAIN_CUDA_ARCHITECTURES") == std::string::npos);
  CHECK(std::filesystem::exists(clone.file("build-gpu/measurements--quick/machine.json")));
  CHECK(std::filesystem::exists(clone.file("build-gpu/measurements--quick/replay-lenet-256.json")));
  // The documented variable is CMake's.
  CHECK(clone.run({"--quick"}, {"FORETRAIN_CUDA_ARCHITECTURES=75-real"}).status == 0);
  CHECK(clone.text("calls").find("-DFORETRAIN_CUDA_ARCHITECTURES=75-real") != std::string::npos);
}

TEST_CASE("on_gpu.sh in parts: each leaves one packed file, whole or not", "[gpu]") {
  const Clone clone;
  const auto packed = [&](const std::string& part) {
    return run_filter({"tar", "-tf", clone.file("build-gpu/measurements--quick-" + part + ".tar")}, "").output;
  };
  const FilterResult check = clone.run({"check", "--quick"});
  INFO(check.errors);
  CHECK(check.status == 0);
  CHECK(check.errors.find("all parts can run") != std::string::npos);
  CHECK(clone.text("calls").find("gpu measure") == std::string::npos);
  const FilterResult replay = clone.run({"replay", "--quick"});
  CHECK(replay.status == 0);
  CHECK(packed("replay") == "machine.json\nreplay-front-end-matmul-synchronised.json\nreplay-lenet-256.json\n");
  CHECK(clone.text("calls").find("gpu measure") == std::string::npos);
  // Interrupted, as at the end of its time, a part is packed as far as it came.
  const FilterResult ended = clone.run({"measure", "--quick"}, {"FORETRAIN_FAKE_GPU=slow=5"},
                                       {"timeout", "--preserve-status", "-s", "INT", "4"});
  CHECK(ended.status == 130);
  CHECK(packed("measure").find("launch.jsonl") != std::string::npos);
  // Run again, it goes on from there.
  CHECK(clone.run({"measure", "--quick"}).status == 0);
  CHECK(std::ranges::count(clone.text("build-gpu/measurements--quick/launch.jsonl"), '\n') == 6);
  CHECK(clone.run({"multi", "--quick"}).status == 0);  // there is one GPU, which is said
  CHECK(packed("multi").starts_with("machine.json\n"));
  CHECK(clone.run({"steps", "replay", "--quick"}).status == 0);
  CHECK(clone.text("calls").find("python validate/pytorch/train_steps.py --quick") != std::string::npos);
  CHECK(clone.run({"measures"}).status == 2);
  CHECK(clone.run({"measure", "--minutes", "soon"}).status == 2);
}

TEST_CASE("on_gpu.sh says what is too old or not measured yet, and what would do", "[gpu]") {
  const Clone clone;
  const FilterResult old = clone.run({"--quick"}, {"CMAKE_IS=3.22.1"});
  CHECK(old.status == 2);
  CHECK(old.errors.find("CMake 3.22.1: 3.25 or newer is needed; pip install cmake") != std::string::npos);
  std::filesystem::remove(clone.file("bin/nvidia-smi"));
  clone.program("rocm-smi", "");
  const FilterResult amd = clone.run({"--quick"});
  CHECK(amd.status == 2);
  CHECK(amd.errors.find("an AMD GPU: not measured yet") != std::string::npos);
}
