// Masks, packed sequences and the algorithms' own properties.
#include "model/cost/attention.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::machine;

namespace {

Attention square(AttentionKind kind, std::int64_t length, bool causal = false) {
  return test::attention(kind, 2, 16, length, 128, causal);
}

double seconds(const Attention& work, const char* node = "dgx-h100") {
  return machine(node).time(work, Precision::fp16).value();
}

}  // namespace

TEST_CASE("Packed sequences of one length are a batch") {
  for (const AttentionKind kind : test::attention_kinds) {
    for (const bool backward : {false, true}) {
      for (const bool causal : {false, true}) {
        Attention batch = square(kind, 777, causal);
        batch.backward = backward;
        batch.batch = 6;
        Attention packed = batch;
        packed.batch = 2;
        packed.packing = pack(std::vector<std::int64_t>(3, 777), causal, 0);
        packed.query_length = packed.key_length = 3 * 777;
        INFO(static_cast<int>(kind) << " backward " << backward << " causal " << causal);
        CHECK(seconds(packed) == Approx(seconds(batch)).epsilon(1e-12));
        CHECK(scores(packed) == Approx(scores(batch)));
        const auto memory = [](const Attention& work) {
          return attention_memory(work, Precision::fp16, machine("dgx-h100").gpu).peak;
        };
        CHECK(memory(packed) == memory(batch));
      }
    }
  }
}

TEST_CASE("Packing beats padding to the longest, and standard attention pads") {
  const std::vector<std::int64_t> lengths = {128, 256, 512, 4096};
  for (const AttentionKind kind : test::attention_kinds) {
    Attention packed = square(kind, 0, true);
    packed.packing = pack(lengths, true, 0);
    packed.query_length = packed.key_length = packed.packing->tokens;
    Attention padded = square(kind, 4096, true);
    padded.batch *= 4;
    INFO(static_cast<int>(kind));
    if (kind == AttentionKind::standard) {
      CHECK(seconds(packed) == Approx(seconds(padded)));
    } else {
      CHECK(seconds(packed) < 0.5 * seconds(padded));
    }
  }
}

TEST_CASE("A window as long as the sequence hides nothing, a shorter one saves time, but not standard attention's") {
  for (const AttentionKind kind : test::attention_kinds) {
    for (const bool causal : {false, true}) {
      const Attention whole = square(kind, 8192, causal);
      double last = 0.0;
      for (const std::int64_t window : {1, 64, 128, 1000, 4096, 8191, 8192, 100000}) {
        Attention windowed = whole;
        windowed.window = window;
        INFO(static_cast<int>(kind) << " causal " << causal << " window " << window);
        const double time = seconds(windowed);
        // Unfused, a mask is work: without a causal one the last window, which hides nothing, is the fastest.
        if (kind != AttentionKind::standard || causal) CHECK(time >= last * (1 - 1e-6));
        if (window >= 8192) CHECK(time == seconds(whole));
        if (kind == AttentionKind::standard && causal) CHECK(time == seconds(whole));
        if (kind != AttentionKind::standard && window <= 1000) CHECK(time < 0.5 * seconds(whole));
        last = time;
      }
    }
  }
}

TEST_CASE("A block-sparse mask that keeps all blocks is none; time grows with what it keeps") {
  for (const AttentionKind kind : test::attention_kinds) {
    Attention work = square(kind, 8192);
    const double dense = seconds(work);
    double last = 0.0;
    for (const double density : {0.01, 0.1, 0.5, 1.0}) {
      work.density = density;
      const double time = seconds(work);
      INFO(static_cast<int>(kind) << " density " << density);
      if (density == 1.0) CHECK(time == dense);
      if (kind == AttentionKind::standard) continue;  // computes all scores, and adds a mask
      CHECK(time > last);
      last = time;
    }
    work.density = 0.1;
    // A tenth of the work, the start of each of 16 rounds of blocks (2.9 us of 191 us), and of the kernel (3.5 us).
    if (kind == AttentionKind::flash_2) CHECK(seconds(work) / dense == Approx(0.115).epsilon(0.01));
  }
}

TEST_CASE("What a kind means on a GPU") {
  using enum AttentionKind;
  struct Row {
    const char* node;
    AttentionKind asked, taken;
    Precision precision = Precision::fp16;
    std::int64_t head_dim = 128;
  };
  const Row rows[] = {{"dgx1-v100-16gb", flash, memory_efficient},
                      {"t4-x1", flash_1, flash_1},
                      {"t4-x1", flash, memory_efficient},
                      {"dgx-a100-80gb", flash, flash_2},
                      {"dgx-h100", flash, flash},
                      {"dgx-h100", flash_2, flash_2},
                      {"dgx-h100", flash_3, flash_3},
                      {"dgx-h100", flash, memory_efficient, Precision::fp32},
                      {"dgx-h100", flash, memory_efficient, Precision::bf16, 512},
                      {"dgx-a100-80gb", flash_1, memory_efficient, Precision::fp16, 256}};
  for (const Row& row : rows) {
    Attention work = square(row.asked, 1024);
    work.head_dim = row.head_dim;
    INFO(row.node << " " << static_cast<int>(row.asked));
    CHECK(attention_kernel(work, row.precision, machine(row.node).gpu) == row.taken);
  }
}

TEST_CASE("An architecture's own kernels begin with Hopper and end with data-centre Blackwell") {
  using Kernel = AttentionKind;
  const auto kernel = [](double capability) {
    Gpu gpu = machine("dgx-h100").gpu;
    gpu.compute_capability = capability;
    return attention_kernel(square(AttentionKind::flash, 1024), Precision::fp16, gpu);
  };
  CHECK(kernel(7.5) == Kernel::memory_efficient);
  CHECK(kernel(8.0) == Kernel::flash_2);
  CHECK(kernel(8.9) == Kernel::flash_2);
  CHECK(kernel(9.0) == Kernel::flash);
  CHECK(kernel(10.3) == Kernel::flash);
  CHECK(kernel(11.0) == Kernel::flash_2);
}
