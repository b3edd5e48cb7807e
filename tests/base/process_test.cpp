// Programs as filters, and memory that copies of this process share.
#include "model/base/process.hpp"

#include <system_error>

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("A filter is fed all of its input, more than a pipe holds at once too") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  const FilterResult copied = run_filter({"cat"}, text);
  CHECK(copied.status == 0);
  CHECK(copied.output == text);
  CHECK(copied.errors.empty());
  CHECK(run_filter({"sh", "-c", "echo wrong >&2; exit 3"}, "").status == 3);
  CHECK(run_filter({"sh", "-c", "echo wrong >&2; exit 3"}, "").errors == "wrong\n");
  CHECK(run_filter({"sh", "-c", "kill -9 $$"}, "").status == 128 + 9);
  CHECK_THROWS_AS(run_filter({"no-program-of-this-name"}, ""), std::system_error);
}

TEST_CASE("What a copy of this process writes into shared memory is found there, to the last byte") {
  constexpr std::size_t count = 100'000;
  const SharedMemory memory(count * sizeof(double));
  const std::span<double> values = memory.as<double>(count);
  CHECK(values.back() == 0.0);
  CHECK(Process::copy([&] { values.back() = 7.0; }).wait().well());
  CHECK(values.back() == 7.0);
  CHECK(Process::copy([] { throw 1; }).wait().status == 1);
  CHECK(SharedMemory(0).as<char>(0).empty());
}
