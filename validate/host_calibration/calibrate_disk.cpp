// The part "disk": requests through a real file system, past the page cache and out of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "model/base/format.hpp"
#include "model/base/units.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/disk_file.hpp"

namespace foretrain {

namespace {

constexpr Bytes file_size(256e6), quick_file_size(64e6);
constexpr const char* buffered_note =
    "this file system refuses requests past the page cache: these are of the page cache where it keeps them";

/// One point: block and threads that wait for a request each.
struct DiskPoint {
  std::string_view block;
  int depth;
};

std::string text_of(Seconds time) { return fmt::format("{:.3f} us", time.value() * 1e6); }
std::string text_of(BytesPerSecond rate) { return fmt::format("{:.2f} MB/s", rate.value() / 1e6); }

/// The disk as three requests show it: one small one at a time, many small ones, many large ones; and one large one at
/// a time.
class DiskProbe {
 public:
  DiskProbe(const DiskFile& file, bool write, const CalibrationSettings& settings, const RowSink& sink)
      : file_(file), write_(write), settings_(settings), sink_(sink), benchmark_(write ? "disk_write" : "disk_read") {}

  void run(std::span<const DiskPoint> points) {
    const BytesPerSecond one_small = measure({"4 KiB", 1});
    const BytesPerSecond many_small = measure({"4 KiB", 32});
    const BytesPerSecond one_large = measure({"1 MiB", 1});
    const BytesPerSecond many_large = measure({"1 MiB", 8});
    const double iops = std::max(many_small, one_small) / Bytes(4096.0) * Seconds(1.0);
    const BytesPerSecond bandwidth = std::max(many_large, one_large);
    // One request: latency + block / stream bandwidth, through the two that were measured one at a time.
    const Bytes small(4096.0), large(1048576.0);
    const Seconds small_time = small / one_small, large_time = large / one_large;
    const BytesPerSecond stream =
        large_time > small_time ? (large - small) / (large_time - small_time) : BytesPerSecond::infinity();
    const Seconds carried = small / bandwidth;
    const Seconds served = std::max(carried, Seconds(1.0 / iops)) + std::max(small / stream - carried, Seconds(0.0));
    const Seconds latency = std::max(small_time - served, Seconds(0.0));
    parameters_ = {{"latency", text_of(latency)},
                   {"requests_per_second", fmt::format("{:.1f}", iops)},
                   {"bandwidth", text_of(bandwidth)},
                   {"stream_bandwidth", text_of(std::max(std::min(stream, bandwidth), one_large))},
                   {"read_ahead", fmt::format("{:.0f} B", file_.read_ahead().value())}};
    for (const DiskPoint& point : points) measure(point);
    if (!write_) measure({"256 KiB", 1}, "sequential", false);
  }

 private:
  BytesPerSecond measure(const DiskPoint& point, const std::string& order = "random", bool direct = true) {
    DiskPattern pattern;
    pattern.order = order == "random" ? AccessOrder::random : AccessOrder::sequential;
    pattern.write = write_;
    pattern.direct = direct;
    pattern.block = parse_quantity<Bytes>(point.block);
    pattern.queue_depth = point.depth;
    const Seconds slice = settings_.budget / 80.0;
    const Sampled samples = sample([&] { return measure_access(file_, pattern, slice).value(); },
                                   {.warm_up = 1, .least = 4, .most = 12, .target = 0.03, .budget = slice * 5.0});
    std::map<std::string, std::string> parameters = parameters_;
    parameters.insert({{"block", std::string(point.block)},
                       {"queue_depth", fmt::format("{}", point.depth)},
                       {"order", order},
                       {"direct", direct ? "true" : "false"}});
    BenchmarkRow row = row_of(benchmark_, std::move(parameters), samples, "B/s");
    if (direct && !file_.direct()) row.note = buffered_note;
    if (parameters_.empty()) row.note += std::string(row.note.empty() ? "" : "; ") + "describes the disk";
    sink_(row);
    return BytesPerSecond(row.measured);
  }

