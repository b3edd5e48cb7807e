// Traffic of the kernels of fused operators.
#include "model/graph/recipe.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;

namespace {

/// Reads two tensors of 8 MB and writes a third over one of them.
const Operator residual{"residual", Streaming{StreamingKind::elementwise, 16.0_MB, 8.0_MB, Flops(4e6), true},
                        Precision::bf16, 1};

std::vector<PricedOperator> kernels_behind(const Operator& first) {
  const test::Machine& a100 = test::machine("dgx-a100-80gb");
  std::vector<PricedOperator> kernels;
  for (const RecipeWork& work :
       kernels_of({first, residual}, ExecutionMode::compiled, 1.0, a100.gpu, a100.calibration).work) {
    kernels.push_back(std::get<PricedOperator>(work));
  }
  return kernels;
}

}  // namespace

TEST_CASE("a fused operator adds what it reads beside its producer's result, or a kernel behind a library's") {
  // Behind a norm, which reads and writes 8 MB: its kernel reads the other tensor as well.
  const Operator norm{"norm", Streaming{StreamingKind::reduction, 8.0_MB, 8.0_MB, Flops(4e6), false}, Precision::bf16,
                      1};
  const std::vector<PricedOperator> one = kernels_behind(norm);
  REQUIRE(one.size() == 1);
  CHECK(std::get<Streaming>(one[0].op.work).read == 16.0_MB);
  CHECK(std::get<Streaming>(one[0].op.work).written == 8.0_MB);
  // Behind a product, whose kernel is the library's: one of its own that reads both tensors and writes their sum.
  const std::vector<PricedOperator> two =
      kernels_behind({"product", Matmul{1, 2000, 2000, 500, false}, Precision::bf16, 1});
  REQUIRE(two.size() == 2);
  CHECK(std::get<Streaming>(two[1].op.work).read == 16.0_MB);
  CHECK(std::get<Streaming>(two[1].op.work).written == 8.0_MB);
}
