#include "model/base/text.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("The edit distance counts single slips") {
  CHECK(edit_distance("tensor", "tensor") == 0);
  CHECK(edit_distance("tensr", "tensor") == 1);    // a letter missing
  CHECK(edit_distance("tensoor", "tensor") == 1);  // one too many
  CHECK(edit_distance("tenzor", "tensor") == 1);   // another letter
  CHECK(edit_distance("tesnor", "tensor") == 1);   // two neighbours swapped
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("The nearest word is a likely slip, not any word") {
  const std::vector<std::string> words = {"data", "tensor", "pipeline", "zero"};
  CHECK(nearest_word("tensr", words) == "tensor");
  CHECK(nearest_word("Tensor", words) == "tensor");
  CHECK(nearest_word("pipline", words) == "pipeline");
  CHECK_FALSE(nearest_word("colour", words).has_value());
  CHECK_FALSE(nearest_word("x", {}).has_value());
}

TEST_CASE("Words are split, trimmed and listed") {
  CHECK(trim("  a b\r\n") == "a b");
  CHECK(trim(" \t ").empty());
  CHECK(split("a..b", '.') == std::vector<std::string>{"a", "", "b"});
  CHECK(split_words("  300  billion tokens ") == std::vector<std::string>{"300", "billion", "tokens"});
  CHECK(or_list({"a"}) == "a");
  CHECK(or_list({"a", "b", "c"}) == "a, b or c");
  CHECK(or_list({"a", "b", "c"}, 2) == "a, b, …");
  CHECK(to_lower("GBit") == "gbit");
}
