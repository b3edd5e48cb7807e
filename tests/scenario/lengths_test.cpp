// Lengths of sequences that a distribution stands for.
#include "model/scenario/model/model_reader.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

std::vector<std::int64_t> lengths_of(const std::string& text) {
  const YamlNode document = parse_yaml(text, "lengths.yaml");
  return read_sequence_lengths(Field(document, ""));
}

}  // namespace

TEST_CASE("Four lengths stand at an eighth, three, five and seven eighths of their distribution") {
  using Lengths = std::vector<std::int64_t>;
  // Tables of the normal distribution: 0.3186 and 1.1503 standard deviations on either side of the mean.
  CHECK(lengths_of("{ distribution: normal, count: 4, mean: 100, spread: 10 }") == Lengths{88, 97, 103, 112});
  // Mean and standard deviation of 100: the logarithm's variance is ln 2, the median 100 / √2; e^(0.8326 · 0.3186) is
  // 1.304, e^(0.8326 · 1.1503) is 2.606.
  CHECK(lengths_of("{ distribution: lognormal, count: 4, mean: 100, spread: 100 }") == Lengths{27, 54, 92, 184});
  CHECK(lengths_of("{ distribution: uniform, count: 4, shortest: 1, longest: 9 }") == Lengths{2, 4, 6, 8});
  // −100 · ln(7/8, 5/8, 3/8, 1/8)
  CHECK(lengths_of("{ distribution: exponential, count: 4, mean: 100 }") == Lengths{13, 47, 98, 208});
  // None is shorter or longer than what is allowed.
  CHECK(lengths_of("{ distribution: normal, count: 4, mean: 100, spread: 10, shortest: 90, longest: 110 }") ==
        Lengths{90, 97, 103, 110});
}
