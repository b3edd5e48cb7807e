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

TEST_CASE("Characters are as long as the Unicode standard says, and malformed ones have no length") {
  CHECK(character_length("a", 0) == 1);
  CHECK(character_length("\t\n\r", 1) == 1);
  CHECK(character_length("\u00FC", 0) == 2);
  CHECK(character_length("\u20AC", 0) == 3);
  CHECK(character_length("\U0001F600", 0) == 4);
  // The first and the last of each length, and of what surrogates and U+10FFFF cut off.
  CHECK(character_length("\xC2\xA0", 0) == 2);
  CHECK(character_length("\xE0\xA0\x80", 0) == 3);
  CHECK(character_length("\xED\x9F\xBF", 0) == 3);
  CHECK(character_length("\xEE\x80\x80", 0) == 3);
  CHECK(character_length("\xF0\x90\x80\x80", 0) == 4);
  CHECK(character_length("\xF4\x8F\xBF\xBD", 0) == 4);

  const char* const malformed[] = {
      "\x80",              // a continuation without a beginning
      "\xC0\xAF",          // "/" in two bytes
      "\xC1\xBF",          // the same
      "\xE0\x9F\xBF",      // U+07FF in three bytes
      "\xF0\x8F\xBF\xBF",  // U+FFFF in four
      "\xED\xA0\x80",      // the first surrogate
      "\xED\xBF\xBF",      // the last
      "\xF4\x90\x80\x80",  // U+110000
      "\xF5\x80\x80\x80",  // beyond
      "\xE2\x82",          // cut off
      "\xE2\x28\xA1",      // a letter where a continuation belongs
      "\xFF",
  };
  for (const char* const text : malformed) CHECK(character_length(text, 0) == 0);
}

TEST_CASE("Control characters are no text") {
  // ESC begins a terminal's commands; DEL; CSI in its one-character form; what XML calls no character
  for (const char* const text : {"\x1B", "\x07", "\x7F", "\xC2\x9B", "\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    CHECK(character_length(text, 0) == 0);
  }
  CHECK(character_length(std::string_view("\0", 1), 0) == 0);
  // U+202E and its like turn what follows round: "exe.txt" is shown of "txt.exe"
  for (const char* const text : {"\u202A", "\u202E", "\u2066", "\u2069"}) CHECK(character_length(text, 0) == 0);
  for (const char* const text : {"\u2029", "\u202F", "\u2065", "\u206A"}) CHECK(character_length(text, 0) == 3);
  CHECK(printable("a\u202Eb") == "a\\xe2\\x80\\xaeb");
}

TEST_CASE("What is shown on a terminal has its control characters and malformed bytes spelt out") {
  CHECK(printable("grün\n\tx") == "grün\n\tx");
  CHECK(printable("\x1B[2Jgone\r") == "\\x1b[2Jgone\\x0d");
  CHECK(printable("a\xFFz\xC0\xAF") == "a\\xffz\\xc0\\xaf");
}

TEST_CASE("A long text loses its middle, between characters") {
  CHECK(shortened("abc", 3) == "abc");
  // eight bytes: six of the beginning, two of the end
  CHECK(shortened("abcdefghijklmnop", 8) == "abcdef … op");
  // "ü" has two bytes: the sixth byte is within the third "ü"; the last but one begins the last
  CHECK(shortened("aüüüüüüüü", 8) == "aüü … ü");
}
