#include "model/base/files.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "model/base/error.hpp"
#include "model/base/session.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;

namespace {

std::string read_complaint(const std::filesystem::path& path) {
  return test::complaint_of([&] { read_text_file(path); });
}

}  // namespace

TEST_CASE("A written file reads back, without byte order mark, and is replaced whole, the longest name too") {
  const TemporaryFolder folder;
  for (const std::string& name : {std::string("a.txt"), std::string(255, 'a')}) {
    const auto path = folder.path() / name;
    for (const char* content : {"grün, and longer\n", "new"}) {
      write_file(path, content);
      CHECK(read_text_file(path) == content);
    }
  }
  CHECK(read_text_file(folder.write("bom.txt", "\xEF\xBB\xBFx")) == "x");
  CHECK(folder.entries() == 3);  // no temporary file left
}

TEST_CASE("A file gets the usual permissions, and keeps those that it has") {
  const TemporaryFolder folder;
  const auto permissions_after_writing = [&](const char* name) {
    write_file(folder.path() / name, "new");
    return static_cast<mode_t>(std::filesystem::status(folder.path() / name).permissions());
  };
  const mode_t mask = ::umask(0);
  ::umask(mask);
  CHECK(permissions_after_writing("a.txt") == (0666 & ~mask));
  REQUIRE(::chmod(folder.write("secret.txt", "old").c_str(), 0600) == 0);
  CHECK(permissions_after_writing("secret.txt") == 0600);
}

TEST_CASE("A full disk is an error, not a crash") {
  if (!std::filesystem::exists("/dev/full")) return;
  CHECK(test::complaint_of<UsageError>([] {
          write_file("/dev/full", "text");
        }).starts_with("/dev/full: cannot write: No space left on device"));
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

TEST_CASE("Other bytes than text, control characters, surrogates and overlong forms are refused with their place") {
  const TemporaryFolder folder;
  // line 2: "b" in column 1, "ü" (two bytes, one character) in column 2, the zero byte in column 3
  const auto binary = folder.write("binary.yaml", std::string("a\nb\u00fc\0c", 7));
  CHECK(read_complaint(binary) ==
        binary.string() + ":2:3: byte 0x00 is no text; a text file in UTF-8, not a binary file");
  const std::pair<const char*, const char*> bad[] = {{"a: gr\xFCn", ":1:6: byte 0xfc"},
                                                     {"a\xE2\x82", ":1:2: byte 0xe2"},
                                                     {"a: x\x1B[31m", ":1:5: byte 0x1b"},
                                                     {"a: x\xED\xA0\x80", ":1:5: byte 0xed"},
                                                     {"a: x\xC0\xAF", ":1:5: byte 0xc0"}};
  for (const auto& [text, place] : bad) {
    CHECK(read_complaint(folder.write("bad.yaml", text)).find(std::string(place) + " is no text") != std::string::npos);
  }
}

TEST_CASE("Missing, unreadable, huge files and folders are refused") {
  const TemporaryFolder folder;
  CHECK(read_complaint(folder.path() / "none.yaml").find("No such file") != std::string::npos);
  CHECK(read_complaint(folder.path()).find("is a directory") != std::string::npos);
  CHECK(read_complaint("/dev/zero").find("is a device") != std::string::npos);
  CHECK(read_complaint(folder.write("huge.txt", std::string(16'000'001, ' '))).find("is larger than 16 MB") !=
        std::string::npos);
  const auto five = folder.write("a.txt", "12345");
  CHECK(read_text_file(five, 5) == "12345");
  CHECK_THROWS_AS(read_text_file(five, 4), ScenarioError);
  if (::geteuid() != 0) {
    const auto secret = folder.write("secret.yaml", "a: b");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    CHECK(read_complaint(secret).find("Permission denied") != std::string::npos);
  }
}

TEST_CASE("A wrong value of a page's length is identified by its ends") {
  const ScenarioError error({"a.yaml", 1, 1}, "plan.tensor", std::string(100'000, 'x'), "an integer");
  const std::string text = error.what();
  CHECK(text.size() < 600);
  CHECK(text.starts_with("a.yaml:1:1: plan.tensor: xxx"));
  CHECK(text.ends_with("xxx; an integer"));
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

TEST_CASE("A process that is killed while it writes leaves the old file") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.txt", "old");
  const pid_t writer = fork();
  if (writer == 0) {
    int pieces = 0;
    write_file(path, [&]() -> std::string_view {
      if (++pieces == 3) raise(SIGKILL);
      return "new";
    });
  }
  waitpid(writer, nullptr, 0);
  CHECK(read_text_file(path) == "old");
}

TEST_CASE("A file of the user's that is named like a temporary one stays as it is") {
  const TemporaryFolder folder;
  const auto path = folder.write("out.json", "old");
  // what a program might call its temporary file: by its process, which is 1 in a container, or by what it is
  for (const std::string& ending : {fmt::format(".{}", ::getpid()), std::string(".1"), std::string(".tmp"),
                                    std::string(".partial"), std::string("~"), std::string(".XXXXXX")}) {
    const auto own = folder.write("out.json" + ending, "the user's");
    write_file(path, "new");
    CHECK(read_text_file(own) == "the user's");
  }
  CHECK(read_text_file(path) == "new");
  CHECK(folder.entries() == 7);
}

TEST_CASE("A pipe that nobody writes to, and files of the kernel that say nothing, keep no reader waiting") {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_complaint(pipe).find("is a pipe; a regular file, or - for what is piped") != std::string::npos);
  // /proc/kmsg has a size of 0, and no end.
  if (::geteuid() == 0) CHECK(read_complaint("/proc/kmsg") != "accepted");
}

TEST_CASE("What is piped in is read by the name -, and not waited for without end") {
  const auto read_in_child = [](std::string_view said, bool closes) {
    Pipe in, out;
    const pid_t reader = fork();
    if (reader == 0) {
      ::dup2(in.reader.number(), STDIN_FILENO);
      in.writer.close();
      std::string result;
      try {
        const Session own;
        result = read_file("-", {.bytes = 10, .silence = std::chrono::milliseconds(200)});
        result += read_file("-", {.bytes = 10, .silence = std::chrono::milliseconds(200)});  // what is known of it
      } catch (const ScenarioError& error) {
        result = error.what();
      }
      [[maybe_unused]] const auto ignored = ::write(out.writer.number(), result.data(), result.size());
      ::_exit(0);
    }
    REQUIRE(::write(in.writer.number(), said.data(), said.size()) == static_cast<ssize_t>(said.size()));
    if (closes) in.writer.close();
    out.writer.close();
    std::string result(500, '\0');
    result.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(out.reader.number(), result.data(), 500))));
    waitpid(reader, nullptr, 0);
    return result;
  };
  CHECK(read_in_child("a: b", true) == "a: ba: b");
  CHECK(read_in_child("a: b", false).find("-: gives nothing to read") == 0);
  CHECK(read_in_child("a: b and more", true).find("-: is larger than") == 0);
}

TEST_CASE("Names of files hold no control characters") {
  const TemporaryFolder folder;
  for (const char* name : {"a\nb", "a\rb", "a\tb", "a\x1b[31mb", "a\x7f", "a\u202Eb"}) {
    CHECK_THROWS_AS(write_file(folder.path() / name, "x"), UsageError);
    CHECK_THROWS_AS(read_text_file(folder.path() / name), UsageError);
  }
  CHECK(folder.entries() == 0);
  write_file(folder.path() / "gr\xFCn", "x");  // a name of other days, in Latin-1
  CHECK(read_text_file(folder.path() / "gr\xFCn") == "x");
}
