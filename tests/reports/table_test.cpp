#include "reports/print/table.hpp"

#include "model/base/text.hpp"
#include "reports/result/csv.hpp"
#include "tests/catch.hpp"

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

TEST_CASE("A cell that is set in stays so in all its lines") {
  // Of 80 columns numbers of 24, 24 and 4 digits and three gaps leave 22: two blanks and 20.
  TextTable table("lrrr");
  const std::string digits(24, '1');
  table.add_row({"whole", digits, digits, "1234"});
  table.add_row({"  a part of it kept in words", "2", "3", "4"});
  const std::vector<std::string> lines = split(table.text(0), '\n');
  CHECK(lines[1].starts_with("  a part of it kept in   "));
  CHECK(lines[2] == "  words");
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

TEST_CASE("The magnitude of a cell is its number in base units") {
  CHECK(magnitude("40 MB") == 4e7);
  CHECK(magnitude("100 Gbit/s") == 12.5e9);
  CHECK(magnitude("2 ms") == 2e-3);
  CHECK(magnitude("16") == 16.0);
  CHECK_FALSE(magnitude("ring"));
}

}  // namespace foretrain::test
