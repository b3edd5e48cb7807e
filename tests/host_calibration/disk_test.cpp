// Measuring a disk: tiny sizes, to see that it works and leaves nothing behind. No test depends on how fast the disk
// is.
#include <sys/stat.h>

#include <filesystem>

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/disk_file.hpp"

using namespace foretrain;

namespace {

std::optional<double> predicted(const BenchmarkRow& row) { return find_benchmark(row.benchmark)->predict(row, Node{}); }

}  // namespace

TEST_CASE("The file to measure with is gone from its folder, and whole MiB of at least what is asked for") {
  const TemporaryFolder folder;
  const auto size_of = [&](double asked) {
    const DiskFile file(folder.path().string(), Bytes(asked));
    CHECK(std::filesystem::is_empty(folder.path()));
    CHECK(file.read_ahead() > Bytes(0.0));
    struct stat found {};
    REQUIRE(fstat(file.cached(), &found) == 0);
    CHECK(file.size() == static_cast<std::size_t>(found.st_size));
    return file.size() / 1'048'576;
  };
  CHECK(size_of(1'048'576.0) == 1);
  CHECK(size_of(1'048'577.0) == 2);
  CHECK(size_of(3'145'728.0) == 3);
}

TEST_CASE("A folder without room is refused with what is there and what is needed") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(DiskFile(folder.path().string(), Bytes(1e18)), Catch::Contains("free; measuring there needs"));
  CHECK_THROWS(DiskFile((folder.path() / "missing").string(), Bytes(1e6)));
}

TEST_CASE("Requests of every kind move bytes") {
  const TemporaryFolder folder;
  const DiskFile file(folder.path().string(), Bytes(2e6));
  for (const bool write : {false, true}) {
    for (const AccessOrder order : {AccessOrder::random, AccessOrder::sequential}) {
      DiskPattern pattern;
      pattern.write = write;
      pattern.order = order;
      pattern.queue_depth = 3;
      pattern.direct = file.direct();
      CHECK(measure_access(file, pattern, Seconds(0.005)).value() > 0.0);
    }
  }
  CHECK(measure_cached_read(file, Bytes(4096.0)).value() > 0.0);
  // In order through the page cache once, however long the time: a second pass would find the file in memory.
  DiskPattern once;
  once.order = AccessOrder::sequential;
  once.direct = false;
  CHECK(measure_access(file, once, Seconds(3600.0)).value() > 0.0);
}

TEST_CASE("A row of the disk is predicted from what it says of the disk") {
  // 16 KiB, four at a time: 90 us of latency, 8.19 us longer for one request (1 GB/s) than for many (2 GB/s), and of
  // the disk 20 us for 4 KiB and 6.14 us for the rest: four requests per 124.3 us.
  BenchmarkRow row;
  row.benchmark = "disk_read";
  row.parameters = {{"latency", "90 us"},
                    {"bandwidth", "2000 MB/s"},
                    {"stream_bandwidth", "1000 MB/s"},
                    {"requests_per_second", "50000"},
                    {"read_ahead", "131072 B"},
                    {"block", "16 KiB"},
                    {"queue_depth", "4"},
                    {"order", "random"},
                    {"direct", "true"}};
  const double transfer = 16384.0 / 2e9;
  CHECK(*predicted(row) == Approx(4.0 / (90e-6 + transfer + 20e-6 + 12288.0 / 2e9) * 16384.0));
  // Rows that describe the disk are what predictions depend on, not predictions.
  row.parameters.erase("latency");
  CHECK_FALSE(predicted(row));
  row = {};
  row.benchmark = "page_cache_read";
  row.parameters = {{"call", "0.5 us"}, {"copy", "8192 MB/s"}, {"block", "8 KiB"}};
  CHECK(*predicted(row) == Approx(1.5e-6));
}

TEST_CASE("What describes a disk is what the rows before it measured") {
  const TemporaryFolder folder;
  const CalibrationSettings settings{true, folder.path().string(), Seconds(0.1), Node{}};
  const auto rows_of = [&](const char* name) {
    std::vector<BenchmarkRow> rows;
    find_benchmark(name)->measure(settings, [&](BenchmarkRow row) { rows.push_back(std::move(row)); });
    return rows;
  };
  const auto number_in = [](const BenchmarkRow& row, const char* key) { return std::stod(row.parameters.at(key)); };
  const std::vector<BenchmarkRow> reads = rows_of("disk_read");
  // One and many of 4 KiB, one and many of 1 MiB, then what they say.
  REQUIRE(reads.size() == 4 + 8 + 1);
  for (std::size_t i = 0; i < 4; ++i) CHECK_THAT(reads[i].note, Catch::Contains("describes the disk"));
  BenchmarkRow reported = reads[4];
  reported.note.clear();
  CHECK(number_in(reported, "requests_per_second") ==
        Approx(std::max(reads[0].measured, reads[1].measured) / 4096.0).epsilon(1e-3));
  CHECK(number_in(reported, "bandwidth") == Approx(std::max(reads[2].measured, reads[3].measured) / 1e6).epsilon(1e-3));
  // Of one small request at a time the prediction is the measurement, but for what the disk's own rate takes longer.
  reported.parameters["block"] = "4 KiB";
  reported.parameters["queue_depth"] = "1";
  if (number_in(reported, "latency") > 0.01) CHECK(*predicted(reported) == Approx(reads[0].measured).epsilon(0.1));
  CHECK(reads.back().parameters.at("order") == "sequential");

  const std::vector<BenchmarkRow> cached = rows_of("page_cache_read");
  REQUIRE(cached.size() == 4);  // 4, 256, 16 and 64 KiB
  const double copy = number_in(cached[2], "copy") * 1e6, call = number_in(cached[2], "call") * 1e-6;
  CHECK((262144.0 - 4096.0) / copy == Approx(cached[1].measured - cached[0].measured).epsilon(0.01));
  if (call > 0.0) CHECK(call + 4096.0 / copy == Approx(cached[0].measured).epsilon(0.02));
  CHECK(cached[3].parameters.at("call") == cached[2].parameters.at("call"));
}
