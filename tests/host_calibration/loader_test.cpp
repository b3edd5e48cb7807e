// Loading by worker processes: tiny sizes, and what is predicted of them.
#include <sys/wait.h>

#include <cerrno>

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/disk_file.hpp"
#include "validate/host_calibration/loader_run.hpp"

using namespace foretrain;

TEST_CASE("Decoding undoes the difference filter, smooths and scales") {
  // Differences 4, 4 mean values 4, 8. Smoothed from 0: 1, then 0.75 + 2 = 2.75. The second and the first are averaged
  // and scaled: 3.75 / 2 / 255 - 0.45.
  const std::vector<std::uint8_t> stored = {4, 4};
  std::vector<float> decoded(2);
  decode_sample(stored, decoded);
  CHECK(decoded[0] == Approx(1.0));
  CHECK(decoded[1] == Approx(3.75 / 2 / 255 - 0.45));
}

TEST_CASE("Workers deliver all batches and are gone afterwards") {
  const TemporaryFolder folder;
  const DiskFile file(folder.path().string(), Bytes(1e6));
  LoaderRun run;
  run.file = file.cached();
  run.sample = 4096;
  run.samples = file.size() / run.sample;
  run.batch = 2;
  run.batches = 6;
  for (const int workers : {1, 3}) {
    for (const int prefetch : {1, 2}) {
      run.workers = workers;
      run.prefetch = prefetch;
      CHECK(measure_loader(run).value() > 0.0);
      CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
      CHECK(errno == ECHILD);
    }
  }
  // A consumer that keeps each batch for 2 ms sets the pace.
  run.step = Seconds(0.002);
  CHECK(measure_loader(run).value() >= 0.002);
}

TEST_CASE("A worker that fails ends the measurement") {
  LoaderRun run;
  run.file = -1;  // nothing to read from
  CHECK_THROWS_WITH(measure_loader(run), Catch::Contains("a worker process could not read"));
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("A loader's row is predicted from one worker and the cores") {
  const auto predicted = [](const char* workers, const char* step) {
    BenchmarkRow row;
    row.benchmark = "loader";
    row.parameters = {
        {"one_worker", "8 ms"}, {"cores", "1.6"}, {"prefetch", "2"}, {"workers", workers}, {"step", step}};
    return *find_benchmark("loader")->predict(row, Node{});
  };
  // One worker: 8 ms. Two and four share 1.6 cores: 5 ms. A consumer of 7 ms is slower than that.
  CHECK(predicted("1", "0 us") == Approx(8e-3));
  CHECK(predicted("2", "0 us") == Approx(5e-3));
  CHECK(predicted("4", "0 us") == Approx(5e-3));
  CHECK(predicted("4", "7 ms") == Approx(7e-3));
}
