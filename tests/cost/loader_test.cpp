// Load of one batch on workers, storage and cores, by hand.
#include "model/cost/loader.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// A loader alone on a machine of 128 cores; `keys` in flow style.
LoaderPipeline loader(const std::string& keys, double batch = 10.0, const LoaderUse& others = {}) {
  const Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: data_loader, batch: 1, " + keys + " } }\n",
      "test.yaml");
  LoaderUse use = others;
  use.batch = batch;
  return loader_pipeline(std::get<LoaderWorkload>(scenario.workload).loader, use, scenario.cluster.node,
                         scenario.calibration);
}

}  // namespace

TEST_CASE("Stages are counted per sample, or per batch where the loader says so") {
  // 10 samples of 1 + 2 + 3 + 4 ms on a core; reading waits without one.
  const std::string stages = "read: 5 ms, decode: 1 ms, preprocess: 2 ms, augment: 3 ms, collate: 4 ms";
  CHECK(loader("workers: 2, " + stages).batch.cpu.value() == Approx(0.1));
  CHECK(loader("workers: 2, " + stages).batch.wait.value() == Approx(0.05));
  CHECK(loader("workers: 2, per: batch, " + stages).batch.cpu.value() == Approx(0.01));
  CHECK(loader("workers: 2, per: batch, " + stages).batch.wait.value() == Approx(0.005));
  CHECK(loader("workers: 2, per_sample: 1 ms").batch.worker().value() == Approx(0.01));
  // So is what the device decodes.
  const std::string gpu = "workers: 1, read: 1 ms, decode_on: gpu, device_decode: 2 ms";
  CHECK(loader(gpu).batch.device.value() == Approx(0.02));
  CHECK(loader(gpu + ", per: batch").batch.device.value() == Approx(0.002));
  CHECK(loader("workers: 1, read: 1 ms, decode: 2 ms").batch.device.value() == 0.0);
}

TEST_CASE("Without workers everything is the step's own; with workers what blocks it") {
  const std::string stages = "per: batch, read: 50 ms, decode: 30 ms, preprocess: 40 ms, transfer: 20 ms";
  CHECK(loader("workers: 0, " + stages).serial().value() == Approx(0.14));
  CHECK(loader("workers: 4, " + stages).serial().value() == Approx(0.02));
  CHECK(loader("workers: 4, pinned: true, " + stages).serial().value() == Approx(0.02));
  CHECK(loader("workers: 4, pinned: true, non_blocking: true, " + stages).serial().value() == 0.0);
  // Decoded by the device: 30 ms of a core become 5 ms of the device.
  const LoaderPipeline gpu = loader("workers: 4, decode_on: gpu, device_decode: 5 ms, " + stages);
  CHECK(gpu.serial().value() == Approx(0.025));
  CHECK(gpu.batch.cpu.value() == Approx(0.04));
}

TEST_CASE("One file per sample costs a lookup and the data; an archive its bytes alone") {
  // nvme-pcie4, 100 KB: the inode (45 us, and 1 us of the device) and the data (45 us, 1 us
  // for 4 KiB and the rest at 7 GB/s).
  const LoaderPipeline files = loader("workers: 1, storage: nvme-pcie4, dataset: { sample: 100 KB }");
  CHECK(files.batch.wait.value() == Approx(10 * 90e-6));
  CHECK(files.batch.disk.value() == Approx(10 * (2e-6 + (100e3 - 4096) / 7e9)).epsilon(1e-6));
  const LoaderPipeline archives =
      loader("workers: 1, storage: nvme-pcie4, dataset: { sample: 100 KB, layout: archives }");
  CHECK(archives.batch.disk.value() == Approx(10 * 100e3 / 7e9));
  CHECK(archives.batch.wait < 0.3 * files.batch.wait);
  // A disk of 10,000 rpm: two positionings of 8.1 ms for every file, none for one reader of an archive.
  const LoaderPipeline disk = loader("workers: 1, storage: hdd-10k, dataset: { sample: 100 KB }");
  CHECK(disk.batch.disk.value() == Approx(10 * (2 * 8.1e-3 + (100e3 + 4096) / 50e6)).epsilon(1e-3));
  const LoaderPipeline one = loader("workers: 1, storage: hdd-10k, dataset: { sample: 100 KB, layout: archives }");
  CHECK(one.batch.disk.value() == Approx(10 * 100e3 / 50e6).epsilon(1e-3));
  const LoaderPipeline two = loader("workers: 2, storage: hdd-10k, dataset: { sample: 100 KB, layout: archives }");
  CHECK(two.batch.disk > 3.0 * one.batch.disk);  // the arm goes between two archives every 128 KiB
}

TEST_CASE("A mapped file is read fault by fault, as much ahead as the storage reads") {
  // 1 MiB of an archive, in windows of 128 KiB: eight requests, each waits for the flash and moves its bytes.
  const LoaderPipeline mapped =
      loader("workers: 1, storage: nvme-pcie4, dataset: { sample: 1 MiB, layout: archives, mapped: true }");
  const LoaderPipeline window =
      loader("workers: 1, storage: nvme-pcie4, dataset: { sample: 128 KiB, layout: archives, mapped: true }");
  CHECK(mapped.batch.wait.value() == Approx(8 * window.batch.wait.value()));
  CHECK(mapped.batch.disk.value() == Approx(8 * window.batch.disk.value()));
  CHECK(window.batch.wait.value() == Approx(10 * 45e-6));
}

