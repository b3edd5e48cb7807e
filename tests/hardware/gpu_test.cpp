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

TEST_CASE("Matrix products run on tensor cores where there are any for the precision") {
  const Gpu volta = with_rates(15e12, 30e12, 120e12);
  CHECK(volta.matrix_rate(Precision::fp16).value() == 120e12);
  CHECK(volta.has_tensor_cores(Precision::fp16));
  CHECK_FALSE(volta.has_tensor_cores(Precision::bf16));
}

TEST_CASE("Without tensor cores the vector units count, and fp32 where a precision has no unit at all") {
  const Gpu pascal = with_rates(10e12, 20e12, 0);
  CHECK(pascal.matrix_rate(Precision::fp16).value() == 20e12);
  CHECK(pascal.matrix_rate(Precision::bf16).value() == 10e12);
  CHECK(pascal.matrix_rate(Precision::tf32).value() == 10e12);
}

TEST_CASE("fp32 means plain fp32, even where tensor cores offer tf32") {
  Gpu ampere = with_rates(19.5e12, 78e12, 312e12);
  ampere.tensor_rate[static_cast<std::size_t>(Precision::tf32)] = FlopsPerSecond(156e12);
  CHECK(ampere.matrix_rate(Precision::fp32).value() == 19.5e12);
  CHECK(ampere.matrix_rate(Precision::tf32).value() == 156e12);
}

TEST_CASE("A format without units is multiplied in the next wider one that has them") {
  Gpu gpu = with_rates(10e12, 20e12, 80e12);
  CHECK(gpu.arithmetic_precision(Precision::fp16) == Precision::fp16);
  CHECK(gpu.arithmetic_precision(Precision::fp8) == Precision::fp16);
  CHECK(gpu.matrix_rate(Precision::fp8).value() == 80e12);
  CHECK(gpu.arithmetic_precision(Precision::int4) == Precision::fp32);  // neither int4 nor int8
  gpu.tensor_rate[static_cast<std::size_t>(Precision::int8)] = FlopsPerSecond(160e12);
  CHECK(gpu.arithmetic_precision(Precision::int4) == Precision::int8);
  CHECK(gpu.matrix_rate(Precision::int4).value() == 160e12);
}
