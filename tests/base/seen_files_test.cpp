#include "model/base/seen_files.hpp"

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Text {
  using Value = const MadeOfFiles<int>;
  int number = 0;
  bool operator==(const Text&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return 0; }
};

}  // namespace

TEST_CASE("What was made of files is made again when one of them changes, appears or goes") {
  const TemporaryFolder folder;
  const std::string there = folder.write("there", "1").string();
  const std::string missing = (folder.path() / "missing").string();
  int made = 0;
  const auto ask = [&] {
    return made_of_files(Text{},
                         [&] {
                           (void)look_at(there);
                           (void)look_at(missing);
                           return ++made;
                         })
        ->value;
  };
  CHECK(ask() == 1);
  CHECK(ask() == 1);
  // As long as before, and as old: another file of that name, as `cp --preserve` leaves it.
  const auto date = std::filesystem::last_write_time(there);
  std::filesystem::rename(folder.write("other", "2"), there);
  std::filesystem::last_write_time(there, date);
  CHECK(ask() == 2);
  folder.write("missing", "3");
  CHECK(ask() == 3);
  std::filesystem::remove(missing);
  CHECK(ask() == 4);
  CHECK(ask() == 4);
}

TEST_CASE("What is made of something made of a file is made of that file") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "1").string();
  int made = 0;
  const auto inner = [&] {
    return made_of_files(Text{1}, [&] { return look_at(file).is_there() ? ++made : 0; })->value;
  };
  const auto outer = [&] { return made_of_files(Text{2}, inner)->value; };
  CHECK(inner() == 1);
  CHECK(outer() == 1);  // of an inner one that is known already
  folder.write("file", "longer");
  CHECK(outer() == 2);
}

TEST_CASE("While a view lives, a file is what it was when it was first looked at") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "file").string();
  {
    const FileView view;
    CHECK_FALSE(look_at(file).is_there());
    folder.write("file", "1");
    const FileView inner;
    CHECK_FALSE(look_at(file).is_there());
  }
  CHECK(look_at(file).is_regular());
}
