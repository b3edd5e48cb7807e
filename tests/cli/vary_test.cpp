// Values of --vary: values of ranges and lists, and the rows that several of them make together.
#include "reports/cli/vary.hpp"

#include <fmt/ranges.h>

#include "model/base/error.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

std::string values_of(const std::string& text) {
  return fmt::format("{}", fmt::join(parse_variation(text).values, "|"));
}

/// Why it is refused, without how it should be written; "nothing" where it is not.
std::string refusal_of(const std::string& text) {
  try {
    parse_variation(text);
  } catch (const UsageError& error) {
    const std::string what = error.what();
    return what.substr(0, what.find(';'));
  }
  return "nothing";
}

Combinations combined(const std::vector<std::string>& texts, std::size_t most = 1000) {
  return Combinations("base", {"a.common=0"}, parse_variations(texts), most);
}

}  // namespace

TEST_CASE("Ranges go by steps or factors up to their end, which counts where a step meets it") {
  CHECK(values_of("k=1..3") == "1|2|3");
  CHECK(values_of("k=1..4+2") == "1|3");
  CHECK(values_of("k=1..5 + 2") == "1|3|5");
  CHECK(values_of("k=3..3") == "3");
  CHECK(values_of("k=3..3x2") == "3");
  CHECK(values_of("k=1..8x2") == "1|2|4|8");
  CHECK(values_of("k=3..24x2") == "3|6|12|24");
  CHECK(values_of("k=1..7x2") == "1|2|4");
  CHECK(values_of("k=1..3x1.5") == "1|1.5|2.25");
  CHECK(values_of("k=1..2+0.25") == "1|1.25|1.5|1.75|2");
  CHECK(values_of("k=0..0.3+0.1") == "0|0.1|0.2|0.3");  // whose sums are rounded
  CHECK(values_of("k=1..4 MBx2") == "1 MB|2 MB|4 MB");
  CHECK(values_of("k=1 MB..2 MB+0.5") == "1 MB|1.5 MB|2 MB");
  CHECK(values_of("k=1 MB..3 MB+1 MB") == "1 MB|2 MB|3 MB");
  CHECK(values_of("k=1..3+1 MB") == "1 MB|2 MB|3 MB");
  CHECK(values_of("k = 0..2 ") == "0|1|2");
  std::string all = values_of("k=1..100000");
  CHECK(std::ranges::count(all, '|') == 99'999);
}

TEST_CASE("What is no range is a list, whose commas count outside of brackets and quotes") {
  CHECK(values_of("k=a") == "a");
  CHECK(values_of("k=a, b ,c") == "a|b|c");
  CHECK(values_of("k=a..b") == "a..b");
  CHECK(values_of("k={ a: 1, b: [2, 3] }, servers(4, cpu), x") == "{ a: 1, b: [2, 3] }|servers(4, cpu)|x");
  CHECK(values_of("k='a,b', \"c,'d\",e") == "'a,b'|\"c,'d\"|e");
  CHECK(values_of("k=(a),b") == "(a)|b");
  CHECK(values_of("k=../a.yaml,../b.yaml") == "../a.yaml|../b.yaml");
  CHECK(values_of("k,l=1:2,3:4") == "1:2|3:4");
  CHECK(parse_variation("k,l=1:2,3:4").values_at(1) == std::vector<std::string>{"3", "4"});
  CHECK(parse_variation("k=1:2").values_at(0) == std::vector<std::string>{"1:2"});
}

TEST_CASE("Ranges and lists that lead nowhere are refused with why") {
  CHECK(refusal_of("k") == "--vary k: there is no \"=\"");
  CHECK(refusal_of("=1") == "--vary =1: there is no key");
  CHECK(refusal_of("k=") == "--vary k=: there are no values");
  CHECK(refusal_of("k=1,,2") == "--vary k=1,,2: a value is empty");
  CHECK(refusal_of("k,=1:2") == "--vary k,=1:2: a key is empty");
  CHECK(refusal_of("k,l=1:2,3") == "--vary k,l=1:2,3: 3 is 1 values for 2 keys");
  CHECK(refusal_of("k=2..1") == "--vary k=2..1: the range ends before it begins");
  CHECK(refusal_of("k=1..2+0") == "--vary k=1..2+0: this step leads nowhere");
  CHECK(refusal_of("k=1..2x1") == "--vary k=1..2x1: this step leads nowhere");
  CHECK(refusal_of("k=1..2x1.01") == "nothing");
  CHECK(refusal_of("k=1..2+0.5") == "nothing");
  CHECK(refusal_of("k=0..2x2") == "--vary k=0..2x2: zero times anything stays zero");
  CHECK(refusal_of("k=0..2") == "nothing");
  CHECK(refusal_of("k=1 MB..2 GB") == "--vary k=1 MB..2 GB: both ends of a range need the same unit");
  CHECK(refusal_of("k=1 MB..2") == "--vary k=1 MB..2: both ends of a range need the same unit");
  CHECK(refusal_of("k=1 MB..2 MB+1 GB") == "--vary k=1 MB..2 MB+1 GB: the step needs the unit of the range");
  CHECK(refusal_of("k=1..100001") == "--vary k=1..100001: more than 100000 values");
}

TEST_CASE("Rows are all values of each with all of the others, the last changing first") {
  const Combinations all = combined({"a.x=1,2", "b.y,b.z=p:q,r:s", "c.w=5"});
  REQUIRE(all.size() == 4);
  std::string rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows += all.at(i).name + " |";
    for (const Override& change : all.at(i).overrides) rows += " " + change.key + "=" + change.value;
    rows += "\n";
  }
  CHECK(rows == R"(a.x=1 b.y=p b.z=q c.w=5 | a.common=0 a.x=1 b.y=p b.z=q c.w=5
a.x=1 b.y=r b.z=s c.w=5 | a.common=0 a.x=1 b.y=r b.z=s c.w=5
a.x=2 b.y=p b.z=q c.w=5 | a.common=0 a.x=2 b.y=p b.z=q c.w=5
a.x=2 b.y=r b.z=s c.w=5 | a.common=0 a.x=2 b.y=r b.z=s c.w=5
)");
  CHECK(all.columns() == std::vector<std::string>{"a.common", "a.x", "b.y", "b.z", "c.w"});
  CHECK(all.distinct() == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(all.first_words(1) == all.first_words(0));
  CHECK(all.first_words(2) != all.first_words(1));
  CHECK(fmt::format("{} | {} | {}", all.words(0), all.words(3), all.words(1, 1)) ==
        R"(x: 1, p, q, w: 5 | x: 2, r, s, w: 5 | r, s, w: 5)");
}

TEST_CASE("As many combinations as are allowed are made, and no key twice") {
  CHECK(combined({"a.x=1..10", "b.y=1..10"}, 100).size() == 100);
  CHECK_THROWS_WITH(combined({"a.x=1..10", "b.y=1..10"}, 99), Catch::Contains("more than 99 combinations"));
  CHECK_THROWS_WITH(combined({"a.x=1", "A.X=2"}), Catch::Contains("A.X is given twice"));
  CHECK_THROWS_WITH(combined({"plan.trainer=ddp", "plan.framework=fsdp"}), Catch::Contains("is given twice"));
  CHECK_THROWS_WITH(combined({"a.common=1"}), Catch::Contains("a.common is given twice"));
  CHECK_THROWS_WITH(combined({"predicted.time=1"}), Catch::Contains("predicted.time is a column of tables"));
  CHECK_THROWS_WITH(combined({"case=1"}), Catch::Contains("case is a column of tables"));
  CHECK(combined({"cases.x=1"}).size() == 1);
}
