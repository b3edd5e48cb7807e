// Copies that a host thread starts: which ones it waits for.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// A thread that copies 64 MB home, then launches a product of 4,096 cubed; only those of the two that are named.
Seconds time_of(const std::string& memory, bool copies, bool multiplies) {
  std::string text = "cluster: { node: v100-workstation-x2 }\nworkload:\n  tasks:\n";
  if (copies) {
    text += "    - { id: home, on: \"gpu0:d2h\", enqueued_by: cpu, run: { copy: { from: gpu0, to: cpu, size: 64 MB, " +
            memory + " } } }\n";
  }
  if (multiplies) {
    text += "    - { id: product, on: gpu0, enqueued_by: cpu, run: { matmul: { m: 4096, n: 4096, k: 4096 } } }\n";
  }
  return estimate(load_scenario_text(text, "test.yaml")).time();
}

}  // namespace

TEST_CASE("Sockets and GPUs are counted from zero on; one more than there are is refused with those that are there") {
  const auto copied_to = [](const std::string& device) {
    return estimate(
        load_scenario_text("cluster: { node: dgx-a100-80gb }\nworkload:\n  tasks:\n    - { id: home, on: \"gpu0:d2h\", "
                           "run: { copy: { from: gpu0, to: " +
                               device + ", size: 64 MB } } }\n",
                           "test.yaml"));
  };
  CHECK(copied_to("cpu1").time() > Seconds(0.0));
  CHECK_THROWS_WITH(copied_to("cpu2"), Catch::Contains("cpu2 does not exist; cpu0 to cpu1"));
  CHECK(copied_to("gpu7").time() > Seconds(0.0));
  CHECK_THROWS_WITH(copied_to("gpu8"), Catch::Contains("gpu8 does not exist; gpu0 to gpu7"));
}

TEST_CASE("A thread waits for copies to pageable memory before it launches what comes next, and for no others") {
  const Seconds product = time_of("", false, true);
  const Seconds pageable = time_of("pinned: false", true, false), pinned = time_of("pinned: true", true, false);
  CHECK(pageable > pinned);
  CHECK(time_of("pinned: false", true, true) / (pageable + product) == Approx(1.0).epsilon(0.01));
  // 10 us are launched in front of the longer of the two.
  CHECK(time_of("pinned: true", true, true) / std::max(pinned, product) == Approx(1.0).epsilon(0.01));
}

TEST_CASE("A disk reads for copies from it and writes for those to it, whatever stands at the other end") {
  const auto copied = [](const std::string& from, const std::string& to) {
    return estimate(
               load_scenario_text(
                   "cluster: { node: dgx-a100-80gb }\nworkload:\n  tasks:\n    - { id: moved, on: disk, "
                   "run: { copy: { from: " +
                       from + ", to: " + to + ", size: 1 GB } } }\n",
                   "test.yaml",
                   {"cluster.node.storage.read_bandwidth=2 GB/s", "cluster.node.storage.write_bandwidth=500 MB/s"}))
        .time();
  };
  // 1 GB takes 0.5 s to read and 2 s to write, and some hundred us until the first byte comes.
  for (const std::string place : {"cpu", "gpu1"}) {
    CHECK(copied("disk", place) / Seconds(0.5) == Approx(1.0).epsilon(0.001));
    CHECK(copied(place, "disk") / Seconds(2.0) == Approx(1.0).epsilon(0.001));
  }
}

TEST_CASE("Pageable memory of the host holds up copies from and to it, and none between GPUs") {
  const auto copied = [](const std::string& from, const std::string& to, const std::string& pinned) {
    Scenario scenario = load_scenario_text(
        "cluster: { node: dgx-a100-80gb }\nworkload:\n  tasks:\n    - { id: moved, on: \"gpu0:d2h\", run: { copy: { "
        "from: " +
            from + ", to: " + to + ", size: 1 GB, pinned: " + pinned + " } } }\n",
        "test.yaml");
    scenario.calibration.host.pageable_copy_gbps = 5.0;
    return estimate(scenario).time();
  };
  // 1 GB at 5 GB/s, both ways and from the first GPU to the last.
  for (const std::string gpu : {"gpu0", "gpu7"}) {
    CHECK(copied(gpu, "cpu", "false") == Seconds(0.2));
    CHECK(copied("cpu", gpu, "false") == Seconds(0.2));
  }
  CHECK(copied("gpu0", "gpu7", "false") == copied("gpu0", "gpu7", "true"));
  CHECK(copied("gpu0", "cpu", "true") < Seconds(0.1));
}
