#include "validate/host_calibration/detect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "model/base/text.hpp"
#include "model/scenario/hardware_reader.hpp"
#include "validate/host_calibration/last_cache.hpp"
#include "validate/host_calibration/memory_kernels.hpp"
#include "validate/host_calibration/pointer_chase.hpp"
#include "validate/host_calibration/processors.hpp"
#include "validate/host_replay/measurements.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

namespace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  return std::string(trim(line));
}

std::string whole(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// The digits at the start of a text; 0 without any.
int leading_number(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > 100'000'000) break;
    value = value * 10 + (c - '0');
  }
  return value;
}

bool has_flag(const std::string& flags, std::string_view flag) {
  const std::vector<std::string> words = split_words(flags);
  return std::find(words.begin(), words.end(), flag) != words.end();
}

std::string hierarchy_of(const std::string& identity) {
  for (const KnownProcessors& known : known_processors()) {
    if (std::find(known.processors.begin(), known.processors.end(), identity) != known.processors.end()) {
      return known.hierarchy;
    }
  }
  return "generic-server";
}

const DetectedCache* level_of(const DetectedCpu& cpu, int level) {
  for (const DetectedCache& cache : cpu.caches) {
    if (cache.level == level) return &cache;
  }
  return nullptr;
}

int threads_per_core(const DetectedCpu& cpu, const MeasuredBasics& measured) {
  return std::max(1, measured.threads_per_core > 0 ? measured.threads_per_core : cpu.threads_per_core);
}

/// One line per cache that the operating system tells of: `L2: { size: 2048 KiB, ways: 16 }`.
std::string cache_lines(const DetectedCpu& cpu, const MeasuredBasics& measured) {
  std::string text;
  for (int level = 1; level <= 3; ++level) {
    const DetectedCache* cache = level_of(cpu, level);
    if (cache == nullptr || !(cache->size.value() > 0.0) || cache->ways < 1) continue;
    const bool part = level == 3 && measured.shared_cache.value() > 0.0;
    const bool aging = level == 3 && measured.residence.value() > 0.0;
    const Bytes size = part ? std::min(cache->size, measured.shared_cache) : cache->size;
    text += fmt::format("      L{}: {{ size: {:.0f} KiB, ways: {}, shared_by: {}{}{} }}\n", level,
                        size.value() / 1024.0, cache->ways,
                        std::max(1, cache->shared_by / threads_per_core(cpu, measured)), part ? ", victim: false" : "",
                        aging ? fmt::format(", residence: {:.2f} ms", measured.residence.value() * 1e3) : "");
  }
  return text.empty() ? "" : "    caches:\n" + text;
}

/// Clock and vector units: the best of several looks at several processors, since what else runs on a chip takes from
/// both, and comes and goes.
void look_at_cores(MeasuredBasics& measured) {
  constexpr std::size_t processors = 4;
  constexpr int looks = 10;
  std::vector<int> own = own_processors();
  own.resize(std::min(own.size(), processors));
  double multiply_adds = 0.0;
  for (int look = 0; look < looks; ++look) {
    for (const int processor : own) {
      const BoundTo bound(processor);
      const double clock = core_clock();
      measured.clock = std::max(measured.clock, Hertz(clock));
      multiply_adds = std::max(multiply_adds, multiply_adds_per_second() / clock);
    }
  }
  // A tenth more than one a cycle proves a second unit; less may be another virtual machine's work on the core's other
  // thread.
  if (multiply_adds > 0.0) measured.multiply_adds = std::max(measured.multiply_adds, multiply_adds > 1.1 ? 2 : 1);
}

