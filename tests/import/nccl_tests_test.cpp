// What programs of nccl-tests print, small outputs as a whole.
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

const std::string header =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n";

std::string device(int rank, const char* host, const char* name = "NVIDIA H100 80GB HBM3") {
  return fmt::format("#  Rank  {0} Group  0 Pid  4{0} on  {1} device  {0} [0x1{0}] {2}\n", rank, host, name);
}

std::string eight(const char* host, const char* name = "NVIDIA H100 80GB HBM3") {
  std::string lines;
  for (int rank = 0; rank < 8; ++rank) lines += device(rank, host, name);
  return lines;
}

std::string row(const char* size, const char* wrong = "0") {
  return fmt::format("  {} 2 float sum -1 20.5 5.00 9.99 {} 19.5 6.00 10.00 0\n", size, wrong);
}

/// The table's rows without their last cells, which say where they come from.
std::string table(const std::string& text, std::vector<std::string> overrides = {}) {
  const std::string all = import_text("nccl-tests", text, std::move(overrides));
  std::string cut;
  for (std::size_t at = all.find('\n') + 1; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    const std::string line = all.substr(at, end - at);
    cut += line.substr(0, line.rfind(",\"nccl-tests")) + "\n";
    at = end + 1;
  }
  return cut;
}

}  // namespace

TEST_CASE("a size has two rows, whose bandwidth is told where it has three digits") {
  CHECK(table(eight("a") + header + row("1024"), {"workload.collective.operation=all_reduce"}) ==
        R"(file-all_reduce-1024-out-of-place,file-out-of-place,all_reduce,dgx-h100,1,8,auto,1024 B,20.5 us,
file-all_reduce-1024-in-place,file-in-place,all_reduce,dgx-h100,1,8,auto,1024 B,19.5 us,10 GB/s
)");
  // Ranks of all hosts over the hosts: sixteen on two. A row of no bytes says nothing.
  CHECK(table("all_gather_perf -b 8\n" + eight("a") + eight("b") + header + row("1024") + row("0")) ==
        R"(file-all_gather-1024-out-of-place,file-out-of-place,dgx-h100,2,8,all_gather,auto,1024 B,20.5 us,
file-all_gather-1024-in-place,file-in-place,dgx-h100,2,8,all_gather,auto,1024 B,19.5 us,10 GB/s
)");
}

TEST_CASE("lines that mpirun marks are read behind the mark") {
  std::string text = "[1,0]<stdout>:# all_reduce_perf\n";
  for (const std::string& line : {device(0, "a"), device(1, "a"), header, row("1024")}) text += "[1,0]<stdout>:" + line;
  CHECK(table(text) ==
        R"(file-all_reduce-1024-out-of-place,file-out-of-place,dgx-h100,1,2,all_reduce,auto,1024 B,20.5 us,
file-all_reduce-1024-in-place,file-in-place,dgx-h100,1,2,all_reduce,auto,1024 B,19.5 us,10 GB/s
)");
}

TEST_CASE("a device's line has its host, and a name behind its place, which may have blanks in its brackets") {
  const std::string bare = "#  Rank  0 on  a device  0\n";
  CHECK_THAT(table("all_reduce_perf\n" + bare + header + row("1024"), {"cluster.node=dgx-h100"}),
             Catch::Contains(",1,1,all_reduce,"));
  const std::string named = "#  Rank  0 Group  0 Pid  4 on  a device  0 [ 0x18] NVIDIA H200\n";
  CHECK_THAT(import_text("nccl-tests", "all_reduce_perf\n" + named + header + row("1024")),
             Catch::Contains("line 4; NVIDIA H200"));
}

