// Cost of requests to storage, by hand from mechanics and datasheets.
#include "model/cost/storage.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Storage catalogue(const std::string& name) {
  return read_storage(Field(yaml_scalar(name, {"test.yaml", 1, 1}), "storage"));
}

DiskPattern random_reads(double depth, Bytes block = Bytes(4096.0)) {
  DiskPattern pattern;
  pattern.queue_depth = depth;
  pattern.block = block;
  return pattern;
}

}  // namespace

TEST_CASE("A disk's random read is overhead, average seek, half a revolution and the transfer") {
  // 10,000 rpm: a revolution takes 60 s / 10,000 = 6 ms. 0.4 + 4.7 + 3.0 ms, and 4 KiB at the middle zone's (66.6 +
  // 33.4) / 2 = 50 MB/s: 0.082 ms.
  const Storage disk = catalogue("hdd-10k");
  CHECK(disk.revolution.value() == Approx(6e-3));
  CHECK(disk_cost(disk, random_reads(1)).request.value() == Approx(8.182e-3).epsilon(1e-3));
  // The manufacturer's own figure, which is no input: 4,096 random reads take 34 s, 8.30 ms each; writes 37 s, 9.03 ms
  // (with the slower heads' 5.9 ms seek; models with fewer platters seek in 5.3 ms).
  CHECK(disk_cost(disk, random_reads(1)).request.value() == Approx(34.0 / 4096).epsilon(0.02));
  DiskPattern write = random_reads(1);
  write.write = true;
  CHECK(disk_cost(disk, write).request.value() == Approx(37.0 / 4096).epsilon(0.05));
}

TEST_CASE("Zones: 16 MiB read in a row take 260 ms outside and 510 ms inside") {
  // The manufacturer's figures, from which the zones' bandwidths come: overhead + seek + latency of 8.1 ms are in them.
  const Storage disk = catalogue("hdd-10k");
  const Bytes size(16'777'216.0);
  CHECK((size / zone_bandwidth(disk, 0.0)).value() == Approx(0.260 - 0.0081).epsilon(2e-3));
  CHECK((size / zone_bandwidth(disk, 1.0)).value() == Approx(0.510 - 0.0081).epsilon(2e-3));
}

TEST_CASE("More requests to choose from shorten the way to the next, never below half a revolution") {
  const Storage disk = catalogue("hdd-7200");
  // Neighbours among n + 1 places: E[√gap] relative to two places is Γ(n+2)/Γ(n+5/2) over Γ(3)/Γ(7/2). For n = 2 it is
  // (3! / Γ(9/2)) / (2! / Γ(7/2)) = 3 / 3.5.
  const Seconds seek = disk.seek - disk.track_to_track;
  CHECK(positioning_time(disk, 1).value() == Approx((disk.seek + disk.revolution / 2.0).value()));
  CHECK(positioning_time(disk, 2).value() ==
        Approx((disk.track_to_track + seek * (3.0 / 3.5) + disk.revolution / 2.0).value()));
  Seconds before = Seconds::infinity();
  for (const double depth : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
    const Seconds now = positioning_time(disk, depth);
    CHECK(now < before);
    CHECK(now > disk.revolution / 2.0);
    before = now;
  }
}

TEST_CASE("Flash answers queue depth over latency, up to its limit") {
  // Little's law: requests in flight = rate x time. One at a time: 1 / (77 us + 4 KiB / 560 MB/s or 1 / 98,000 s =
  // 10.2 us) = 11,467 a second; the data sheet's 13,000 are 1 / 77 us.
  const Storage sata = catalogue("ssd-sata");
  CHECK(disk_cost(sata, random_reads(1)).requests_per_second == Approx(1.0 / (77e-6 + 1.0 / 98000)).epsilon(1e-6));
  CHECK(disk_cost(sata, random_reads(4)).requests_per_second == Approx(4.0 / (77e-6 + 1.0 / 98000)).epsilon(1e-6));
  // 32 in flight could be 367,000 a second: the data sheet's 98,000 at depth 32 are the limit, whatever more is asked.
  CHECK(disk_cost(sata, random_reads(32)).requests_per_second == Approx(98000.0));
  CHECK(disk_cost(sata, random_reads(256)).requests_per_second == Approx(98000.0));
  CHECK(name(disk_cost(sata, random_reads(1)).bound) == "latency");
  CHECK(name(disk_cost(sata, random_reads(32)).bound) == "requests per second");
  // Larger blocks: what 4 KiB cost, and the rest at 560 MB/s.
  const DiskCost large = disk_cost(sata, random_reads(32, Bytes(1048576.0)));
  CHECK(1.0 / large.requests_per_second == Approx(1.0 / 98000 + (1048576.0 - 4096) / 560e6));
  CHECK(name(large.bound) == "bandwidth");
  // Transfers shorter than two requests are bound by these: blocks of up to 4 KiB + 560 MB/s / 98,000 = 9.8 kB.
  CHECK(name(disk_cost(sata, random_reads(32, Bytes(8192.0))).bound) == "requests per second");
  CHECK(name(disk_cost(sata, random_reads(32, Bytes(12288.0))).bound) == "bandwidth");
}

