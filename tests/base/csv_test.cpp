#include "model/base/csv.hpp"

#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

std::string complaint(std::string_view text) {
  return test::complaint_of([&] { parse_csv(text, "t.csv"); });
}

}  // namespace

TEST_CASE("Cells, quotes, line ends and positions") {
  const CsvTable table = parse_csv("case,source\r\na,\"x, \"\"y\"\"\nz\"\n\nü,last", "t.csv");
  REQUIRE(table.header.size() == 2);
  REQUIRE(table.rows.size() == 2);  // the blank line is none
  CHECK(table.rows[0][1].text == "x, \"y\"\nz");
  CHECK(table.rows[0][1].where.line == 2);
  CHECK(table.rows[0][1].where.column == 3);
  CHECK(table.rows[1][0].where.line == 5);    // the quoted cell held one line end, then came a blank line
  CHECK(table.rows[1][1].where.column == 3);  // ü is one character
  CHECK(table.rows[1][1].text == "last");
}

TEST_CASE("Broken tables are refused with the place") {
  CHECK(complaint("") == "t.csv: the table is empty; a header line and rows below it");
  CHECK(complaint("\n\n").find("the table is empty") != std::string::npos);
  CHECK(complaint("a,b\n1\n").find("t.csv:2:1: this row has 1 cells, the header 2") == 0);
  CHECK(complaint("a,b\n1,2,3\n").find("t.csv:2:1: this row has 3 cells, the header 2") == 0);
  CHECK(complaint("a,b\n1,\"open\n").find("t.csv:2:3: this quote is never closed") == 0);
  CHECK(complaint("a,b\n\"x\"y,2\n").find("t.csv:2:4: text behind a closing quote") == 0);
  CHECK(complaint("a,a\n").find("t.csv:1:3: a: this column appears twice") == 0);
  CHECK(complaint("a,,b\n").find("t.csv:1:3: a column without name") == 0);
  CHECK(complaint("a,b\n1\r2,3\n").find("t.csv:2:2: a carriage return inside a line") == 0);
}

TEST_CASE("What is written reads back") {
  const std::vector<std::string> cells = {"plain", "with, comma", "with \"quotes\"", "two\nlines", ""};
  const CsvTable table = parse_csv("a,b,c,d,e\n" + csv_line(cells) + "\n", "t.csv");
  REQUIRE(table.rows.size() == 1);
  for (std::size_t i = 0; i < cells.size(); ++i) CHECK(table.rows[0][i].text == cells[i]);
  CHECK(csv_line({"a", "b c"}) == "a,b c");
  CHECK(csv_line({""}) == "\"\"");  // a bare empty line would read as no row
}

TEST_CASE("No spreadsheet takes a text for a formula, and the text reads back as it was") {
  CHECK(csv_line({"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx"}) ==
        "'=1+1,'+cmd|' /C calc'!A0,'-2+3,'@SUM(A1),'\tx");
  CHECK(csv_line({"\rx", "-", "-inf"}) == "\"'\rx\",'-,'-inf");
  CHECK(csv_line({"-2.5", "+3", "-1e-06", "-.5", "a=b", "'quoted'"}) == "-2.5,+3,-1e-06,-.5,a=b,'quoted'");
  const std::vector<std::string> cells = {"=1",  "'=1",   "''=1", "'",   "''", "'x", "-1",
                                          "'-1", "-1 GB", "\t",   "'\r", "=",  "@"};
  const CsvTable table = parse_csv("a,b,c,d,e,f,g,h,i,j,k,l,m\n" + csv_line(cells) + "\n", "t.csv");
  REQUIRE(table.rows.size() == 1);
  for (std::size_t i = 0; i < cells.size(); ++i) CHECK(table.rows[0][i].text == cells[i]);
}

TEST_CASE("A table of commas alone costs no memory") {
  CHECK(complaint(std::string(15'000'000, ',')).find("more than 10000 cells in one row") != std::string::npos);
  std::string narrow = "a,b\n";
  for (int row = 0; row < 2'000'001; ++row) narrow += ",\n";
  CHECK(complaint(narrow).find("t.csv:2000002:1: more than 4000000 cells; several smaller tables") == 0);
}
