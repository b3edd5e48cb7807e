// Slices of timelines that are too narrow to be seen, and numbers and names of pages.
#include "reports/page/slices.hpp"

#include <fmt/format.h>

#include "reports/page/page_json.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {
namespace {

TimelineEntry piece(const char* name, double start, double duration, int micro_batch = -1) {
  TimelineEntry entry;
  entry.resource = "gpu";
  entry.name = name;
  entry.category = "compute";
  entry.start = Seconds(start);
  entry.duration = Seconds(duration);
  entry.micro_batch = micro_batch;
  return entry;
}

/// Slices beside one of 1,024 s on another resource, so that a thousandth of a second and a little is the first width.
std::string slices_beside(std::vector<TimelineEntry> entries, std::size_t most) {
  TimelineEntry whole = piece("whole", 0.0, 1024.0);
  whole.resource = "cpu";
  entries.push_back(whole);
  std::string words;
  for (const Slice& slice : slices_of(entries, most)) {
    if (slice.resource == "cpu") continue;
    words += fmt::format("{} {:.6g}+{:.6g} x{} mb{}; ", slice.name, slice.start.value(), slice.duration.value(),
                         slice.tasks, slice.micro_batch);
  }
  return words;
}

}  // namespace

TEST_CASE("Slices that are narrower than can be seen are joined with their neighbours, and lose what differs") {
  const TimelineEntry first = piece("f", 0.0, 0.0005, 3), second = piece("f", 0.0006, 0.0004, 3);
  CHECK(slices_beside({first, second}, 3) == "f 0+0.0005 x1 mb3; f 0.0006+0.0004 x1 mb3; ");
  CHECK(slices_beside({first, second}, 2) == "f 0+0.001 x2 mb3; ");
  CHECK(slices_beside({first, piece("b", 0.0006, 0.0004, 4)}, 2) == "several 0+0.001 x2 mb-1; ");
  CHECK(slices_beside({first, second, piece("f", 0.0011, 0.0001, 3)}, 2) == "f 0+0.0012 x3 mb3; ");
  // One inside another ends no later than that.
  CHECK(slices_beside({piece("f", 0.0, 0.0009), piece("f", 0.0001, 0.0001)}, 2) == "f 0+0.0009 x2 mb-1; ");
  // What lies on another lane or is of another kind is no neighbour.
  TimelineEntry lane = second, kind = second;
  lane.lane = 1;
  kind.category = "data";
  for (const TimelineEntry& other : {lane, kind}) {
    CHECK(slices_beside({first, other}, 2) == "f 0+0.0005 x1 mb3; f 0.0006+0.0004 x1 mb3; ");
  }
}

TEST_CASE("Widths double until few enough are left: the narrowest gaps and slices go first") {
  // The first width is 1.024 ms. A gap of 1.5 ms and a slice of 1.5 ms are joined by the second, of 2.048 ms.
  const std::vector<TimelineEntry> pieces = {piece("a", 0.0, 0.0005), piece("a", 0.0006, 0.0005),
                                             piece("b", 0.0026, 0.0001), piece("c", 0.0030, 0.0015)};
  CHECK(slices_beside(pieces, 5) ==
        "a 0+0.0005 x1 mb-1; a 0.0006+0.0005 x1 mb-1; b 0.0026+0.0001 x1 mb-1; "
        "c 0.003+0.0015 x1 mb-1; ");
  CHECK(slices_beside(pieces, 4) == "a 0+0.0011 x2 mb-1; b 0.0026+0.0001 x1 mb-1; c 0.003+0.0015 x1 mb-1; ");
  CHECK(slices_beside(pieces, 3) == "several 0+0.0027 x3 mb-1; c 0.003+0.0015 x1 mb-1; ");
  CHECK(slices_beside(pieces, 2) == "several 0+0.0045 x4 mb-1; ");
}

TEST_CASE("A complaint's place is left out where it is one") {
  CHECK(without_place("/home/me/big.yaml:9:19: batch: 3 samples") == "batch: 3 samples");
  CHECK(without_place("a:1: b") == "b");
  CHECK(without_place("plan.tensor: 3 does not divide") == "plan.tensor: 3 does not divide");
  CHECK(without_place("key1: 3") == "key1: 3");
  CHECK(without_place("a b:1: c") == "a b:1: c");
  CHECK(without_place(": c") == ": c");
  CHECK(without_place("a:1") == "a:1");
}

TEST_CASE("A timeline's names are numbered in their order, times are microseconds, lanes are told where names do not") {
  std::vector<Slice> slices(3);
  slices[0] = {"gpu 1", "f", "compute", 1, 0, Seconds(0.0), Seconds(1.2345678e-3), 1};
  slices[1] = {"gpu", "b", "compute", 2, 1, Seconds(1e-6), Seconds(2e-6), 2};
  slices[2] = {"gpu", "f", "data", 0, -1, Seconds(0.5e-9), Seconds(1.0), 1};
  const PageJson json = slices_json(slices);
  CHECK(json["resources"] == PageJson{"gpu 1", "gpu (2)", "gpu"});
  CHECK(json["resource"] == PageJson{0, 1, 2});
  CHECK(json["names"] == PageJson{"f", "b"});
  CHECK(json["name"] == PageJson{0, 1, 0});
  CHECK(json["category"] == PageJson{0, 0, 1});
  CHECK(json["start_us"][1].get<double>() == Approx(1.0));
  CHECK(json["start_us"][2].get<double>() == Approx(0.001));  // whole nanoseconds
  CHECK(json["duration_us"][0].get<double>() == Approx(1234.568));
  CHECK(json["micro_batch"] == PageJson{0, 1, -1});
  CHECK(json["tasks"] == PageJson{1, 2, 1});
}

}  // namespace foretrain::test
