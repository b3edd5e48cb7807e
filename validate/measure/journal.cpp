#include "validate/measure/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace foretrain {

namespace {

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

/// The text of a field that to_json_line() wrote; JSON's escapes stay as they are, on both sides of every comparison.
std::string field_of(const std::string& line, const std::string& key) {
  const std::string head = "\"" + key + "\":\"";
  const std::size_t start = line.find(head);
  if (start == std::string::npos) return "";
  std::size_t end = start + head.size();
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  return line.substr(start + head.size(), end - start - head.size());
}

std::string escaped(const std::string& name) {
  const std::string quoted = json_quoted(name);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

Journal::Journal(std::string path) : path_(std::move(path)) {
  std::string text;
  if (std::ifstream in(path_, std::ios::binary); in) {
    std::ostringstream all;
    all << in.rdbuf();
    text = all.str();
  }
  const std::size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) note_line(line);
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(text.size())) != 0 || lseek(file_, 0, SEEK_END) < 0) fail(path_);
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

bool Journal::has(const std::string& name) const { return done_.count(escaped(name)) != 0; }

void Journal::note_line(const std::string& line) {
  const std::string name = field_of(line, "name");
  if (field_of(line, "status") == "failed") {
    if (done_.count(name) == 0) failed_.insert(name);
  } else {
    done_.insert(name);
    failed_.erase(name);
  }
}

void Journal::append(const Record& record) {
  const std::string line = to_json_line(record);
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t n = write(file_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_);
    written += static_cast<std::size_t>(n);
  }
  if (fsync(file_) != 0) fail(path_);
  note_line(line);
}

}  // namespace foretrain
