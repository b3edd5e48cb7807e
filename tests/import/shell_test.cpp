// Scripts of shells: which options they give, with which values, and where these stand.
#include "reports/import/settings.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// "--a=1@1:5 --b=2@1:11"
std::string settings_of(const std::string& script) {
  std::string words;
  for (const ForeignSetting& s : shell_arguments(script, "f")) {
    words += fmt::format("{}{}={}@{}:{}", words.empty() ? "" : " ", s.key, s.value, s.where.line, s.where.column);
  }
  return words;
}

std::string value_of(const std::string& script) { return shell_arguments(script, "f").back().value; }

/// A random term of whole numbers beside its value, as C computes it; nothing where it divides by zero.
struct Term {
  std::string text;
  std::optional<long> value;
};

Term random_term(std::mt19937& chance, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(chance() % static_cast<unsigned>(n)); };
  if (depth == 0 || pick(4) == 0) {
    const int number = pick(20);
    return {std::to_string(number), number};
  }
  const Term a = random_term(chance, depth - 1), b = random_term(chance, depth - 1);
  const char sign = "+-*/%"[pick(5)];
  const std::string gap = pick(2) == 0 ? " " : "";
  Term term{"(" + gap + a.text + gap + sign + gap + b.text + ")" + gap, std::nullopt};
  if (!a.value || !b.value || ((sign == '/' || sign == '%') && *b.value == 0)) return term;
  const long x = *a.value, y = *b.value;
  term.value = sign == '+' ? x + y : sign == '-' ? x - y : sign == '*' ? x * y : sign == '/' ? x / y : x % y;
  return term;
}

}  // namespace

TEST_CASE("arithmetic of shells is that of C, wherever it can be computed") {
  std::mt19937 chance(3);
  int computed = 0;
  for (int i = 0; i < 500; ++i) {
    const Term term = random_term(chance, 4);
    INFO(term.text);
    const std::string written = "$((" + term.text + "))";
    CHECK(value_of("run --b " + written) == (term.value ? std::to_string(*term.value) : written));
    computed += term.value ? 1 : 0;
  }
  CHECK(computed > 250);
}

TEST_CASE("arithmetic knows variables, the order of signs and its limits") {
  CHECK(value_of("N=6; run --b $((2 + N * $N - ${N} % 4))") == "36");
  CHECK(value_of("run --b $((10 - 4 - 3))") == "3");
  CHECK(value_of("run --b $((100 / 7 / 2))") == "7");
  CHECK(value_of("run --b $((5--3 + -1))") == "7");
  CHECK(value_of("run --b $((1000000 * 1000000000 / 1000))") == "1000000000000");
  // Expressions beyond 64 bits, without a value, or without integer arithmetic stay as they are.
  for (const char* wrong : {"$((9223372036854775807 + 1))", "$(())", "$((2 +))", "$((2 3))", "$((${N))", "$((M + 1))",
                            "$((2 ^ 3))", "$((1.5))", "$((4 % 0))", "$((1 / 0))", "$((1 /* 2))"}) {
    INFO(wrong);
    CHECK(value_of(std::string("N=1; run --b ") + wrong) == wrong);
  }
}

TEST_CASE("options have places, and the values that stand beside them") {
  CHECK(settings_of("run --a 1 --b=2\n  --c\n--d 'x y' z") == R"(--a=1@1:5 --b=2@1:11 --c=@2:3 --d=x y@3:1)");
  CHECK(settings_of("run --a \\\n 1 \\\r\n --b \"2 \\\" $A\" 3; --c | --d && --e 5)") ==
        R"(--a=1@1:5 --b=2 " $A@3:2 --c=@3:19 --d=@3:25 --e=5@3:32)");
  CHECK(settings_of("#SBATCH --nodes=4 --x y # --z\n#SBATCH\n# SBATCH --n 3\n --a # 1\n1") ==
        R"(#SBATCH --nodes=4@1:1 #SBATCH --x=y@1:1 --a=@4:2)");
  CHECK(settings_of("ARGS=(\n --a 1\n  --b 2 # --c 3\n)\n") == R"(--a=1@2:2 --b=2@3:3)");
  CHECK(settings_of("A='--a 1\n  --b 2'\nrun $A --c 3") == R"(--a=1@1:4 --b=2@2:3 --c=3@3:8)");
  CHECK(settings_of("N=2; bash -c 'run --a $N --b \"3 4\"' --x") == R"(--a=2@1:19 --b=3@1:26 --x=@1:37)");
  CHECK(settings_of("--a") == "--a=@1:1");
}

TEST_CASE("variables are put in where they are known, with defaults where they are not") {
  CHECK(value_of("A=1; A=2; run --b $A") == "2");
  CHECK(value_of("A=1; run --b '$A'") == "$A");
  CHECK(value_of("A=1; run --b \"x${A}y$A\"z") == "x1y1z");
  CHECK(value_of("run --b ${A:=7}") == "7");
  CHECK(value_of("A=1; run --b ${A:-7}") == "1");
  CHECK(value_of("run --b ${A-7}") == "${A-7}");
  CHECK(value_of("run --b ${A:-'x'}") == "x");
  CHECK(value_of("run --b ${A:-\"}") == "\"");
  CHECK(value_of("run --b ${A:-'x\"}") == "'x\"");
  CHECK(value_of("run --b ${A:-}") == "");
  CHECK(value_of("run --b ${A") == "${A");
  CHECK(value_of("run --b $(date)") == "$(date)");
  CHECK(value_of("run --b $(date") == "$(date");
  CHECK(value_of("1A=3; run --b $1A") == "$1A");
  CHECK(value_of("A_1=3; run --b $A_1") == "3");
  CHECK(value_of("run --b a\\ b\\$c") == "a b$c");
}

TEST_CASE("quotes must close, and words grow to 100,000 characters") {
  CHECK_THROWS_WITH(shell_arguments("run --b 'x", "f"), Catch::Contains("f:1:9: a quote that is not closed"));
  std::string doubled = "A=0123456789";
  for (int i = 0; i < 20; ++i) doubled += "; A=$A$A";
  CHECK_THROWS_WITH(shell_arguments(doubled, "f"), Catch::Contains("100,000 characters"));
  const std::string longest(100'000, 'x');
  CHECK(value_of("run --b '" + longest + "'").size() == 100'000);
  CHECK_THROWS_WITH(shell_arguments("run --b '" + longest + "xx'", "f"), Catch::Contains("100,000 characters"));
}

TEST_CASE("a backslash takes the next character as it is, the last of all as well") {
  CHECK(value_of("run --b x\\y") == "xy");
  CHECK(value_of("run --b x\\ y") == "x y");
  CHECK(value_of("run --b x\\") == "x\\");
  CHECK(value_of("run --b \"x\\\"y\"") == "x\"y");
  CHECK_THROWS_WITH(value_of("run --b \"x\\\""), Catch::Contains("a quote that is not closed"));
  CHECK_THROWS_WITH(value_of("run --b \"x\\"), Catch::Contains("a quote that is not closed"));
}

TEST_CASE("brackets close within ten thousand characters, or nothing is put in") {
  // From the bracket behind "$" on: four characters beside the blanks, or beside the default.
  const auto sum = [](std::size_t blanks) { return value_of("run --b $((1" + std::string(blanks, ' ') + "))"); };
  CHECK(sum(9'995) == "1");
  CHECK(sum(9'996) != "1");
  const auto usual = [](std::size_t letters) {
    return value_of("run --b ${N:-" + std::string(letters, 'x') + "}").size();
  };
  CHECK(usual(9'995) == 9'995);
  CHECK(usual(9'996) != 9'996);
}
