// What a graph needs of a GPU's memory, before anything is allocated.
#include "validate/cuda/replay/least_memory.hpp"

#include "tests/catch.hpp"

using namespace foretrain;
using gpu::least_memory;

namespace {

replay::Block block(Work work) { return {"b", "compute", 1.0, {std::move(work)}}; }

KernelWork matmul(const std::string& n, const std::string& precision) {
  return {"m", "matmul", {{"m", n}, {"n", n}, {"k", n}, {"precision", precision}}, 1};
}

}  // namespace

TEST_CASE("operators of one stream share memory, streams of one GPU and copies add up") {
  replay::Graph graph;
  graph.gpus = 2;
  graph.resources = {{"gpu0", replay::Resource::Kind::stream, 0},
                     {"gpu0:stream1", replay::Resource::Kind::stream, 0},
                     {"gpu1", replay::Resource::Kind::stream, 1},
                     {"gpu0:d2h", replay::Resource::Kind::copies, 0}};
  graph.blocks = {block(matmul("1000", "fp32")), block(matmul("1000", "bf16")),
                  block(KernelWork{"t", "traffic", {{"read", "100"}, {"written", "50"}}, 1}),
                  block(CopyWork{"gpu0", "cpu", 1000.0_B, true})};
  // Three matrices of a million fp32 numbers; half of that in bf16 comes behind it on the same stream.
  graph.tasks = {{0, 0, {}}, {1, 0, {}}};
  CHECK(least_memory(graph) == 12'000'000);
  graph.tasks.push_back({2, 1, {}});  // 150 bytes at the same time
  CHECK(least_memory(graph) == 12'000'150);
  graph.tasks.push_back({1, 2, {}});  // on the other GPU
  CHECK(least_memory(graph) == 12'000'150);
  graph.tasks.push_back({3, 3, {}});  // in and out
  CHECK(least_memory(graph) == 12'002'150);
}