// How much of the last cache a pointer chase finds. Zero where the operating system tells of no such cache.
// Working sets grow until a pointer chase over them takes more than half-way from the last cache's latency to memory's:
// a machine that is shared gets less of that cache than it is told. Both latencies come from the same chase, at a size
// well inside and at one well outside of what any machine could have.
Bytes own_share_of_last_cache(const DetectedCpu& cpu) {
  const DetectedCache* second = level_of(cpu, 2);
  const DetectedCache* third = level_of(cpu, 3);
  if (second == nullptr || third == nullptr) return Bytes(0.0);
  const StoppingRule rule{.warm_up = 2, .least = 15, .most = 40, .target = 0.02, .budget = Seconds(0.15)};
  const auto fastest = [&](Bytes size) {
    PointerChase walk(static_cast<std::size_t>(size.value()), 64, PageKind::huge);
    walk.chase(static_cast<std::int64_t>(std::min<std::size_t>(walk.places(), 1'000'000)));
    return sample([&] { return walk.chase(60'000); }, rule).lowest();
  };
  const double inside = fastest(second->size * 2.0);
  const double outside = fastest(std::max(third->size, Bytes(268435456.0)));
  Bytes share = second->size * 2.0;
  for (Bytes size = second->size * 3.0; size <= third->size; size = size * 1.25) {
    if (fastest(size) > 0.5 * (inside + outside)) return share;
    share = size;
  }
  return third->size;
}

}  // namespace

Bytes parse_cache_size(const std::string& text) {
  const int number = leading_number(text);
  if (text.find('K') != std::string::npos) return Bytes(number * 1024.0);
  if (text.find('M') != std::string::npos) return Bytes(number * 1048576.0);
  return Bytes(number);
}

int count_of_list(const std::string& text) {
  int count = 0;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    if (trim(part).empty()) continue;
    if (dash == std::string::npos) {
      ++count;
    } else {
      count += std::max(0, leading_number(trim(part).substr(dash + 1)) - leading_number(trim(part)) + 1);
    }
  }
  return count;
}

DetectedCpu parse_cpuinfo(const std::string& text) {
  DetectedCpu cpu;
  std::string vendor, family, model, flags;
  int processors = 0, siblings = 0, cores = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    const std::string value(trim(std::string_view(line).substr(colon + 1)));
    if (key == "processor") ++processors;
    if (key == "model name" && cpu.name.empty()) cpu.name = value;
    if (key == "vendor_id") vendor = value;
    if (key == "cpu family") family = value;
    if (key == "model") model = value;
    if (key == "flags" || key == "Features") flags = value;
    if (key == "siblings") siblings = leading_number(value);
    if (key == "cpu cores") cores = leading_number(value);
  }
  if (cpu.name.empty()) cpu.name = "processor";
  cpu.identity = fmt::format("{} {} {}", vendor, family, model);
  cpu.processors = std::max(1, processors);
  cpu.threads_per_core = cores > 0 && siblings > cores ? siblings / cores : 1;
  cpu.virtualised = has_flag(flags, "hypervisor");
  cpu.vector_bytes = has_flag(flags, "avx512f") ? 64 : has_flag(flags, "avx2") ? 32 : 16;
  // Assumption: cores with AVX-512 or FMA3 have two such units, as those of servers do; only small Xeons have one.
  cpu.multiply_adds = has_flag(flags, "fma") || cpu.vector_bytes == 64 ? 2 : 1;
  return cpu;
}

std::vector<DetectedCache> read_caches(const std::filesystem::path& folder) {
  std::vector<DetectedCache> caches;
  for (int index = 0; index < 8; ++index) {
    const std::filesystem::path entry = folder / fmt::format("index{}", index);
    const std::string type = first_line(entry / "type");
    if (type != "Data" && type != "Unified") continue;
    DetectedCache cache;
    cache.level = leading_number(first_line(entry / "level"));
    cache.size = parse_cache_size(first_line(entry / "size"));
    cache.ways = leading_number(first_line(entry / "ways_of_associativity"));
    cache.shared_by = std::max(1, count_of_list(first_line(entry / "shared_cpu_list")));
    if (cache.level >= 1 && cache.level <= 3 && cache.size.value() > 0.0) caches.push_back(cache);
  }
  std::sort(caches.begin(), caches.end(),
            [](const DetectedCache& a, const DetectedCache& b) { return a.level < b.level; });
  return caches;
}

