#include "model/hardware/gpu.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Gpu with_rates(double fp32, double fp16_vector, double fp16_tensor) {
  Gpu gpu;
  gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)] = FlopsPerSecond(fp32);
  gpu.vector_rate[static_cast<std::size_t>(Precision::fp16)] = FlopsPerSecond(fp16_vector);
  gpu.tensor_rate[static_cast<std::size_t>(Precision::fp16)] = FlopsPerSecond(fp16_tensor);
  return gpu;
}

}  // namespace

TEST_CASE("Products run on tensor cores where there are any for the format, else on vector units, of fp32 at last") {
  const Gpu volta = with_rates(15e12, 30e12, 120e12), pascal = with_rates(10e12, 20e12, 0);
  CHECK(volta.matrix_rate(Precision::fp16).value() == 120e12);
  CHECK(volta.has_tensor_cores(Precision::fp16));
  CHECK_FALSE(volta.has_tensor_cores(Precision::bf16));
  CHECK(pascal.matrix_rate(Precision::fp16).value() == 20e12);
  CHECK(pascal.matrix_rate(Precision::bf16).value() == 10e12);
  CHECK(pascal.matrix_rate(Precision::tf32).value() == 10e12);
  // fp32 means plain fp32, even where tensor cores offer tf32.
  Gpu ampere = with_rates(19.5e12, 78e12, 312e12);
  ampere.tensor_rate[static_cast<std::size_t>(Precision::tf32)] = FlopsPerSecond(156e12);
  CHECK(ampere.matrix_rate(Precision::fp32).value() == 19.5e12);
  CHECK(ampere.matrix_rate(Precision::tf32).value() == 156e12);
}