TEST_CASE("the machine is the catalogue's with the same GPU, and as many of it") {
  const auto node = [](const std::string& devices) {
    const std::string text = import_text("nccl-tests", "all_reduce_perf\n" + devices + header + row("1024"));
    const std::size_t line = text.find('\n') + 1;
    std::size_t at = line;
    for (int i = 0; i < 2; ++i) at = text.find(',', at) + 1;
    return text.substr(at, text.find(',', at) - at);
  };
  CHECK(node(eight("a")) == "dgx-h100");
  CHECK(node(eight("a", "NVIDIA A100-SXM4-80GB")) == "dgx-a100-80gb");
  CHECK(node(eight("a", "NVIDIA A100-SXM4-40GB")) == "dgx-a100-40gb");
  CHECK(node(device(0, "a", "NVIDIA H200")) == "h200-x1");
  CHECK(node(eight("a", "Tesla V100-SXM2-32GB")) == "dgx1-v100-32gb");
  CHECK_THROWS_WITH(node(eight("a", "NVIDIA Z9 80GB")),
                    Catch::Contains("no GPU of the catalogue is \"NVIDIA Z9 80GB\""));
  CHECK(node(device(0, "a", "NVIDIA GeForce RTX 4090") + device(1, "a", "NVIDIA GeForce RTX 4090")) == "rtx4090-x2");
  std::string many;
  for (int i = 0; i < 100; ++i) many += eight("a");
  CHECK_THROWS_WITH(node(many), Catch::Contains("no machine of the catalogue has 800"));
}

TEST_CASE("where no program is named, reductions, roots and the bus tell what was measured") {
  const auto measured = [](int ranks, const std::string& reduction_and_root, double bus) {
    std::string text;
    for (int rank = 0; rank < ranks; ++rank) text += device(rank, "a");
    text += header + fmt::format("1024 2 float {} 20.5 40.00 {} 0 19.5 40.00 {} 0\n", reduction_and_root, bus, bus);
    const std::string first = table(text);
    for (const char* operation : {"all_reduce", "reduce_scatter", "broadcast", "reduce"}) {
      if (first.find(fmt::format("file-{}-1024", operation)) == 0) return std::string(operation);
    }
    return first;
  };
  // Of four ranks an all-reduce moves 2 · 3/4 bytes for each, a reduce-scatter 3/4; of two both move as much as there
  // is.
  CHECK(measured(4, "sum -1", 60.0) == "all_reduce");
  CHECK(measured(4, "sum -1", 30.0) == "reduce_scatter");
  CHECK(measured(3, "sum -1", 53.3) == "all_reduce");
  CHECK(measured(4, "none 0", 40.0) == "broadcast");
  CHECK(measured(4, "sum 0", 40.0) == "reduce");
  for (const auto& [ranks, words] : {std::pair(2, "sum -1"), std::pair(4, "none -1")}) {
    CHECK_THROWS_WITH(measured(ranks, words, 40.0), Catch::Contains("does not tell what was measured"));
  }
}

TEST_CASE("hosts with different numbers of ranks count as the largest that is needed") {
  // Three ranks on two hosts: two each.
  CHECK_THAT(table("all_reduce_perf\n" + device(0, "a") + device(1, "a") + device(2, "b") + header + row("1024")),
             Catch::Contains(",dgx-h100,2,2,all_reduce,"));
}

TEST_CASE("rows that cannot be are refused at their place") {
  const auto refused = [](const std::string& line) {
    try {
      table("all_reduce_perf\n" + eight("a") + header + line);
    } catch (const ScenarioError& error) {
      const std::string what = error.what();
      return what.substr(0, what.find(';'));
    }
    return std::string("nothing");
  };
  CHECK(refused(row("1024", "3")) == R"(file:11:38: #wrong: 3 wrong results)");
  CHECK(refused(row("1024", "N/A")) == "nothing");
  CHECK(refused("1024 2 float sum -1 0.00 5.00 9.99 0 19.5 6.00 10.00 0\n") ==
        R"(file:11:21: time: nothing takes no time)");
  CHECK(refused("1024 2 float sum -1 20.5 5.00 9.99 0 19.5 6.00 10.00\n") == "nothing");  // without the last check
  CHECK(refused("1024 2 float sum -1 20.5 5.00 9.99 0 19.5 6.00\n") == R"(file:11:47: busbw: 11 columns)");
  CHECK(refused("1024 2 float sum -1 20.5 5.00 x9 0 19.5 6.00 10.00 0\n") ==
        R"(file:11:31: busbw: "x9" is not a number)");
  CHECK(refused("no row\n") == R"(file: no measurements)");
}
