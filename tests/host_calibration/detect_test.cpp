// Description of this machine, read from recorded texts; and the benchmarks themselves as a smoke test.
#include "validate/host_calibration/detect.hpp"

#include <cstdlib>

#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "validate/host_calibration/memory_kernels.hpp"
#include "validate/host_calibration/memory_walk.hpp"
#include "validate/host_calibration/processors.hpp"

using namespace foretrain;

namespace {

// Two processors of a virtual machine on Emerald Rapids, flags shortened.
constexpr const char* emerald_rapids = R"(processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 207
model name	: Intel(R) Xeon(R) Processor
siblings	: 2
cpu cores	: 2
flags		: fpu sse2 avx2 fma hypervisor avx512f

processor	: 1
vendor_id	: GenuineIntel
cpu family	: 6
model		: 207
model name	: Intel(R) Xeon(R) Processor
siblings	: 2
cpu cores	: 2
flags		: fpu sse2 avx2 fma hypervisor avx512f
)";

// One core with two threads of a desktop processor that the table does not know.
constexpr const char* unknown_processor = R"(processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 99
model		: 1
model name	: A "quoted" processor
siblings	: 2
cpu cores	: 1
flags		: sse2

processor	: 1
flags		: sse2
)";

void write_cache(const TemporaryFolder& folder, int index, const char* level, const char* type, const char* size,
                 const char* ways, const char* sharers) {
  const std::string entry = "cache/index" + std::to_string(index) + "/";
  folder.write(entry + "level", level);
  folder.write(entry + "type", type);
  folder.write(entry + "size", size);
  folder.write(entry + "ways_of_associativity", ways);
  folder.write(entry + "shared_cpu_list", sharers);
}

void use_catalogue() { setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 1); }

}  // namespace

TEST_CASE("Processors from /proc/cpuinfo") {
  const DetectedCpu xeon = parse_cpuinfo(emerald_rapids);
  CHECK(xeon.identity == "GenuineIntel 6 207");
  CHECK(xeon.processors == 2);
  CHECK(xeon.threads_per_core == 1);
  CHECK(xeon.virtualised);
  CHECK(xeon.vector_bytes == 64);
  CHECK(xeon.multiply_adds == 2);
  const DetectedCpu other = parse_cpuinfo(unknown_processor);
  CHECK(other.processors == 2);
  CHECK(other.threads_per_core == 2);
  CHECK_FALSE(other.virtualised);
  CHECK(other.vector_bytes == 16);
  CHECK(parse_cpuinfo("").processors == 1);
  const DetectedCpu close = parse_cpuinfo("siblings:6\ncpu cores:3\n");
  CHECK(close.threads_per_core == 2);
}

TEST_CASE("Caches from sysfs: data and unified ones, by level; what is missing is left out") {
  const TemporaryFolder folder;
  write_cache(folder, 0, "1\n", "Data\n", "48K\n", "12\n", "0\n");
  write_cache(folder, 1, "1\n", "Instruction\n", "32K\n", "8\n", "0\n");
  write_cache(folder, 2, "3\n", "Unified\n", "300M\n", "20\n", "0-3,8\n");
  write_cache(folder, 3, "2\n", "Unified\n", "2048K\n", "16\n", "0\n");
  const auto caches = read_caches(folder.path() / "cache");
  REQUIRE(caches.size() == 3);
  CHECK(caches[0].size == Bytes(48 * 1024.0));
  CHECK(caches[1].level == 2);
  CHECK(caches[1].ways == 16);
  CHECK(caches[2].size == Bytes(300 * 1048576.0));
  CHECK(caches[2].shared_by == 5);
  CHECK(read_caches(folder.path() / "missing").empty());
}

TEST_CASE("The hardware file of a detected machine is one that scenarios accept") {
  use_catalogue();
  DetectedCpu cpu = parse_cpuinfo(emerald_rapids);
  cpu.clock = Hertz(2.8e9);
  cpu.caches = {{1, Bytes(48 * 1024.0), 12, 1}, {2, Bytes(2097152.0), 16, 1}, {3, Bytes(307200 * 1024.0), 20, 2}};
  cpu.measured = {{"cpu.clock", "counted"}};
  const std::string file = hardware_file(cpu, Bytes(24e9));
  CHECK_THAT(file, Catch::Contains("cpu.clock: { kind: measurement, text: \"counted\" }") &&
                       Catch::Contains("memory: 22888 MiB"));
  const Node node = node_of_hardware_file(file);
  REQUIRE(node.cpu.hierarchy);
  CHECK_FALSE(node.cpu.hierarchy->caches[2].residence.value() > 0.0);
  // 2 cores x 2 units x 16 lanes x 2 operations x 2.8 GHz.
  CHECK(node.cpu.fp32_rate.value() == Approx(358.4e9));
  CHECK(node.cpu.hierarchy->caches[0].latency.value() == Approx(5 / 2.8e9));  // five cycles of the measured clock
  CHECK(node.cpu.hierarchy->caches[1].size == Bytes(2097152.0));
  CHECK(node.cpu.hierarchy->virtualised);
  const TemporaryFolder folder;
  const std::string path = folder.write("node.yaml", file).string();
  const Scenario scenario = load_scenario_text(
      "cluster: { node: " + path + " }\nworkload: { operator: { kind: memory_walk, working_set: 1 MiB } }\n",
      "test.yaml");
  CHECK(scenario.cluster.node.cpu.cores == 2);
  // Measurements replace reported values: one unit, two processors of one core, and an L3 of full size in which
  // other virtual machines leave a line for 9 ms.
  cpu.multiply_adds = 1;
  cpu.threads_per_core = 2;
  cpu.caches[2].residence = Seconds(9e-3);
  const Node shared = node_of_hardware_file(hardware_file(cpu, Bytes(24e9)));
  CHECK(shared.cpu.cores == 1);
  CHECK(shared.cpu.fp32_rate.value() == Approx(89.6e9));
  CHECK(shared.cpu.hierarchy->caches[2].residence.value() == Approx(9e-3));
  CHECK(shared.cpu.hierarchy->caches[2].size == Bytes(307200 * 1024.0));
  CHECK(shared.cpu.hierarchy->caches[2].shared_by == 1);
  // Four threads are two cores.
  cpu.caches[2].shared_by = 4;
  CHECK(node_of_hardware_file(hardware_file(cpu, Bytes(24e9))).cpu.hierarchy->caches[2].shared_by == 2);
  // A processor without a description, on a machine that tells nothing of its caches.
  DetectedCpu unknown = parse_cpuinfo(unknown_processor);
  unknown.clock = Hertz(3e9);
  const Node other = node_of_hardware_file(hardware_file(unknown, Bytes(8e9)));
  CHECK(other.cpu.cores == 1);
  CHECK(other.cpu.hierarchy->caches.size() == 3);
}

