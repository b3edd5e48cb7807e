#include "validate/host_calibration/detect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

namespace {

std::string first_word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

std::string whole(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// The number at the start of a text; 0 without one.
int leading_number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "48K", "300M": sizes as sysfs writes them. Zero for anything else.
Bytes parse_cache_size(const std::string& text) {
  const int number = leading_number(text);
  if (text.find('K') != std::string::npos) return Bytes(number * 1024.0);
  if (text.find('M') != std::string::npos) return Bytes(number * 1048576.0);
  return Bytes(number);
}

/// Processors of a list such as "0-3,8": 5.
int count_of_list(const std::string& text) {
  int count = 0;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const int first = leading_number(part);
    const int last = dash == std::string::npos ? first : leading_number(std::string_view(part).substr(dash + 1));
    if (!part.empty()) count += std::max(0, last - first + 1);
  }
  return count;
}

bool has_flag(const std::string& flags, std::string_view flag) {
  const std::vector<std::string> words = split_words(flags);
  return std::ranges::find(words, flag) != words.end();
}

std::string hierarchy_of(const std::string& identity) {
  for (const KnownProcessors& known : known_processors()) {
    if (std::ranges::find(known.processors, identity) != known.processors.end()) {
      return known.hierarchy;
    }
  }
  return "generic-server";
}

/// One line per cache that the operating system reports: `L2: { size: 2048 KiB, ways: 16 }`.
std::string cache_lines(const DetectedCpu& cpu) {
  std::string text;
  for (const DetectedCache& cache : cpu.caches) {
    text += fmt::format(
        "      L{}: {{ size: {:.0f} KiB, ways: {}, shared_by: {}{} }}\n", cache.level, cache.size.value() / 1024.0,
        cache.ways, std::max(1, cache.shared_by / cpu.threads_per_core),
        cache.residence.value() > 0.0 ? fmt::format(", residence: {:.2f} ms", cache.residence.value() * 1e3) : "");
  }
  return text.empty() ? "" : "    caches:\n" + text;
}

}  // namespace

DetectedCache* DetectedCpu::cache(int level) {
  const auto found = std::ranges::find_if(caches, [level](const DetectedCache& cache) { return cache.level == level; });
  return found == caches.end() ? nullptr : &*found;
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
    const std::string type = first_word(entry / "type");
    if (type != "Data" && type != "Unified") continue;
    DetectedCache cache;
    cache.level = leading_number(first_word(entry / "level"));
    cache.size = parse_cache_size(first_word(entry / "size"));
    cache.ways = leading_number(first_word(entry / "ways_of_associativity"));
    cache.shared_by = std::max(1, count_of_list(first_word(entry / "shared_cpu_list")));
    const bool stated = cache.size.value() > 0.0 && cache.ways > 0;
    if (cache.level >= 1 && cache.level <= 3 && stated) caches.push_back(cache);
  }
  std::sort(caches.begin(), caches.end(),
            [](const DetectedCache& a, const DetectedCache& b) { return a.level < b.level; });
  return caches;
}

std::string hardware_file(const DetectedCpu& cpu, Bytes memory) {
  const std::string hierarchy = hierarchy_of(cpu.identity);
  const int cores = std::max(1, cpu.processors / cpu.threads_per_core);
  const double clock = cpu.clock.value();
  const double operations = 2.0 * cpu.multiply_adds * cpu.vector_bytes / 4.0;
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
  text += cache_lines(cpu);
  text +=
      "link_types:\n  process-memory:\n    kind: pcie\n    bandwidth: 20 GB/s\n    latency: 0 us\n"
      "    source: { kind: assumption, text: \"a process's own memory\" }\n"
      "wiring:\n  - { between: [gpu0, cpu0], link: process-memory }\n"
      "sources:\n  default: { kind: assumption, text: \"figures that no prediction of this processor depends on\" }\n";
  text += fmt::format(
      "  cpu: {{ kind: datasheet, text: \"reported by the operating system: /proc/cpuinfo ({}); memory_bandwidth is "
      "that "
      "of a socket of its kind\" }}\n"
      "  cpu.hierarchy: {{ kind: datasheet, text: \"sizes and ways from /sys/devices/system/cpu\" }}\n",
      cpu.identity);
  for (const auto& [key, how] : cpu.measured) {
    text += fmt::format("  {}: {{ kind: measurement, text: \"{}\" }}\n", key, how);
  }
  return text;
}

std::string detect_hardware_file(bool caches) {
  DetectedCpu cpu = parse_cpuinfo(whole("/proc/cpuinfo"));
  cpu.caches = read_caches("/sys/devices/system/cpu/cpu0/cache");
  measure_cores(cpu);
  if (cpu.virtualised && caches) {
    measure_threads(cpu);
    measure_last_cache(cpu);
    measure_cores(cpu);  // once more: what else runs on the chip comes and goes
  }
  return hardware_file(cpu, this_machine().memory);
}

Node node_of_hardware_file(const std::string& text) {
  const YamlNode document = parse_yaml(text, "this machine");
  return read_node(Field(document, ""));
}

}  // namespace foretrain
