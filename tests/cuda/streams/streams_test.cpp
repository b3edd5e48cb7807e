// Collectives and synchronisation on streams whose work is done in any order that CUDA allows: sums must come out right
// in all of them.
#include <unistd.h>

#include <thread>

#include "model/base/words.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/streams/streams.hpp"
#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/collective/peer_access.hpp"
#include "validate/cuda/collective/session.hpp"
#include "validate/cuda/collective/synchroniser.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

namespace {

constexpr StoppingRule twice{.warm_up = 0, .least = 2, .most = 2, .target = 0.0, .budget = Seconds(1.0)};

std::vector<int> first_devices(int count) {
  std::vector<int> devices;
  for (int device = 0; device < count; ++device) devices.push_back(device);
  return devices;
}

CollectivePoint point_of(CollectiveOperation operation, int ranks, std::uint64_t elements) {
  return {operation, ranks, extent_of(operation, ranks, elements)};
}

}  // namespace

TEST_CASE("every collective gives what its definition says, on some and on all GPUs", "[streams][collective]") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    streams::reset(4, seed);
    {
      const auto world = make_single_world();
      CollectiveSession session(*world, first_devices(4), true);
      CHECK(session.ranks() == 4);
      for (const int ranks : {4, 2, 3}) {
        for (const CollectiveOperation operation : operations()) {
          for (const std::uint64_t elements : {12ULL, 1000ULL, 5000ULL}) {
            INFO(name(operation) << " of " << elements << " elements on " << ranks);
            // measure() compares what every rank received with the expected result, and throws where they differ.
            const Sampled sampled = session.measure(point_of(operation, ranks, elements), twice);
            CHECK(sampled.values.size() == 2);
            CHECK(sampled.median() > 0.0);
          }
        }
      }
      session.finish();
    }
    CHECK(streams::communicators() == 0);
    CHECK(streams::aborted() == 0);
    CHECK(streams::allocated() == 0);
  }
}

TEST_CASE("a wrong sum is reported, and the next point is measured all the same", "[streams][collective]") {
  streams::reset(2, 1);
  const auto world = make_single_world();
  CollectiveSession session(*world, first_devices(2), true);
  streams::corrupt_nccl(true);  // adds 1 to the last of 1,000 elements
  CHECK_THROWS_WITH(session.measure(point_of(CollectiveOperation::all_reduce, 2, 1000), twice),
                    Catch::Contains("wrong result: element 999 of rank 0"));
  streams::corrupt_nccl(false);
  CHECK_NOTHROW(session.measure(point_of(CollectiveOperation::all_reduce, 2, 1000), twice));
}

namespace {

/// Buckets of all workers, filled with known values of fp32.
struct Buckets {
  explicit Buckets(const std::vector<int>& devices, std::size_t elements) {
    for (const int device : devices) {
      const OnDevice on(device);
      buffers.emplace_back(elements * sizeof(float));
      streams.push_back(std::make_unique<Stream>());
      workers.push_back({buffers.back().as<float>(), streams.back()->get()});
      for (std::size_t i = 0; i < elements; ++i) buffers.back().as<float>()[i] = contribution(device, i);
    }
  }
  std::vector<DeviceBuffer> buffers;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<WorkerBucket> workers;
};

/// Whether every worker holds the sum of all workers, `times` over.
bool holds_sums(const Buckets& buckets, std::size_t first, std::size_t end, float times) {
  bool right = true;
  for (std::size_t i = first; i < end; ++i) {
    float sum = 0.0F;
    for (std::size_t w = 0; w < buckets.workers.size(); ++w) sum += contribution(static_cast<int>(w), i);
    for (const WorkerBucket& worker : buckets.workers) right = right && worker.data[i] == times * sum;
  }
  return right;
}

}  // namespace

TEST_CASE("every way to synchronise gives every worker the sum, in every order of things", "[streams][synchroniser]") {
  for (const auto method :
       {SynchronisationMethod::nccl, SynchronisationMethod::server_cpu, SynchronisationMethod::server_gpu}) {
    for (const int workers : {1, 2, 4}) {
      for (const auto& [servers, keys] : {std::pair(1, 0), std::pair(1, 5), std::pair(3, 0), std::pair(2, 7)}) {
        if (method == SynchronisationMethod::nccl && servers > 1) continue;
        streams::reset(4, static_cast<std::uint64_t>(workers * 100 + keys));
        SynchroniserOptions options;
        options.method = method;
        options.devices = first_devices(workers);
        options.largest_bucket = 1000;
        options.servers = servers;
        options.keys = keys;
        options.threads = 2;
        const auto synchroniser = make_synchroniser(options);
        INFO(synchroniser->description() << ", " << workers << " workers");
        for (const std::size_t elements : {1000UL, 1UL, 64UL, 777UL}) {
          const Buckets buckets(options.devices, elements);
          synchroniser->synchronise(buckets.workers, elements);
          synchroniser->wait(buckets.workers);
          CHECK(holds_sums(buckets, 0, elements, 1.0F));
        }
      }
    }
  }
  CHECK(streams::allocated() == 0);
}

