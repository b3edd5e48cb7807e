#include "model/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "model/base/error.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

std::string read_complaint(const std::filesystem::path& path) {
  try {
    read_text_file(path);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("A written file reads back, without byte order mark") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file(path, "grün\n");
  CHECK(read_text_file(path) == "grün\n");
  CHECK(read_text_file(folder.write("bom.txt", "\xEF\xBB\xBFx")) == "x");
  CHECK(folder.entries() == 2);  // no temporary file left
}

TEST_CASE("A file is replaced whole and gets the usual permissions") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.txt", "a long old content");
  write_file(path, "new");
  CHECK(read_text_file(path) == "new");
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  CHECK((status.st_mode & 0777) == (0666 & ~mask));
}

TEST_CASE("A full disk is an error, not a crash") {
  if (!std::filesystem::exists("/dev/full")) return;
  try {
    write_file("/dev/full", "text");
    FAIL("nothing was thrown");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()).find("/dev/full: cannot write: No space left on device") == 0);
  }
}

TEST_CASE("Writing where one cannot leaves nothing behind") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(write_file(folder.path() / "missing" / "a.txt", "x"), UsageError);
  CHECK_THROWS_AS(write_file(folder.path(), "x"), UsageError);  // a directory
  CHECK(folder.entries() == 0);
  if (::geteuid() != 0) {  // root may write everywhere
    std::filesystem::permissions(folder.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THROWS_AS(write_file(folder.path() / "a.txt", "x"), UsageError);
    CHECK(folder.entries() == 0);
  }
}

TEST_CASE("Files that cannot be text are refused with the place") {
  const TemporaryFolder folder;
  // line 2: "b" in column 1, "ü" (two bytes, one character) in column 2, the zero byte in column 3
  const auto binary = folder.write("binary.yaml", std::string("a\nb\u00fc\0c", 7));
  CHECK(read_complaint(binary) ==
        binary.string() + ":2:3: byte 0x00 is no text; a text file in UTF-8, not a binary file");
  const auto latin = folder.write("latin.yaml", "a: gr\xFCn");
  CHECK(read_complaint(latin).find(":1:6: byte 0xfc is no text") != std::string::npos);
  const auto cut = folder.write("cut.yaml", "a\xE2\x82");
  CHECK(read_complaint(cut).find(":1:2: byte 0xe2") != std::string::npos);
}

TEST_CASE("Missing, unreadable, huge files and folders are refused") {
  const TemporaryFolder folder;
  CHECK(read_complaint(folder.path() / "none.yaml").find("No such file") != std::string::npos);
  CHECK(read_complaint(folder.path()).find("is a directory") != std::string::npos);
  CHECK(read_complaint("/dev/zero").find("is larger than 16 MB") != std::string::npos);
  if (::geteuid() != 0) {
    const auto secret = folder.write("secret.yaml", "a: b");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    CHECK(read_complaint(secret).find("Permission denied") != std::string::npos);
  }
}

TEST_CASE("The size limit is exact") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.txt", "12345");
  CHECK(read_text_file(path, 5) == "12345");
  CHECK_THROWS_AS(read_text_file(path, 4), ScenarioError);
}

TEST_CASE("Control characters, surrogates and overlong forms are refused where text comes in") {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> bad[] = {
      {"\x1B[31m", "0x1b"}, {"\xED\xA0\x80", "0xed"}, {"\xC0\xAF", "0xc0"}, {"\xF4\x90\x80\x80", "0xf4"}};
  for (const auto& [text, byte] : bad) {
    const auto file = folder.write("bad.yaml", std::string("a: x") + text);
    CHECK(read_complaint(file).find(std::string(":1:5: byte ") + byte + " is no text") != std::string::npos);
  }
}

TEST_CASE("What is replaced keeps its permissions") {
  const TemporaryFolder folder;
  const auto path = folder.write("secret.txt", "old");
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  write_file(path, "new");
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("A wrong value of a page's length is told by its ends") {
  const ScenarioError error({"a.yaml", 1, 1}, "plan.tensor", std::string(100'000, 'x'), "a whole number");
  const std::string text = error.what();
  CHECK(text.size() < 600);
  CHECK(text.starts_with("a.yaml:1:1: plan.tensor: xxx"));
  CHECK(text.ends_with("xxx; a whole number"));
}

TEST_CASE("A folder for a while is gone with its owner, also one that was killed") {
  const TemporaryFolder folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  const pid_t owner = fork();
  if (owner == 0) {
    const ScratchFolder scratch;
    write_file(scratch.path() + "/a.txt", "left behind");
    raise(SIGKILL);
  }
  waitpid(owner, nullptr, 0);
  CHECK(folder.entries() == 1);
  {
    const ScratchFolder first;
    write_file(first.path() + "/a.txt", "in use");
    const ScratchFolder second;
    CHECK(folder.entries() == 2);  // what lives is left alone
    CHECK(read_text_file(first.path() + "/a.txt") == "in use");
  }
  CHECK(folder.entries() == 0);
  unsetenv("TMPDIR");
}

TEST_CASE("A process that is killed while it writes leaves the old file, and nothing beside it") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.txt", "old");
  const int nameless = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (nameless < 0) return;  // this file system has no files without a name
  ::close(nameless);
  const pid_t writer = fork();
  if (writer == 0) {
    int pieces = 0;
    write_file(path, [&]() -> std::string_view {
      if (++pieces == 3) raise(SIGKILL);
      return "new";
    });
  }
  waitpid(writer, nullptr, 0);
  CHECK(folder.entries() == 1);
  CHECK(read_text_file(path) == "old");
}
