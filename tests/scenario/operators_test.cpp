// Operators that scenarios state by shape: bytes, FLOPs and kernels worked out from the passes of each kernel.
#include "model/scenario/load/load.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Operator op_of(const std::string& shape) {
  const Scenario scenario =
      load_scenario_text("cluster: { node: dgx-a100-80gb }\nworkload: { operator: { " + shape + " } }\n", "o.yaml");
  return std::get<OperatorWorkload>(scenario.workload).op;
}

void expect(const std::string& shape, double read, double written, double flops, int kernels) {
  INFO(shape);
  const Operator op = op_of(shape);
  const auto& work = std::get<Streaming>(op.work);
  CHECK(work.read.value() == Approx(read));
  CHECK(work.written.value() == Approx(written));
  CHECK(work.flops.value() == Approx(flops));
  CHECK(op.kernels == kernels);
}

std::vector<std::int64_t> lengths_of(const std::string& text) {
  const YamlNode document = parse_yaml(text, "lengths.yaml");
  return read_sequence_lengths(Field(document, ""));
}

}  // namespace

TEST_CASE("Norms and softmax read and write their tensors once or twice") {
  // 1000 rows of 512 in bf16 are 1.024 MB.
  const double size = 1000.0 * 512 * 2, elements = 1000.0 * 512;
  // Layer norm: scale and shift are 512 fp32 each, mean and variance of each row 8 B.
  expect("kind: layer_norm, rows: 1000, columns: 512, precision: bf16", size + 4096, size + 8000, 8 * elements, 1);
  expect("kind: layer_norm, rows: 1000, columns: 512, precision: bf16, pass: backward", 4 * size + 16000 + 4096,
         size + 4096, 14 * elements, 2);
  expect("kind: softmax, rows: 1000, columns: 512, precision: bf16", size, size, 5 * elements, 1);
  expect("kind: softmax, rows: 1000, columns: 512, precision: bf16, pass: backward", 2 * size, size, 4 * elements, 1);
  // Batch norm over 32 × 64 × 10 × 10 in fp32: 819,200 B; two statistics of 4 B for each of 64 channels are 512 B.
  expect("kind: batch_norm, batch: 32, channels: 64, height: 10, width: 10", 2 * 819200 + 1024, 819200 + 1024,
         5 * 204800, 1);
  expect("kind: batch_norm, batch: 32, channels: 64, height: 10, width: 10, pass: backward", 4 * 819200 + 1024,
         819200 + 512, 9 * 204800, 1);
}

TEST_CASE("Work may be named by `kind` or be a key, alone and in a list of tasks") {
  const auto tasks = [](const std::string& run) {
    const Scenario scenario = load_scenario_text(
        "cluster: { node: dgx-a100-80gb }\nworkload: { tasks: [ { id: a, on: gpu0, run: " + run + " } ] }\n", "o.yaml");
    return std::get<TasksWorkload>(scenario.workload).tasks.front();
  };
  const Operator named = op_of("kind: matmul, m: 64, n: 32, k: 16");
  CHECK(op_of("matmul: { m: 64, n: 32, k: 16 }, clock: boost, repeat: 3") == named);
  for (const char* run :
       {"{ kind: matmul, m: 64, n: 32, k: 16, repeat: 3 }", "{ matmul: { m: 64, n: 32, k: 16 }, repeat: 3 }"}) {
    CHECK(std::get<Operator>(tasks(run).work) == named);
    CHECK(tasks(run).repeat == 3);
  }
  CHECK(std::get<HostWork>(tasks("{ kind: sleep, time: 2 ms }").work).duration == Seconds(2e-3));
  CHECK(std::get<HostWork>(tasks("{ sleep: 2 ms }").work).duration == Seconds(2e-3));
  CHECK_THROWS_WITH(tasks("{ kind: matmull, m: 1 }"), Catch::Contains("did you mean matmul?"));
}

TEST_CASE("Pooling reads its input and writes its output; positions of maxima take 8 bytes each") {
  // 2 × 3 maps of 8 × 8 in fp32 (1536 B), pooled 2 × 2 to 4 × 4 (96 numbers, 384 B; indices 768 B).
  expect("kind: pooling, batch: 2, channels: 3, height: 8, width: 8, kernel: 2", 1536, 384 + 768, 96 * 4, 1);
  expect("kind: pooling, batch: 2, channels: 3, height: 8, width: 8, kernel: 2, pass: backward", 384 + 768, 1536,
         96 * 4, 1);
  expect("kind: pooling, batch: 2, channels: 3, height: 8, width: 8, kernel: 2, function: average", 1536, 384, 96 * 4,
         1);
  // 3 × 3, stride 2, pad 1: (8 + 2 - 3) / 2 + 1 = 4 again.
  expect("kind: pooling, batch: 2, channels: 3, height: 8, width: 8, kernel: 3, stride: 2, pad: 1, function: average",
         1536, 384, 96 * 9, 1);
}