  const DiskFile& file_;
  bool write_;
  const CalibrationSettings& settings_;
  const RowSink& sink_;
  std::string benchmark_;
  std::map<std::string, std::string> parameters_;  ///< the disk's, once they are known
};

/// Runs `work` on a file in the folder that the user names.
void with_file(std::string_view benchmark, const CalibrationSettings& settings, const RowSink& sink,
               const std::function<void(const DiskFile&)>& work) {
  attempt(benchmark, settings, sink,
          [&] { work(DiskFile(settings.directory, settings.quick ? quick_file_size : file_size)); });
}

void measure_reads(const CalibrationSettings& settings, const RowSink& sink) {
  constexpr std::array<DiskPoint, 8> points = {{{"4 KiB", 4},
                                                {"16 KiB", 1},
                                                {"16 KiB", 8},
                                                {"64 KiB", 1},
                                                {"64 KiB", 8},
                                                {"256 KiB", 1},
                                                {"256 KiB", 4},
                                                {"1 MiB", 32}}};
  with_file("disk_read", settings, sink,
            [&](const DiskFile& file) { DiskProbe(file, false, settings, sink).run(points); });
}

void measure_writes(const CalibrationSettings& settings, const RowSink& sink) {
  constexpr std::array<DiskPoint, 3> points = {{{"16 KiB", 1}, {"64 KiB", 1}, {"256 KiB", 4}}};
  with_file("disk_write", settings, sink,
            [&](const DiskFile& file) { DiskProbe(file, true, settings, sink).run(points); });
}

std::optional<double> predict_access(const BenchmarkRow& row, const Node&) {
  const auto text = [&](const char* key) { return row.parameters.at(key); };
  if (!row.parameters.contains("latency") || !row.note.empty()) return std::nullopt;
  Storage disk;
  disk.read_latency = disk.write_latency = parse_quantity<Seconds>(text("latency"));
  disk.read_bandwidth = disk.write_bandwidth = parse_quantity<BytesPerSecond>(text("bandwidth"));
  disk.stream_bandwidth = parse_quantity<BytesPerSecond>(text("stream_bandwidth"));
  disk.random_read_iops = disk.random_write_iops = parse_number(text("requests_per_second"));
  disk.read_ahead = parse_quantity<Bytes>(text("read_ahead"));
  DiskPattern pattern;
  pattern.order = text("order") == "random" ? AccessOrder::random : AccessOrder::sequential;
  pattern.write = row.benchmark == "disk_write";
  pattern.direct = text("direct") == "true";
  pattern.block = parse_quantity<Bytes>(text("block"));
  pattern.queue_depth = parse_number(text("queue_depth"));
  return disk_cost(disk, pattern).bandwidth.value();
}

// Reads of what is in the page cache: entering the kernel and copying, through the smallest and the largest block.
void measure_page_cache(const CalibrationSettings& settings, const RowSink& sink) {
  with_file("page_cache_read", settings, sink, [&](const DiskFile& file) {
    std::map<std::string, std::string> known;
    std::map<std::string, Seconds> time;
    for (const char* block : {"4 KiB", "256 KiB", "16 KiB", "64 KiB"}) {
      const Bytes size = parse_quantity<Bytes>(block);
      const Sampled samples = sample([&] { return measure_cached_read(file, size).value(); },
                                     {.warm_up = 1, .least = 5, .most = 200, .budget = settings.budget / 5.0});
      time[block] = Seconds(samples.median());
      std::map<std::string, std::string> parameters = known;
      parameters["block"] = block;
      BenchmarkRow row = row_of("page_cache_read", parameters, samples, "s");
      if (known.empty()) row.note = "describes the page cache";
      sink(row);
      if (time.size() != 2) continue;
      const Bytes more(262144.0 - 4096.0);
      const BytesPerSecond rate = more / (time["256 KiB"] - time["4 KiB"]);
      known = {{"call", text_of(std::max(time["4 KiB"] - Bytes(4096.0) / rate, Seconds(0.0)))},
               {"copy", text_of(rate)}};
    }
  });
}

std::optional<double> predict_cached_read(const BenchmarkRow& row, const Node&) {
  if (!row.parameters.contains("copy")) return std::nullopt;
  const auto copy = parse_quantity<BytesPerSecond>(row.parameters.at("copy"));
  const Bytes block = parse_quantity<Bytes>(row.parameters.at("block"));
  return (parse_quantity<Seconds>(row.parameters.at("call")) + block / copy).value();
}

}  // namespace

std::vector<HostBenchmark> disk_benchmarks() {
  return {{"disk", "disk_read", "random and sequential reads of several sizes, one and many at a time", Seconds(25.0),
           Seconds(6.0), 0.20, measure_reads, predict_access},
          {"disk", "disk_write", "random writes of several sizes, one and many at a time", Seconds(12.0), Seconds(4.0),
           0.20, measure_writes, predict_access},
          {"disk", "page_cache_read", "reads of a file that is in memory", Seconds(5.0), Seconds(1.5), 0.20,
           measure_page_cache, predict_cached_read}};
}

}  // namespace foretrain
