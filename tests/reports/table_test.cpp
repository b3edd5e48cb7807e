#include "reports/print/table.hpp"

#include "model/base/text.hpp"
#include "reports/csv.hpp"
#include "reports/figure/axis.hpp"
#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

TEST_CASE("Width counts characters, not bytes") {
  CHECK(display_width("µs") == 2);
  CHECK(display_width("A–Z") == 3);
}

TEST_CASE("Columns are as wide as their widest cell") {
  TextTable table("lr");
  table.add_row({"a", "10 µs"});
  table.add_row({"long", "1"});
  CHECK(table.text(1) == " a     10 µs\n long      1\n");
}

TEST_CASE("A table that is wider than a page breaks its words, then its columns") {
  // 80 columns: two of the margin, 10 and 5 of the short cells, two gaps of 2; 59 are left for words.
  TextTable words("lrl");
  std::string sentence;
  for (int i = 0; i < 30; ++i) sentence += "word ";
  words.add_row({"name of it", "12345", sentence});
  for (const std::string& line : split(words.text(2), '\n')) CHECK(display_width(line) <= 80);
  CHECK(words.text(2).starts_with("  name of it  12345  word word"));
  CHECK(words.text(2).find("\n                     word") != std::string::npos);
  // Twelve columns of nine with gaps of two: seven fit beside each other, and the rest follows with the first again.
  TextTable numbers(std::string(12, 'r'), std::vector<std::string>(12, "a heading"));
  std::vector<std::string> row(12, "1");
  row.front() = "first";
  numbers.add_row(row);
  const std::string text = numbers.text(2);
  for (const std::string& line : split(text, '\n')) CHECK(display_width(line) <= 80);
  CHECK(text.find("first") != text.rfind("first"));
}

TEST_CASE("Numbers take the prefix that leaves one to three digits; seconds none above one") {
  CHECK(si_text(1e-5, "s") == "10 µs");
  CHECK(si_text(0.1, "s") == "100 ms");
  CHECK(si_text(5000.0, "s") == "5000 s");
  CHECK(si_text(2e6, "") == "2 M");
  CHECK(si_text(5000.0, "") == "5000");
  CHECK(si_text(0.05, "") == "0.05");
  CHECK(si_text(1e11, "B") == "100 GB");
  CHECK(logarithmic_tics(1e-6, 1.0, "s").front().label == "1 µs");
}

TEST_CASE("Values grow by factors or by steps") {
  CHECK(grow_by_factors({1.0, 2.0, 4.0, 8.0}));
  CHECK(grow_by_factors({100.0, 1000.0}));
  CHECK_FALSE(grow_by_factors({1.0, 2.0, 3.0, 4.0}));
  CHECK_FALSE(grow_by_factors({2.0, 3.0}));
  CHECK_FALSE(grow_by_factors({0.0, 5.0}));
}

TEST_CASE("A unit that all labels have moves to the axis") {
  std::vector<std::string> same = {"1 MB", "25 MB"}, different = {"1 MB", "1 GB"};
  CHECK(common_unit(same) == "MB");
  CHECK(same == std::vector<std::string>{"1", "25"});
  CHECK(common_unit(different).empty());
  CHECK(different.back() == "1 GB");
}

TEST_CASE("A bar is as long as its share, in eighths") {
  CHECK(bar(0.0, 10).empty());
  CHECK(bar(0.5, 4) == "██");
  CHECK(bar(1.0 / 16.0, 2) == "▏");  // an eighth of a column
  CHECK(bar(1e-9, 10) == "▏");       // never nothing for something
  CHECK(bar(7.0, 2) == "██");
}

TEST_CASE("Text is wrapped between words") {
  CHECK(wrap("one two three", 7, 2) == "one two\n  three");
  CHECK(wrap("indivisible", 4, 2) == "indivisible");
}

TEST_CASE("Axes take the largest unit that makes the largest time at least one") {
  CHECK(time_unit(Seconds(1.0)).name == "s");
  CHECK(time_unit(Seconds(0.999)).name == "ms");
  CHECK(time_unit(Seconds(2e-5)).name == "µs");
  CHECK(time_unit(Seconds(1e-9)).name == "µs");
}

TEST_CASE("Labels that do not collide stay where they are") {
  CHECK(spread({0.1, 0.9, 0.5}, 0.2, 0.0, 1.0) == std::vector<double>{0.1, 0.9, 0.5});
}

TEST_CASE("Colliding labels move apart around their middle") {
  // Both want 0.5 and need 0.2 between them: 0.4 and 0.6.
  const std::vector<double> places = spread({0.5, 0.5}, 0.2, 0.0, 1.0);
  CHECK(places[0] == Approx(0.4));
  CHECK(places[1] == Approx(0.6));
}

TEST_CASE("Labels stay inside, and share the room where there is too little") {
  const std::vector<double> at_top = spread({0.98, 1.0}, 0.1, 0.0, 1.0);
  CHECK(at_top[0] == Approx(0.9));
  CHECK(at_top[1] == Approx(1.0));
  const std::vector<double> crowded = spread({0.5, 0.5, 0.5}, 5.0, 0.0, 1.0);
  CHECK(crowded[0] == Approx(0.0).margin(1e-12));
  CHECK(crowded[1] == Approx(0.5));
  CHECK(crowded[2] == Approx(1.0));
}

TEST_CASE("A result has one cell per predicted column, plain numbers whose unit is in the column's name") {
  const std::vector<std::string> cells = predicted_cells(large_step());
  REQUIRE(cells.size() == predicted_columns().size());
  CHECK(predicted_columns().front() == "predicted.step_time_s");
  CHECK(cells.front() == "44");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_number = cells[i].find_first_not_of("0123456789.e+-") == std::string::npos;
    CHECK(is_number == (kind_of_column(predicted_columns()[i]) == CellKind::number || cells[i].empty()));
  }
  CHECK(predicted_columns().back() == "predicted.error");
  CHECK(cells.back().empty());
  CHECK(failed_cells("why").back() == "why");
  CHECK(failed_cells("why").size() == cells.size());
}

TEST_CASE("The magnitude of a cell is its number in base units") {
  CHECK(magnitude("40 MB") == 4e7);
  CHECK(magnitude("100 Gbit/s") == 12.5e9);
  CHECK(magnitude("2 ms") == 2e-3);
  CHECK(magnitude("16") == 16.0);
  CHECK_FALSE(magnitude("ring"));
}

}  // namespace foretrain::test
