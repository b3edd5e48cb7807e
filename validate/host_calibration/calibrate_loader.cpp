// The part "loader": data loading by worker processes.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/units.hpp"
#include "model/loading/loader_graph.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/disk_file.hpp"
#include "validate/host_calibration/loader_run.hpp"
#include "validate/host_calibration/processors.hpp"

namespace foretrain {

namespace {

constexpr Bytes set_size(64e6), quick_set_size(16e6);

/// Of the configurations that are predicted: how long the consumer keeps a batch, as a share of one worker's time for
/// one.
struct LoaderPoint {
  int workers, prefetch;
  double step;
};

void append(Sampled& to, const Sampled& more) {
  to.values.insert(to.values.end(), more.values.begin(), more.values.end());
}

// In rounds over all of them. What other virtual machines take of the cores changes within seconds, and has to be the
// same for what a prediction knows and for what it is compared with.
void measure_loading(const CalibrationSettings& settings, const RowSink& sink) {
  const DiskFile file(settings.directory, settings.quick ? quick_set_size : set_size);
  measure_cached_read(file, Bytes(65536.0));
  LoaderRun run;
  run.file = file.cached();
  run.samples = file.size() / run.sample;
  const int least = settings.quick ? 24 : 48, rounds = settings.quick ? 1 : 3;
  run.batch = 8;
  const StoppingRule rule{
      .warm_up = 1, .least = 3, .most = 9 / rounds, .target = 0.02, .budget = settings.budget / 16.0 / rounds};
  const auto processors = static_cast<int>(own_processors().size());
  std::vector<LoaderPoint> points = {{1, 4, 0.0}, {1, 2, 0.5}, {1, 2, 1.5}, {2, 1, 0.0}, {2, 2, 0.0},
                                     {2, 2, 0.8}, {4, 1, 0.0}, {4, 2, 0.0}, {8, 2, 0.0}};
  if (processors > 4) points.push_back({processors, 2, 0.0});

  Sampled cores, alone;  // that the processors are worth; batches of a single worker: all that predictions know
  Seconds first_alone;   // that the consumer's steps are shares of
  std::vector<Sampled> loaded(points.size());
  const auto load = [&](const LoaderPoint& point) {
    run.workers = point.workers;
    run.prefetch = point.prefetch;
    run.step = first_alone * point.step;
    // Batches in queues when the clock starts or stops must not count.
    run.batches = std::max(least, 10 * point.workers * point.prefetch);
    return sample([&] { return measure_loader(run).value(); }, rule);
  };
  for (int round = 0; round < rounds; ++round) {
    append(cores, sample([&] { return measure_parallel_decoding(processors, run.sample, settings.budget / 100.0); },
                         {.warm_up = 0, .least = 3, .most = 3}));
    append(alone, load({1, 2, 0.0}));
    if (round == 0) first_alone = Seconds(alone.median());
    for (std::size_t i = 0; i < points.size(); ++i) append(loaded[i], load(points[i]));
  }

  BenchmarkRow row = row_of("loader", {{"processors", fmt::format("{}", processors)}}, cores, "1");
  row.note = "describes the processor: how many times one process's work all of them do";
  sink(row);
  row = row_of("loader", {{"workers", "1"}, {"prefetch", "2"}, {"step", "0 us"}}, alone, "s");
  row.note = "describes a worker";
  sink(row);
  for (std::size_t i = 0; i < points.size(); ++i) {
    sink(row_of("loader",
                {{"one_worker", fmt::format("{:.3f} us", alone.median() * 1e6)},
                 {"cores", fmt::format("{:.3f}", cores.median())},
                 {"workers", fmt::format("{}", points[i].workers)},
                 {"prefetch", fmt::format("{}", points[i].prefetch)},
                 {"step", fmt::format("{:.3f} us", first_alone.value() * points[i].step * 1e6)}},
                loaded[i], "s"));
  }
}

void measure(const CalibrationSettings& settings, const RowSink& sink) {
  attempt("loader", settings, sink, [&] { measure_loading(settings, sink); });
}

/// As a pipeline of workers whose batches are a core's work, on cores that need not be whole: those that all processors
/// make up together share the work evenly.
std::optional<double> predict(const BenchmarkRow& row, const Node&) {
  if (!row.parameters.contains("one_worker")) return std::nullopt;
  const Seconds batch = parse_quantity<Seconds>(row.parameters.at("one_worker"));
  const Seconds step = parse_quantity<Seconds>(row.parameters.at("step"));
  const double cores = std::max(1.0, parse_number(row.parameters.at("cores")));
  LoaderPipeline pipeline;
  pipeline.workers = static_cast<int>(parse_number(row.parameters.at("workers")));
  pipeline.prefetch = static_cast<int>(parse_number(row.parameters.at("prefetch")));
  pipeline.cores = pipeline.workers;
  // The work of as many as there are cores for, stretched to all workers.
  pipeline.batch.cpu = batch * std::max(1.0, pipeline.workers / cores);
  return estimated_interval(pipeline, step).value();
}

}  // namespace

std::vector<HostBenchmark> loader_benchmarks() {
  return {{"loader", "loader", "worker processes read, decode and hand over batches through bounded queues",
           Seconds(35.0), Seconds(10.0), 0.15, measure, predict}};
}

}  // namespace foretrain