std::string hardware_file(const DetectedCpu& cpu, const MeasuredBasics& measured, Bytes memory) {
  const std::string hierarchy = hierarchy_of(cpu.identity);
  const int cores = std::max(1, cpu.processors / threads_per_core(cpu, measured));
  const double clock = measured.clock.value();
  const int units = measured.multiply_adds > 0 ? measured.multiply_adds : cpu.multiply_adds;
  const double operations = 2.0 * units * cpu.vector_bytes / 4.0;
  BytesPerSecond bandwidth(100e9);
  for (const KnownProcessors& known : known_processors()) {
    if (known.hierarchy == hierarchy) bandwidth = known.socket_bandwidth;
  }
  std::string name;
  for (const char c : cpu.name) name += c == '"' || c == '\\' ? '\'' : c;
  std::string text = fmt::format(
      "kind: node\nname: this-machine\ndescription: \"{0}, described by foretrain calibrate\"\n"
      "gpu: host-process\ngpus: 1\ncpu:\n  name: \"{0}\"\n  sockets: 1\n  cores: {1}\n  clock: {2:.0f} MHz\n"
      "  memory: {3:.0f} MiB\n  memory_bandwidth: {4:.1f} GB/s\n  fp32_rate: {5:.1f} GFLOP/s\n"
      "  hierarchy:\n    preset: {6}\n    virtualised: {7}\n    vector: {8} B\n",
      name, cores, clock / 1e6, memory.value() / 1048576.0, bandwidth.value() / 1e9, operations * clock * cores / 1e9,
      hierarchy, cpu.virtualised, cpu.vector_bytes);
  text += cache_lines(cpu, measured);
  text +=
      "link_types:\n  process-memory:\n    kind: pcie\n    bandwidth: 20 GB/s\n    latency: 0 us\n"
      "    source: { kind: assumption, text: \"a process's own memory\" }\n"
      "wiring:\n  - { between: [gpu0, cpu0], link: process-memory }\n"
      "sources:\n  default: { kind: assumption, text: \"figures that no prediction of this processor depends on\" }\n";
  text += fmt::format(
      "  cpu: {{ kind: datasheet, text: \"told by the operating system: /proc/cpuinfo ({}); memory_bandwidth is that "
      "of "
      "a socket of its kind\" }}\n",
      cpu.identity);
  text += "  cpu.clock: { kind: measurement, text: \"a chain of dependent additions, one a cycle\" }\n";
  if (measured.multiply_adds > 0) {
    text += fmt::format(
        "  cpu.fp32_rate: {{ kind: measurement, text: \"a loop in registers does {} multiply-adds of {} bytes a "
        "cycle\" "
        "}}\n",
        measured.multiply_adds, cpu.vector_bytes);
  }
  if (measured.threads_per_core > 0) {
    text += fmt::format(
        "  cpu.cores: {{ kind: measurement, text: \"two threads that multiply show {} of a core among the processors\" "
        "}}\n",
        measured.threads_per_core);
  }
  const char* last_cache = "";
  if (measured.shared_cache.value() > 0.0) {
    last_cache = "; of the last cache, which others use as well, the size that a pointer chase finds";
  } else if (measured.residence.value() > 0.0) {
    last_cache = "; for how long the last cache, which others fill as well, keeps data that nobody asks for: measured";
  }
  text += fmt::format(
      "  cpu.hierarchy: {{ kind: datasheet, text: \"sizes and ways from /sys/devices/system/cpu{}\" }}\n", last_cache);
  return text;
}

std::string detect_hardware_file(bool caches) {
  DetectedCpu cpu = parse_cpuinfo(whole("/proc/cpuinfo"));
  cpu.caches = read_caches("/sys/devices/system/cpu/cpu0/cache");
  MeasuredBasics measured;
  look_at_cores(measured);
  if (cpu.virtualised && caches) {
    measured.threads_per_core = threads_of_first_core();
    const DetectedCache* second = level_of(cpu, 2);
    if (second != nullptr && level_of(cpu, 3) != nullptr) {
      measured.residence = residence_in_last_cache(second->size);
      if (!(measured.residence.value() > 0.0)) measured.shared_cache = own_share_of_last_cache(cpu);
    }
    look_at_cores(measured);
  }
  return hardware_file(cpu, measured, this_machine().memory);
}

Node node_of_hardware_file(const std::string& text) {
  const YamlNode document = parse_yaml(text, "this machine");
  return read_node(Field(document, ""));
}

}  // namespace foretrain
