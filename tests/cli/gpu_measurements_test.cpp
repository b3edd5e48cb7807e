// Accuracy for the project's own GPU measurements stays as it is.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

nlohmann::json errors_of(const std::string& table) {
  const std::string folder = std::string(FORETRAIN_SOURCE_DIR) + "/validate/measurements/";
  return nlohmann::json::parse(output_of({"validate", "--cases", folder + table, "--json"}));
}

/// The mean absolute error of times, or of memory, of the cases that `counts`.
template <typename Counts>
double mean_error(const nlohmann::json& result, int least, Counts counts, bool of_memory = false) {
  double sum = 0.0;
  int number = 0;
  for (const nlohmann::json& row : result["cases"]) {
    if ((row["quantity"] == "memory_per_gpu") != of_memory || !counts(row["case"].get<std::string>())) continue;
    sum += std::abs(row["error"].get<double>());
    ++number;
  }
  CHECK(number >= least);
  return sum / number;
}

}  // namespace

TEST_CASE("Steps in bf16 and fp8 that keep a GPU busy are predicted, on an H100 to which nothing was fitted") {
  // Of the others most waited for the host, a virtual machine, and the rest is networks in fp32 and small kernels.
  const auto has = [](const std::string& name, const char* part) { return name.find(part) != std::string::npos; };
  const auto busy = [&](const std::string& name) {
    const bool waits = has(name, "gpt2-b1-") || has(name, "gpt2-b4-") || has(name, "bert-base-b32-s128") ||
                       has(name, "gpt2-medium-b8-s1024-bf16-compiled");
    return has(name, "-s") && (has(name, "-bf16-") || has(name, "-fp8-")) && (!waits || has(name, "cuda_graph"));
  };
  const nlohmann::json h100 = errors_of("2026-11-27-h100/cases_pytorch.csv");
  CHECK(mean_error(h100, 29, busy) < 0.04);
  CHECK(mean_error(h100, 29, busy, true) < 0.07);
  CHECK(mean_error(errors_of("2026-11-26-h200/cases_pytorch.csv"), 18, busy) < 0.06);
}

TEST_CASE("Products and attention of an H200, bursts and sustained, are predicted by constants of other GPUs") {
  const nlohmann::json operators = errors_of("2026-11-26-h200/cases_operators.csv");
  const auto of = [&](const std::string& group, const std::string& clock, int least) {
    return mean_error(operators, least, [&](const std::string& name) {
      return name.find(group) != std::string::npos && name.ends_with(clock);
    });
  };
  CHECK(of("-bf16-", "-sustained", 100) < 0.065);
  CHECK(of("-bf16-", "-boost", 200) < 0.12);
  CHECK(of("-fa2", "-sustained", 70) < 0.12);
  CHECK(of("-cudnn", "-sustained", 50) < 0.12);
}

}  // namespace foretrain::test