TEST_CASE("buckets that follow each other at once do not get into each other's way", "[streams][synchroniser]") {
  for (const auto method :
       {SynchronisationMethod::nccl, SynchronisationMethod::server_cpu, SynchronisationMethod::server_gpu}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      streams::reset(3, seed);
      SynchroniserOptions options;
      options.method = method;
      options.devices = first_devices(3);
      options.largest_bucket = 640;
      options.servers = 2;
      options.keys = 5;
      options.threads = 1;
      const auto synchroniser = make_synchroniser(options);
      Buckets buckets(options.devices, 640);
      for (const std::size_t elements : {640UL, 640UL, 500UL}) synchroniser->synchronise(buckets.workers, elements);
      synchroniser->wait(buckets.workers);
      // Three equal sums add up to three times as much: once for elements from 500 on, twice for those below.
      INFO(synchroniser->description() << ", seed " << seed);
      CHECK(holds_sums(buckets, 0, 500, 9.0F));
      CHECK(holds_sums(buckets, 500, 640, 3.0F));
    }
  }
}

TEST_CASE("a synchroniser refuses what it was not made for", "[streams][synchroniser]") {
  streams::reset(2, 1);
  SynchroniserOptions options;
  options.method = SynchronisationMethod::server_cpu;
  options.largest_bucket = 100;
  CHECK_THROWS_WITH(make_synchroniser(options), Catch::Contains("a GPU of its own for each worker"));
  options.devices = {0, 0};
  CHECK_THROWS_AS(make_synchroniser(options), std::invalid_argument);
  options.devices = {0, 1};
  options.servers = 0;
  CHECK_THROWS_WITH(make_synchroniser(options), Catch::Contains("at least one server"));
  options.servers = 1;
  const auto synchroniser = make_synchroniser(options);
  CHECK(synchroniser->description().rfind("parameter server (cpu, 1 server, 1 key, ", 0) == 0);
  Buckets buckets({0, 1}, 101);
  CHECK_NOTHROW(synchroniser->synchronise(buckets.workers, 100));
  CHECK_THROWS_AS(synchroniser->synchronise(buckets.workers, 101), std::invalid_argument);
  CHECK_THROWS_AS(synchroniser->synchronise({buckets.workers.data(), 1}, 100), std::invalid_argument);
  synchroniser->wait(buckets.workers);
}

TEST_CASE("one process per GPU: rank 0 leads, also where a point is not for all", "[streams][collective]") {
  // Threads stand for processes: each has a world, a session and a GPU of its own.
  streams::reset(3, 7);
  const std::string meeting = "foretrain-streams-" + std::to_string(getpid());
  std::vector<std::string> failures(3);
  std::size_t measured = 0;
  const auto process = [&](int rank) {
    try {
      const auto world = make_local_world({.by = "test", .rank = rank, .size = 3, .local_rank = {}}, meeting, 20.0);
      CollectiveSession session(*world, {rank}, true);
      if (rank > 0) return session.follow();
      for (const int ranks : {3, 2}) {
        for (const CollectiveOperation operation : operations()) {
          measured += session.measure(point_of(operation, ranks, 600), twice).values.size();
        }
      }
      streams::corrupt_nccl(true);
      try {
        session.measure(point_of(CollectiveOperation::all_reduce, 3, 600), twice);
        failures[0] = "a wrong sum was not found";
      } catch (const GpuError& error) {
        if (error.fault() != Fault::failed || session.broken()) failures[0] = error.what();
      }
      streams::corrupt_nccl(false);
      // All processes heard of it, so that the next point can be measured.
      measured += session.measure(point_of(CollectiveOperation::all_gather, 3, 600), twice).values.size();
      session.finish();
    } catch (const std::exception& error) {
      failures[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) threads.emplace_back(process, rank);
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == std::vector<std::string>(3));
  CHECK(measured == 2 * (2 * operations().size() + 1));
  CHECK(streams::communicators() == 0);
}