TEST_CASE("A warm epoch copies from memory, or faults where the file is mapped") {
  const LoaderConstants constants = load_default_calibration().loader;
  const std::string warm = "workers: 1, epoch: warm, storage: hdd-10k, dataset: { sample: 100 KB, samples: 1000, ";
  const LoaderPipeline read = loader(warm + "layout: archives }");
  CHECK(read.batch.worker().value() == Approx(10 * 100e3 / (constants.copy_gbps * 1e9)));
  // 100 KB are two faults of 64 KiB.
  const LoaderPipeline mapped = loader(warm + "layout: archives, mapped: true }");
  CHECK(mapped.batch.worker().value() == Approx(10 * 2 * constants.page_fault_us * 1e-6));
  // More than memory holds (2 TiB): shuffled, some are there; in order, none.
  const std::string large = "workers: 1, epoch: warm, storage: ssd-sata, dataset: { sample: 100 MB, samples: 30000, ";
  CHECK(loader(large + "order: sequential }").hit_share == 0.0);
  CHECK(loader(large + "order: shuffled }").hit_share > 0.2);
}

TEST_CASE("Pageable memory is copied through the host, pinned memory over the link") {
  const Calibration calibration = load_default_calibration();
  const HostConstants& host = calibration.host;
  const LoaderConstants& constants = calibration.loader;
  LoaderUse use;
  use.transfer = Seconds(0.001);
  const LoaderPipeline pageable = loader("workers: 1, decode: 1 ms, decoded: 600 KB", 100, use);
  CHECK(pageable.batch.transfer.value() == Approx(60e6 / (host.pageable_copy_gbps * 1e9)));
  const LoaderPipeline pinned = loader("workers: 1, decode: 1 ms, decoded: 600 KB, pinned: true", 100, use);
  CHECK(pinned.batch.transfer.value() == Approx(0.001));
  CHECK(pinned.batch.pin.value() == Approx(60e6 / (constants.hand_over_gbps * 1e9)));
}

TEST_CASE("Samples that vary by s make batches that vary by s over the root of their number") {
  CHECK(loader("workers: 1, decode: 1 ms, spread: 40 %", 16).spread == Approx(0.1));
}

TEST_CASE("A batch takes a worker, a core, and until it is pinned one of the places for batches made ahead") {
  const auto bounds = [](Seconds cpu, int workers, int cores, int prefetch, Seconds pin = Seconds(0.0)) {
    LoaderPipeline pipeline;
    pipeline.batch.cpu = cpu;
    pipeline.batch.pin = pin;
    pipeline.workers = workers;
    pipeline.cores = cores;
    pipeline.prefetch = prefetch;
    return loader_bounds(pipeline);
  };
  // Two workers of 100 ms: a batch each 50 ms. Four places of 160 ms would allow one each 40 ms, two one each 80 ms.
  CHECK(bounds(Seconds(0.1), 2, 8, 2, Seconds(0.06)).workers.value() == Approx(0.05));
  CHECK(bounds(Seconds(0.1), 2, 8, 1, Seconds(0.06)).workers.value() == Approx(0.08));
  // Cores carry no more workers than there are, workers no more than there are cores.
  CHECK(bounds(Seconds(0.12), 2, 6, 2).cores.value() == Approx(0.06));
  CHECK(bounds(Seconds(0.12), 6, 3, 2).cores.value() == Approx(0.04));
}

TEST_CASE("Without workers a step waits for pinning, copies and what the device decodes as well") {
  LoaderPipeline pipeline;
  pipeline.batch.cpu = Seconds(0.1);
  pipeline.batch.pin = Seconds(0.02);
  pipeline.batch.transfer = Seconds(0.003);
  pipeline.batch.device = Seconds(0.0004);
  pipeline.workers = 0;
  CHECK(pipeline.serial().value() == Approx(0.1234));
  CHECK(loader_fill(pipeline).value() == 0.0);
  // A worker's first batch is there when it has been made and pinned.
  pipeline.workers = 1;
  CHECK(loader_fill(pipeline).value() == Approx(0.12));
}

TEST_CASE("Workers that are started anew each epoch take their start and a first batch, shared by its steps") {
  const LoaderConstants constants = load_default_calibration().loader;
  const auto restart = [](double samples, const LoaderUse& use) {
    return loader("workers: 2, decode: 1 ms, storage: hdd-10k, dataset: { sample: 1 KB, samples: " +
                      std::to_string(static_cast<int>(samples)) + " }",
                  10, use)
        .restart.value();
  };
  LoaderUse use;
  // Fewer samples than a batch make one step.
  const double whole = restart(5, use);
  CHECK(whole > 2 * constants.worker_start_ms * 1e-3);
  CHECK(restart(1000, use) == Approx(whole / 100));
  // Two processes on each of five machines share the epoch: ten steps of ten samples each instead of a hundred.
  use.machines = 5;
  const double five = restart(1000, use);
  use.machines = 1;
  CHECK(five == Approx(5 * restart(1000, use)));
}