TEST_CASE("Looking at the cores twice keeps the better of both looks, and says how it knows") {
  DetectedCpu cpu = parse_cpuinfo(emerald_rapids);
  cpu.clock = Hertz(1e12);  // of an earlier look: no core is that fast
  measure_cores(cpu);
  CHECK(cpu.clock == Hertz(1e12));
  CHECK(cpu.measured.contains("cpu.clock"));
  if (!cpu.measured.contains("cpu.fp32_rate")) return;  // no loop for this processor
  cpu.multiply_adds = 2;
  measure_cores(cpu);
  CHECK(cpu.multiply_adds == 2);
}

TEST_CASE("How long a cache keeps data is where loads take half-way to memory's time") {
  const auto at = [](double milliseconds, double nanoseconds) {
    return AgedLoad{Seconds(milliseconds * 1e-3), Seconds(nanoseconds * 1e-9)};
  };
  // 40 ns within, 120 outside: 80 ns lie in the middle of 60 at 6 ms and 100 at 10 ms.
  CHECK(half_way({at(2, 40), at(6, 60), at(10, 100), at(20, 119)}, Seconds(120e-9)).value() == Approx(8e-3));
  // Noise in between: the last age that is still below counts.
  CHECK(half_way({at(2, 40), at(4, 90), at(6, 60), at(10, 100)}, Seconds(120e-9)).value() == Approx(8e-3));
  // Still there after all that time: no other machine fills the cache. Gone at once: no later than the youngest age.
  CHECK(half_way({at(2, 40), at(50, 45)}, Seconds(120e-9)).value() == 0.0);
  CHECK(half_way({at(2, 40)}, Seconds(30e-9)).value() == Approx(2e-3));
  CHECK(half_way({}, Seconds(120e-9)).value() == 0.0);
}

TEST_CASE("A thread is bound to a processor for a while") {
  const std::vector<int> before = own_processors();
  REQUIRE(!before.empty());
  {
    const BoundTo bound(before.back());
    CHECK(own_processors() == std::vector<int>{before.back()});
  }
  CHECK(own_processors() == before);
}

TEST_CASE("Walks are measured: finite, and the L1 far below memory") {
  use_catalogue();
  DetectedCpu detected = parse_cpuinfo(emerald_rapids);
  detected.clock = Hertz(2.8e9);
  const Node node = node_of_hardware_file(hardware_file(detected, Bytes(8e9)));
  const StoppingRule rule{.warm_up = 1, .least = 3, .most = 8, .target = 0.1, .budget = Seconds(0.05)};
  const auto fastest = [&](const std::map<std::string, std::string>& parameters) {
    return run_walk(walk_of(parameters, node.cpu), rule).lowest();
  };
  const double first = fastest({{"working_set", "8 KiB"}, {"pattern", "pointer_chase"}});
  const double memory = fastest({{"working_set", "64 MiB"}, {"pattern", "pointer_chase"}});
  CHECK(first > 1e-10);
  CHECK(memory < 1e-4);
  CHECK(memory > 3.0 * first);
  CHECK(PointerChase(8192, 64, false).chase(100'000) > 1e-10);
  for (const char* access : {"read", "write", "copy"}) {
    const double time = fastest({{"working_set", "256 KiB"}, {"access", access}});
    CHECK(time > 0.0);
    CHECK(time < 1e-3);
  }
  CHECK(fastest({{"working_set", "1 MiB"}, {"threads", "2"}}) > 0.0);
  CHECK_THROWS_AS(fastest({{"working_set", "1 MiB"}, {"pattern", "random"}}), std::invalid_argument);
  const double clock = core_clock(), multiply_adds = multiply_adds_per_second();  // 0: no loop for this processor
  CHECK(clock > 1e8);
  CHECK(clock < 2e10);
  CHECK((multiply_adds == 0.0 || (multiply_adds > 1e7 && multiply_adds < 8.0 * 2e10)));
}

TEST_CASE("The loops touch what they say") {
  // One byte of 4096 is set: copying moves it in any width, writing clears it.
  std::vector<std::byte> memory(8192, std::byte{0});
  const MemoryKernels& kernels = memory_kernels();
  for (const std::size_t place : {std::size_t{0}, std::size_t{1234}, std::size_t{4095}}) {
    memory[place] = std::byte{1};
    kernels.copy(memory.data() + 4096, memory.data(), 4096, 1);
    CHECK(memory[4096 + place] == std::byte{1});
    kernels.write(memory.data(), 4096, 1);
    CHECK(memory[place] == std::byte{0});
  }
}
