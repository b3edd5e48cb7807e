#include "model/base/text.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("The nearest word is a likely slip, not any word") {
  const std::vector<std::string> words = {"data", "tensor", "pipeline", "zero"};
  // a letter missing, one too many, another one, two neighbours swapped, capitals
  for (const char* slip : {"tensr", "tensoor", "tenzor", "tesnor", "Tensor"}) {
    CHECK(nearest_word(slip, words) == "tensor");
  }
  CHECK(nearest_word("pipline", words) == "pipeline");
  CHECK_FALSE(nearest_word("colour", words).has_value());
  CHECK(did_you_mean(nearest_word("tensr", words), "one of them") == "did you mean tensor?");
  CHECK(did_you_mean(nearest_word("colour", words), "one of them") == "one of them");
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

TEST_CASE("A shell reads words back as they were") {
  CHECK(shell_word("plan.tensor=8") == "plan.tensor=8");
  CHECK(shell_word("/a/b-1.yaml") == "/a/b-1.yaml");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("two words") == "'two words'");
  CHECK(shell_word("$(rm x)") == "'$(rm x)'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("plain") == "'plain'");
}

TEST_CASE("A name is near a word by a third of its letters, and by one of few") {
  CHECK(nearest_word("abcdef", {"abcdxy"}) == "abcdxy");  // two of six
  CHECK_FALSE(nearest_word("abcdef", {"abcxyz"}));
  CHECK(nearest_word("ab", {"ax"}) == "ax");  // one of two
  CHECK_FALSE(nearest_word("ab", {"xy"}));
  CHECK(nearest_word("abcdef", {"abcdxy", "abcdey"}) == "abcdey");
}