TEST_CASE("An embedding gathers rows; its gradient is as large as the table") {
  // 100 tokens of width 64 in fp32: 25,600 B of rows, 800 B of token numbers; a table of 1000 rows is 256,000 B.
  expect("kind: embedding, tokens: 100, width: 64, vocabulary: 1000", 25600 + 800, 25600, 0, 1);
  expect("kind: embedding, tokens: 100, width: 64, vocabulary: 1000, pass: backward", 2 * 25600 + 800, 25600 + 256000,
         6400, 2);
}

TEST_CASE("Cross-entropy keeps fp32 log-probabilities") {
  // 10 rows of 1000 logits in bf16 (20,000 B), fp32 log-probabilities 40,000 B, labels 80 B.
  expect("kind: cross_entropy, rows: 10, columns: 1000, precision: bf16", 20080, 40000, 50000, 3);
  expect("kind: cross_entropy, rows: 10, columns: 1000, precision: bf16, pass: backward", 80080, 60000, 40000, 4);
  expect("kind: cross_entropy, rows: 10, columns: 1000, pass: backward", 80080, 40000, 40000, 3);
}

TEST_CASE("A fused update passes each state once, one kernel per operation passes them many times") {
  // AdamW, per parameter: fused reads weight, gradient and two moments (16 B) and writes all but the gradient (12 B). A
  // kernel for each elementary operation: mul, lerp, mul, addcmul, sqrt, div, add, addcdiv: 20 tensors of 4 B.
  expect("kind: optimizer, parameters: 1000", 16000, 12000, 12000, 1);
  expect("kind: optimizer, parameters: 1000, fused: false, tensors: 5", 48000, 32000, 12000, 40);
  // A bf16 copy of the weights adds 2 B written; unfused, a kernel that reads them once more.
  expect("kind: optimizer, parameters: 1000, precision: bf16", 16000, 14000, 12000, 1);
  expect("kind: optimizer, parameters: 1000, precision: bf16, fused: false", 52000, 34000, 12000, 9);
  expect("kind: optimizer, parameters: 1000, algorithm: sgd", 8000, 4000, 2000, 1);
  expect("kind: optimizer, parameters: 1000, algorithm: momentum", 12000, 8000, 4000, 1);
  // Gradients are read for their norm, then read and written for the scaling.
  expect("kind: gradient_clipping, parameters: 1000", 8000, 4000, 3000, 4);
  expect("kind: gradient_clipping, parameters: 1000, tensors: 5, fused: false", 8000, 4000, 3000, 12);
}

TEST_CASE("Reads go once through the working set unless their number is stated") {
  const auto reads = [](const std::string& shape) { return std::get<MemoryAccess>(op_of(shape).work).reads; };
  CHECK(reads("kind: memory_access, working_set: 1 MB") == 250000);
  CHECK(reads("kind: memory_access, working_set: 1 MB, element: 16 B, pattern: random") == 62500);
  CHECK(reads("kind: memory_access, working_set: 1 MB, pattern: strided, stride: 100 B") == 10000);
  CHECK(reads("kind: memory_access, working_set: 1 MB, reads: 7") == 7);
}

TEST_CASE("Queries may outnumber keys where no window tells which of these they see") {
  const std::string few = "kind: attention, batch: 1, heads: 2, head_dim: 64, sequence: 8, key_sequence: 4";
  CHECK(std::get<Attention>(op_of(few).work).key_length == 4);
  CHECK_THROWS_WITH(op_of(few + ", causal: true, window: 2"), Catch::Contains("8 queries outnumber the 4 keys"));
  CHECK(std::get<Attention>(
            op_of("kind: attention, batch: 1, heads: 2, head_dim: 64, sequence: 4, causal: true, window: 2").work)
            .window == 2);
}

TEST_CASE("Four lengths stand at an eighth, three, five and seven eighths of their distribution") {
  using Lengths = std::vector<std::int64_t>;
  // Mean and standard deviation of 100: the logarithm's variance is ln 2, the median 100 / √2. Tables of the normal
  // distribution: 0.3186 and 1.1503 standard deviations; e^(0.8326 · 0.3186) is 1.304, e^(0.8326 · 1.1503) is 2.606.
  CHECK(lengths_of("{ distribution: lognormal, count: 4, mean: 100, spread: 100 }") == Lengths{27, 54, 92, 184});
  // None is shorter or longer than what is allowed.
  CHECK(lengths_of("{ distribution: lognormal, count: 4, mean: 100, spread: 100, shortest: 30, longest: 110 }") ==
        Lengths{30, 54, 92, 110});
}
