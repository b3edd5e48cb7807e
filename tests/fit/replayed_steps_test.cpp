// Replays of steps, and notes on points, in a fit: on SYNTHETIC records, the model's own times.

#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/gpu_fit.hpp"
#include "validate/measure/sampling.hpp"

using namespace foretrain;

TEST_CASE("A kernel's time that may be its launch's is left out, and that is said") {
  RawMeasurements raw = synthetic::measurements(load_default_calibration(), {.suites = {"streaming"}});
  for (std::size_t i = 0; i < 3; ++i) raw.points[i].record.note = host_bound_note;
  const GpuCalibration fit = fit_gpu(raw);
  CHECK(fit.suites.at("streaming").left_out == 3);
  REQUIRE(fit.not_understood.size() == 3);
  CHECK(fit.not_understood.front().find("may be the host's") != std::string::npos);
}

TEST_CASE("Kernels of replayed steps tell what steps stretch kernels by, where no framework's steps do") {
  // Products, convolutions and a streaming kernel, each 15 % longer than alone; one of 5 us is not used.
  const auto work = [](const char* kind, const std::string& fields, int number, double seconds) {
    return fmt::format(R"({{"block":"forward","name":"layer {2}","block_number":0,"work_number":{2},"tasks":1,)"
                       R"("predicted_s":1,"kind":"{0}","count":2,"fields":{{{1}}},"measured_s":{3}}})",
                       kind, fields, number, 2.0 * seconds);
  };
  const TemporaryFolder folder;
  folder.write("machine.json", synthetic::machine_json());
  const auto write = [&](const std::vector<double>& seconds) {
    std::string list;
    for (int i = 0; i < 8; ++i) {
      const std::string fields =
          i % 2 == 0 ? fmt::format(R"("m":"2048","n":"2048","k":"{}","precision":"bf16")", 1024 * (i + 1))
                     : fmt::format(R"("read":"{0}","written":"{0}","flops":"0","pattern":"elementwise",)"
                                   R"("precision":"fp32")",
                                   100'000'000 * (i + 1));
      list +=
          (i > 0 ? "," : "") + work(i % 2 == 0 ? "matmul" : "traffic", fields, i, seconds[static_cast<std::size_t>(i)]);
    }
    list += "," + work("traffic", R"("read":"4","written":"4","pattern":"elementwise","precision":"fp32")", 8, 5e-6);
    folder.write("replay-net.json",
                 R"({"kind":"foretrain gpu replay","name":"net","status":"measured","work":[)" + list + "]}");
  };
  write(std::vector<double>(8, 1.0));
  RawMeasurements raw = read_measurements(folder.path());
  REQUIRE(raw.points.size() == 9);
  Calibration truth = load_default_calibration();
  truth.step.kernel_stretch = 1.15;
  std::vector<double> seconds;
  for (const PredictedPoint& point : predicted_points(raw, node_document(raw.machine, {})).points) {
    seconds.push_back(predicted_time(point, truth).value());
  }
  REQUIRE(seconds.size() == 8);
  write(seconds);
  const GpuCalibration fit = fit_gpu(read_measurements(folder.path()));
  CHECK(fit.calibration.step.kernel_stretch == Approx(1.15).epsilon(0.01));
  CHECK(fit.suites.at("replay").fitted == 8);
  CHECK(fit.suites.at("replay").drawn == 1);
}
