// An append-only file of records that knows what it already holds: an interrupted run goes on where it was.
#pragma once

#include <map>
#include <string>

#include "model/base/descriptor.hpp"
#include "validate/measure/record.hpp"

namespace foretrain {

class Journal {
 public:
  /// Opens the file, or makes it. A last line without its end, from a run that was killed while it wrote, is cut off.
  /// Throws std::system_error naming the file when it cannot be read or written.
  explicit Journal(std::string path);

  /// Whether a point needs no further run: it was measured, or skipped for good. What failed is tried again.
  [[nodiscard]] bool has(const std::string& name) const;
  /// The line is on disk when this returns. Throws std::system_error.
  void append(const Record& record);
  /// Number of points with this status, each by its last line.
  [[nodiscard]] std::size_t count(RecordStatus status) const;
  [[nodiscard]] std::size_t failures() const { return count(RecordStatus::failed); }
  [[nodiscard]] std::size_t done() const { return points_.size() - failures(); }
  /// Names of the points that failed and were not measured since, with why.
  [[nodiscard]] std::map<std::string, std::string> failed() const;

 private:
  void note_line(const std::string& line);

  std::string path_;
  Descriptor file_;
  struct Point {
    RecordStatus status;
    std::string note;
  };
  std::map<std::string, Point> points_;  ///< by name
};

}  // namespace foretrain