TEST_CASE("For every pattern, rate times time is what is in flight, and no limit is exceeded") {
  for (const char* storage_name :
       {"hdd-10k", "hdd-7200", "ssd-sata", "nvme-pcie3", "nvme-pcie4", "nfs-10g", "object-store"}) {
    const Storage storage = catalogue(storage_name);
    for (const double kib : {4.0, 16.0, 64.0, 256.0, 1024.0}) {
      double before = 0.0;
      for (const double depth : {1.0, 2.0, 8.0, 32.0, 128.0}) {
        INFO(storage_name << " " << kib << " KiB x " << depth);
        const DiskCost cost = disk_cost(storage, random_reads(depth, Bytes(kib * 1024)));
        CHECK(cost.requests_per_second * cost.request.value() == Approx(depth));
        CHECK(cost.bandwidth.value() <= storage.read_bandwidth.value() * (1 + 1e-12));
        if (storage.kind != StorageKind::disk)
          CHECK(cost.requests_per_second <= storage.random_read_iops * (1 + 1e-12));
        CHECK(cost.requests_per_second >= before * (1 - 1e-12));
        before = cost.requests_per_second;
      }
    }
  }
}

TEST_CASE("Reading on and on through the page cache keeps two windows of read-ahead in flight") {
  // nvme-pcie4: a window of 128 KiB takes 45 us + 18.7 us; two in flight deliver one every 31.9 us: 4.1 GB/s.
  const Storage nvme = catalogue("nvme-pcie4");
  DiskPattern pattern;
  pattern.order = AccessOrder::sequential;
  pattern.block = Bytes(1048576.0);
  const double window = 131072.0 / 7e9;
  CHECK(disk_cost(nvme, pattern).bandwidth.value() == Approx(131072.0 / ((45e-6 + window) / 2)).epsilon(1e-6));
  // Windows that outlast the latency hide it: 4 MiB take 599 us.
  Storage far = nvme;
  far.read_ahead = Bytes(4194304.0);
  CHECK(disk_cost(far, pattern).bandwidth.value() == Approx(7e9));
}

TEST_CASE("A server's bandwidth is shared by its clients") {
  Storage nfs = catalogue("nfs-10g");
  const DiskPattern pattern = random_reads(64, Bytes(1048576.0));
  const double alone = disk_cost(nfs, pattern).bandwidth.value();
  CHECK(alone == Approx(1.18e9).epsilon(0.02));  // 20 us of handling in 889 us
  nfs.clients = 4;
  CHECK(disk_cost(nfs, pattern).bandwidth.value() == Approx(alone / 4));
  // One connection to an object store: 100 ms + 1 ms to the first byte, then 85 MB/s.
  const DiskCost object = disk_cost(catalogue("object-store"), random_reads(1, Bytes(8.5e6)));
  CHECK(object.request.value() == Approx(0.101 + 0.1).epsilon(2e-3));
}

TEST_CASE("The page cache of a second epoch") {
  // All of it fits: everything is there. Half of it, shuffled, least recently used first: 0.5 + 0.5 ln 0.5 = 0.153. In
  // the same order every time, each sample is evicted just before it is read again.
  CHECK(page_cache_share(Bytes(2.0), Bytes(2.0), true) == 1.0);
  CHECK(page_cache_share(Bytes(1.0), Bytes(2.0), true) == Approx(0.5 + 0.5 * std::log(0.5)));
  CHECK(page_cache_share(Bytes(1.0), Bytes(2.0), false) == 0.0);
  CHECK(page_cache_share(Bytes(0.0), Bytes(2.0), true) == 0.0);
  CHECK(page_cache_share(Bytes(-1.0), Bytes(2.0), true) == 0.0);
}
