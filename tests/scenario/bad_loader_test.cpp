// Bad loaders, data sets and storage.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

struct Row {
  std::string text;  ///< marked
  std::string_view key, wrong, right;
};

}  // namespace

TEST_CASE("Bad loaders") {
  const std::vector<Row> rows = {
      {"^{ per_sample: 1 ms }", "workers", "missing", ""},
      {"{ workers: ^-1, per_sample: 1 ms }", "workers", "out of range", "from 0"},
      {"^{ workers: 4 }", "per_sample", "nothing says what loading costs", "a dataset"},
      {"{ workers: 4, per_sample: 1 ms, prefetch: ^0 }", "prefetch", "out of range", "from 1"},
      {"{ workers: 4, per_sample: 1 ms, cores: ^0 }", "cores", "out of range", "from 1"},
      {"{ workers: 4, per_sample: 1 ms, decode: ^1 ms }", "decode", "a part of per_sample", "per_sample alone"},
      {"{ workers: 4, per_sample: 1 ms, dataset: ^{ sample: 1 KB } }", "dataset", "per_sample contains reading", ""},
      {"{ workers: 4, read: ^1 ms, dataset: { sample: 1 KB } }", "read", "the dataset's storage says", "or a dataset"},
      {"{ workers: 4, read: 1 ms, storage: ^ssd-sata }", "storage", "nothing is read from storage", "a dataset"},
      {"{ workers: 4, read: 1 ms, epoch: ^warm }", "epoch", "nothing is read from storage", "a dataset"},
      {"{ workers: 4, dataset: { sample: 1 KB }, keep_decoded: ^true }", "keep_decoded", "how large a decoded sample",
       "decoded"},
      {"{ workers: 4, decode: 1 ms, non_blocking: ^true }", "non_blocking", "pageable memory blocks", "pinned: true"},
      {"{ workers: 4, decode: 1 ms, decode_on: ^gpu }", "decode_on", "how long the device takes", "device_decode"},
      {"{ workers: 4, decode: 1 ms, device_decode: ^1 ms }", "device_decode", "by the workers", "decode_on: gpu"},
      {"{ workers: 4, decode: 1 ms, spread: ^100 % }", "spread", "a spread of 100 %", "less than 100 %"},
      {"{ workers: 4, decode: 1 ms, decoded: ^0 B }", "decoded", "zero", ""},
      {"{ workers: 4, dataset: ^{ samples: 10 } }", "dataset.sample", "missing", ""},
      {"{ workers: 4, dataset: { sample: ^1 KB/s } }", "dataset.sample", "a bandwidth, not a size", ""},
      {"{ workers: 4, dataset: { sample: 1 KB, samples: ^0 } }", "dataset.samples", "out of range", "from 1"},
      {"{ workers: 4, dataset: { sample: 1 KB }, storage: ^hdd-10000 }", "storage", "unknown storage", "hdd-10k"}};
  for (const Row& row : rows) {
    std::string line = "    optimizer: adamw\n    loader: " + row.text;
    check_complaint(good_text(11, "    precision: bf16\n" + line), "workload.train.loader." + std::string(row.key),
                    row.wrong, row.right);
  }
}

TEST_CASE("Bad storage") {
  const std::string flash = "read_bandwidth: 1 GB/s, random_read_iops: 1000, read_latency: 1 us";
  const std::string disk = "kind: disk, read_bandwidth: 0.1 GB/s, rotation: 6 ms, seek: 4 ms";
  const std::string server = flash + ", kind: network, round_trip: 1 ms";
  const std::vector<Row> rows = {
      {"^{ random_read_iops: 1000, read_latency: 1 us }", "read_bandwidth", "missing", ""},
      {"{ read_bandwidth: ^0 GB/s, random_read_iops: 1000, read_latency: 1 us }", "read_bandwidth", "zero", ""},
      {"{ read_bandwidth: 1 GB/s, random_read_iops: ^0, read_latency: 1 us }", "random_read_iops", "zero", ""},
      {"{ " + flash + ", rotation: ^10000 rpm }", "rotation", "flash storage has none", "kind: disk"},
      {"{ " + flash + ", clients: ^2 }", "clients", "flash storage has none", "kind: network"},
      {"{ " + flash + ", queue_depth: ^0 }", "queue_depth", "out of range", "from 1"},
      {"^{ kind: disk, read_bandwidth: 0.1 GB/s, seek: 4 ms }", "rotation", "missing", ""},
      {"{ kind: disk, read_bandwidth: 0.1 GB/s, seek: 4 ms, rotation: ^0 rpm }", "rotation", "stands still",
       "10000 rpm"},
      {"{ " + disk + ", track_to_track: ^5 ms }", "track_to_track", "longer than the average", "less than seek"},
      {"{ " + disk + ", write_seek: 3 ms, track_to_track: ^3.5 ms }", "track_to_track", "longer than the average", ""},
      {"{ " + disk + ", inner_bandwidth: ^0.2 GB/s }", "inner_bandwidth", "faster than the outer", "at most"},
      {"{ " + disk + ", random_read_iops: ^100 }", "random_read_iops", "follow from rotation", "leave the key out"},
      {"{ " + disk + ", round_trip: ^1 ms }", "round_trip", "disk storage has none", "kind: network"},
      {"{ " + server + ", clients: ^0 }", "clients", "out of range", "from 1"},
      {"{ " + server + ", stream_bandwidth: ^0 B/s }", "stream_bandwidth", "zero", ""},
      {"{ preset: ^nvme, queue_depth: 2 }", "preset", "unknown storage", "one of"},
      {"{ preset: nvme-pcie4, ^depth: 2 }", "depth", "unknown key", ""}};
  for (const Row& row : rows) {
    check_complaint(
        "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: disk_read, storage: " + row.text + " } }\n",
        "workload.operator.storage." + std::string(row.key), row.wrong, row.right);
  }
}

TEST_CASE("Bad disk operators and loaders alone") {
  const std::vector<Row> rows = {
      {"{ kind: disk_read, queue_depth: ^0 }", "queue_depth", "out of range", "from 1"},
      {"{ kind: disk_read, zone: ^1.5 }", "zone", "1.5 of the way in", "from 0"},
      {"{ kind: disk_read, streams: ^2 }", "streams", "read at random", "order: sequential"},
      {"^{ kind: data_loader, workers: 2, per_sample: 1 ms }", "batch", "missing", ""},
      {"{ kind: data_loader, workers: 2, per_sample: 1 ms, batch: ^0 }", "batch", "out of range", "from 1"}};
  for (const Row& row : rows) {
    check_complaint("cluster: { node: dgx-a100-80gb }\nworkload: { operator: " + row.text + " }\n",
                    "workload.operator." + std::string(row.key), row.wrong, row.right);
  }
  check_complaint("cluster: { node: pcie-switch-16gbps-x4 }\nworkload: { operator: ^{ kind: disk_read } }\n",
                  "workload.operator", "no storage", "scenarios/hardware/storage.yaml");
}
