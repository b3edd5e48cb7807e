#include "validate/measure/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "model/base/error.hpp"
#include "validate/measure/json_object.hpp"

namespace foretrain {

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
  file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const bool cut = file_.open() && ftruncate(file_.number(), static_cast<off_t>(text.size())) == 0;
  if (!cut || lseek(file_.number(), 0, SEEK_END) < 0) throw_system_error(path_);
}

bool Journal::has(const std::string& name) const {
  const auto found = points_.find(name);
  return found != points_.end() && found->second.status != RecordStatus::failed;
}

std::size_t Journal::count(RecordStatus status) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(points_, [&](const auto& point) { return point.second.status == status; }));
}

std::map<std::string, std::string> Journal::failed() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, point] : points_) {
    if (point.status == RecordStatus::failed) out[name] = point.note;
  }
  return out;
}

void Journal::note_line(const std::string& line) {
  const std::string name = json_text_field(line, "name");
  const RecordStatus status = status_of(json_text_field(line, "status")).value_or(RecordStatus::measured);
  if (status == RecordStatus::failed && has(name)) return;  // a failure takes away nothing that is known
  points_[name] = {status, json_text_field(line, "note")};
}

void Journal::append(const Record& record) {
  const std::string line = to_json_line(record);
  if (!write_all(file_.number(), line) || fsync(file_.number()) != 0) throw_system_error(path_);
  note_line(line);
}

}  // namespace foretrain
