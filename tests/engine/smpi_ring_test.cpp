// An independent opinion on the ring: SimGrid's SMPI runs a real MPI program whose MPI_Allreduce is its own logical
// ring (`smpi/allreduce:lr`, after Patarasuk and Yuan), over a platform with the same links, latencies and network
// settings as ours (sim/platform.cpp). Nothing of foretrain's schedules, lowering or executors takes part in it.
#include <simgrid/s4u.hpp>

#include "tests/catch.hpp"

#include <simgrid/version.h>  // after the others: it does not include what it needs

#if __has_include(<smpi/smpi.h>) && SIMGRID_VERSION < 40000

#include <smpi/smpi.h>

#include "model/base/process.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/graphs.hpp"

namespace simgrid::smpi::colls {
void set_collectives();  // reads which algorithms to use; exported by the library, but declared in no public header
}

using namespace foretrain;
using namespace foretrain::test_graphs;
using namespace foretrain::test_nodes;

namespace {

namespace s4u = simgrid::s4u;

// CM02 as in sim/platform.cpp, but with the latency on the links: no two flows share one here, so that CM02's bias
// against long latencies does nothing. SMPI's own costs are all zero. The time between MPI calls is not measured
// (simulate-computation), sending and receiving cost the processor nothing (os, ois, or), no message is detached or
// sent asynchronously because it is small, and MPI_Wtime takes no time.
constexpr std::array engine_arguments = {
    "smpi_ring_test",
    "--log=root.threshold:critical",
    "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:1e30",
    "--cfg=network/crosstraffic:0",
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1",
    "--cfg=smpi/allreduce:lr",
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/privatization:no",
    "--cfg=smpi/os:0:0:0:0:0",
    "--cfg=smpi/ois:0:0:0:0:0",
    "--cfg=smpi/or:0:0:0:0:0",
    "--cfg=smpi/async-small-thresh:0",
    "--cfg=smpi/send-is-detached-thresh:0",
    "--cfg=smpi/wtime:0",
    "--cfg=contexts/stack-size:256",
};

/// Input and output of the MPI program: globals, since MPI programs take no arguments here.
std::span<const int> element_counts;
std::span<double> seconds_found;

/// All-reduces float arrays of each length in turn; rank 0 notes how long each took.
void mpi_program(int /*argc*/, char** /*argv*/) {
  MPI_Init(nullptr, nullptr);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (std::size_t i = 0; i < element_counts.size(); ++i) {
    std::vector<float> mine(static_cast<std::size_t>(element_counts[i]), 1.0F), sum(mine.size());
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(mine.data(), sum.data(), element_counts[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double mine_took = sum.front() == static_cast<float>(ranks) && sum.back() == sum.front()
                                 ? MPI_Wtime() - begin
                                 : -1.0;  // a wrong sum is no time
    double longest = 0.0;
    MPI_Reduce(&mine_took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) seconds_found[i] = longest;
  }
  MPI_Finalize();
}

/// The first node of a topology as a SimGrid platform: one host per GPU, one link per directed link.
void build_platform(const Topology& topology, Seconds latency_per_link) {
  s4u::NetZone* zone = s4u::create_full_zone("node");
  std::vector<s4u::Host*> hosts;
  for (int gpu = 0; gpu < topology.gpus(); ++gpu) hosts.push_back(zone->create_host(fmt::format("gpu{}", gpu), 1e9));
  std::vector<s4u::Link*> links;
  for (LinkId link = 0; link < topology.links(); ++link) {
    links.push_back(zone->create_link(fmt::format("link{}", link), topology.link_bandwidth(link).value()));
    links.back()->set_latency(latency_per_link.value());
  }
  for (int a = 0; a < topology.gpus(); ++a) {
    for (int b = 0; b < topology.gpus(); ++b) {
      if (a == b) continue;
      std::vector<s4u::LinkInRoute> route;
      for (const LinkId link : topology.route(a, b).links) route.emplace_back(links[static_cast<std::size_t>(link)]);
      zone->add_route(hosts[static_cast<std::size_t>(a)]->get_netpoint(),
                      hosts[static_cast<std::size_t>(b)]->get_netpoint(), nullptr, nullptr, route, false);
    }
  }
  zone->seal();
}

/// SMPI's times of all-reduces of `counts` floats over all GPUs of a node.
std::vector<double> smpi_times(const Topology& topology, Seconds latency_per_link, const std::vector<int>& counts) {
  const SharedMemory memory(counts.size() * sizeof(double));
  const std::span<double> found = memory.as<double>(counts.size());
  Process child = Process::copy([&] {  // SimGrid allows one engine per process
    auto arguments = engine_arguments;
    int count = static_cast<int>(arguments.size());
    std::array<char*, engine_arguments.size() + 1> argv{};
    for (std::size_t i = 0; i < arguments.size(); ++i) argv[i] = const_cast<char*>(arguments[i]);
    smpi_init_options();  // the engine knows SMPI's settings only then
    s4u::Engine engine(&count, argv.data());
    build_platform(topology, latency_per_link);
    element_counts = counts;
    seconds_found = found;
    std::vector<s4u::Host*> hosts;
    for (int gpu = 0; gpu < topology.gpus(); ++gpu) hosts.push_back(engine.host_by_name(fmt::format("gpu{}", gpu)));
    simgrid::smpi::colls::set_collectives();
    SMPI_init();
    SMPI_app_instance_register("ring", nullptr, topology.gpus());
    for (int gpu = 0; gpu < topology.gpus(); ++gpu) {
      const auto actor = s4u::Actor::init(fmt::format("rank{}", gpu), hosts[static_cast<std::size_t>(gpu)]);
      actor->set_property("instance_id", "ring");
      actor->set_property("rank", std::to_string(gpu));
      actor->start([] { mpi_program(0, nullptr); });
    }
    engine.run();
    SMPI_finalize();
  });
  CHECK(child.wait().well());
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("the ring takes the time that SMPI's logical ring takes") {
  // SMPI's ring cuts the array into one part per rank and wants as many elements as ranks at least; lengths that the
  // ranks divide have equal parts, as ours. Expected: 2(n-1) · (latency + S/n / 16 GB/s).
  constexpr Seconds latency_per_link = 1.0_us;
  for (const int ranks : {2, 3, 8, 16}) {
    const Topology topology(cluster_of(pcie_switch_node(ranks)));
    std::vector<int> counts;
    for (const int per_rank : {1, 250, 25'000}) counts.push_back(per_rank * ranks);
    const std::vector<double> oracle = smpi_times(topology, latency_per_link, counts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      CollectiveCall call;
      call.algorithm = SyncAlgorithm::ring;
      call.size = Bytes(4.0 * counts[i]);
      std::vector<int> all(static_cast<std::size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      call.groups = {all};
      const LoweredCollective lowered = lower(call, topology, Calibration{});
      GraphMaker make(topology);
      make.communicate(make.stream(), lowered);
      const TaskGraph graph = make.graph();
      INFO(ranks << " ranks, " << call.size.value() << " B: SMPI says " << oracle[i] << " s");
      CHECK(uncontended_time(lowered, topology).value() == Approx(oracle[i]).epsilon(0.005));
      CHECK(simulate(graph, topology, Fidelity::flows).makespan.value() == Approx(oracle[i]).epsilon(0.005));
      CHECK(simulate(graph, topology, Fidelity::steps).makespan.value() == Approx(oracle[i]).epsilon(0.005));
    }
  }
}

#else

TEST_CASE("the ring takes the time that SMPI's logical ring takes") {
  WARN("skipped: needs SimGrid 3.32 to 3.36 with SMPI (<smpi/smpi.h>), as in Debian's libsimgrid-dev");
}

#endif
