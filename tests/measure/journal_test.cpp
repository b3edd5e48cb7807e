#include "validate/measure/journal.hpp"

#include <fstream>
#include <sstream>
#include <system_error>

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Record point(const std::string& name, RecordStatus status = RecordStatus::measured) {
  Record record;
  record.suite = "launch";
  record.name = name;
  record.unit = "s";
  record.status = status;
  if (status == RecordStatus::measured) record.values = {1.0};
  return record;
}

/// A file in a folder of its own.
class File {
 public:
  [[nodiscard]] std::string path() const { return (folder_.path() / "launch.jsonl").string(); }
  [[nodiscard]] std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path(), std::ios::binary).rdbuf();
    return all.str();
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("A journal knows what it holds, also when it is opened again", "[measure]") {
  const File file;
  {
    Journal journal(file.path());
    CHECK_FALSE(journal.has("a"));
    journal.append(point("a"));
    journal.append(point("b", RecordStatus::skipped));
    CHECK(journal.has("a"));
  }
  const Journal again(file.path());
  CHECK(again.has("a"));
  CHECK(again.has("b"));  // skipped for good
  CHECK_FALSE(again.has("c"));
  CHECK(again.count(RecordStatus::measured) == 1);
  CHECK(again.count(RecordStatus::skipped) == 1);
  CHECK(again.done() == 2);
  CHECK(file.text() == to_json_line(point("a")) + to_json_line(point("b", RecordStatus::skipped)));
}

TEST_CASE("What failed is tried again, and what was measured then counts", "[measure]") {
  const File file;
  Journal journal(file.path());
  Record broken = point("a", RecordStatus::failed);
  broken.note = "an \"error\"";
  journal.append(broken);
  CHECK_FALSE(journal.has("a"));
  CHECK(journal.failures() == 1);
  CHECK(journal.done() == 0);
  journal.append(point("b"));
  journal.append(point("c"));
  CHECK(journal.done() == 2);  // of three
  CHECK(journal.failed().at("a") == "an \"error\"");
  journal.append(point("a"));
  CHECK(journal.has("a"));
  CHECK(journal.failures() == 0);
  // A failure afterwards, from a run that did not look first, takes nothing away.
  journal.append(broken);
  CHECK(journal.has("a"));
  CHECK(Journal(file.path()).has("a"));
}

TEST_CASE("A line that a killed run left without its end is cut off", "[measure]") {
  const File file;
  const std::string whole = to_json_line(point("a"));
  const std::string torn = to_json_line(point("b"));
  std::ofstream(file.path(), std::ios::binary) << whole << torn.substr(0, torn.size() / 2);
  Journal journal(file.path());
  CHECK(journal.has("a"));
  CHECK_FALSE(journal.has("b"));
  journal.append(point("b"));
  CHECK(file.text() == whole + torn);
}

TEST_CASE("A file that is nothing but a torn line becomes an empty one", "[measure]") {
  const File file;
  std::ofstream(file.path(), std::ios::binary) << R"({"suite":"launch","name":"a")";
  CHECK(Journal(file.path()).done() == 0);
  CHECK(file.text().empty());
}

TEST_CASE("A journal that cannot be written is an error that names it", "[measure]") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "missing" / "launch.jsonl").string();
  CHECK_THROWS_WITH(Journal(path), Catch::Contains(path));
  CHECK_THROWS_AS(Journal(path), std::system_error);
}
