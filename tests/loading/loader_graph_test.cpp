// The input pipeline as tasks against its closed form, and what workers, prefetching and copies change.

#include "model/loading/loader_graph.hpp"
#include "model/base/error.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

LoaderPipeline pipeline(int workers, int cores, double wait, double disk, double cpu) {
  LoaderPipeline p;
  p.workers = workers;
  p.cores = cores;
  p.batch.wait = Seconds(wait);
  p.batch.disk = Seconds(disk);
  p.batch.cpu = Seconds(cpu);
  return p;
}

double executed(const LoaderPipeline& p, double consumer) {
  const LoaderGraph graph = build_loader_graph(p, Seconds(consumer));
  return loader_interval(graph, run(graph.graph)).value();
}

}  // namespace

TEST_CASE("Each part of the pipeline is a bound, and the longest one is the interval") {
  // A batch takes a worker 50 + 30 + 40 = 120 ms. Four workers on four cores: 30 ms.
  LoaderPipeline p = pipeline(4, 4, 0.05, 0.0, 0.07);
  CHECK(loader_bounds(p).longest().value() == Approx(0.03));
  CHECK(loader_bounds(p).bottleneck() == "workers");
  // Eight workers on two cores, 70 ms of a core each: 35 ms, although workers alone would allow 15 ms.
  p = pipeline(8, 2, 0.05, 0.0, 0.07);
  CHECK(loader_bounds(p).longest().value() == Approx(0.035));
  CHECK(loader_bounds(p).bottleneck() == "cores");
  // A disk that is busy for 50 ms with every batch: 50 ms, and 100 ms where two processes read from it.
  p = pipeline(8, 8, 0.0, 0.05, 0.07);
  CHECK(loader_bounds(p).longest().value() == Approx(0.05));
  CHECK(loader_bounds(p).bottleneck() == "storage");
  p.sharers = 2;
  CHECK(loader_bounds(p).longest().value() == Approx(0.1));
  CHECK(executed(p, 0.01) == Approx(0.1).epsilon(1e-6));
}

TEST_CASE("Where nothing varies, the pipeline as tasks keeps the closed form's interval") {
  // A deterministic line works as fast as its slowest station. With a single place per worker and fewer cores than
  // workers, a worker that has a core may not be the one whose batch is next: that costs some percent.
  std::mt19937 random(7);
  const auto draw = [&](double most) { return std::uniform_real_distribution<double>(0.0, most)(random); };
  for (int i = 0; i < 300; ++i) {
    LoaderPipeline p = pipeline(1 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % 6), draw(0.05),
                                i % 3 == 0 ? draw(0.03) : 0.0, draw(0.1));
    p.prefetch = 1 + static_cast<int>(random() % 3);
    p.overlapped = i % 2 == 0;
    p.batch.transfer = Seconds(draw(0.02));
    p.batch.pin = Seconds(draw(0.01));
    p.batch.device = Seconds(i % 5 == 0 ? draw(0.01) : 0.0);
    p.sharers = i % 7 == 0 ? 2.0 : 1.0;
    const double consumer = draw(0.06);
    INFO(i << ": " << p.workers << " workers, " << p.cores << " cores, " << loader_bounds(p).bottleneck());
    const double closed = estimated_interval(p, Seconds(consumer)).value();
    CHECK(executed(p, consumer) == Approx(closed).epsilon(p.prefetch == 1 ? 0.05 : 0.02));
    CHECK(executed(p, consumer) >= closed * (1 - 1e-9));  // no execution beats the bounds
  }
}

TEST_CASE("A worker is never further ahead than its prefetch depth") {
  // Workers that take no time beside a step of 1 s: with 2 workers and depth 3, batch 6 is begun when batch 0 is taken.
  LoaderPipeline p = pipeline(2, 2, 0.0, 0.0, 0.001);
  p.prefetch = 3;
  const LoaderGraph graph = build_loader_graph(p, Seconds(1.0));
  const Execution execution = run(graph.graph);
  // The waiting task of a worker's batch k comes first of the tasks of batch k.
  std::vector<double> begun;
  for (std::size_t task = 0; task < graph.graph.tasks().size(); ++task) {
    const auto id = static_cast<TaskId>(task);
    if (graph.graph.block_of(id).name == "wait for storage") begun.push_back(execution.start[task].value());
  }
  CHECK(begun[5] < 0.01);
  CHECK(begun[6] == Approx(0.003));  // batch 0 was taken at once; its worker has finished batches 0, 2 and 4
  CHECK(begun[7] == Approx(1.001));  // batch 1 is taken after the first step
  CHECK(begun[20] == Approx(14.001).epsilon(1e-6));
}

TEST_CASE("Prefetching deeper never makes it slower, and pays where batches differ") {
  LoaderPipeline steady = pipeline(3, 3, 0.01, 0.0, 0.08);
  LoaderPipeline unsteady = steady;
  unsteady.spread = 0.5;
  double steady_before = 1e9;
  double unsteady_before = 1e9;
  for (const int depth : {1, 2, 4, 8, 16}) {
    steady.prefetch = unsteady.prefetch = depth;
    const double of_steady = executed(steady, 0.029);
    const double of_unsteady = executed(unsteady, 0.029);
    CHECK(of_steady <= steady_before * (1 + 1e-9));
    CHECK(of_unsteady <= unsteady_before * (1 + 1e-3));
    CHECK(of_unsteady >= of_steady * (1 - 0.02));  // variation takes, it never gives
    steady_before = of_steady;
    unsteady_before = of_unsteady;
  }
  unsteady.prefetch = 1;
  CHECK(executed(unsteady, 0.029) > 1.05 * unsteady_before);
}

TEST_CASE("Cores are a pool: as many tasks at a time as there are cores") {
  TaskGraph::Builder builder;
  const BlockId second = builder.add_block({"work", Category::data, Seconds(1.0)});
  const ResourceId cores =
      builder.add_resource({"cores", Resource::Kind::host_thread, 0, Resource::Order::urgent, -1, 3});
  for (int i = 0; i < 7; ++i) builder.add_task({second, cores, i});
  // Seven seconds of work on three cores, a second each: 3 + 3 + 1.
  CHECK(run(std::move(builder).build()).makespan.value() == Approx(3.0));
  CHECK_THROWS_AS(
      TaskGraph::Builder().add_resource({"stream", Resource::Kind::device_stream, 0, Resource::Order::added, -1, 2}),
      InternalError);
}
