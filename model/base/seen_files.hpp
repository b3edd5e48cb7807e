// Which files a piece of work has looked at, and as what it found them: what was made of them holds as long as they are
// the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "model/base/session.hpp"

namespace foretrain {

/// State that changes with a file's content, or when another file takes its place. All zero without a file.
struct FileState {
  std::uint64_t device = 0, number = 0;
  std::uint32_t mode = 0;
  std::int64_t size = 0;
  std::int64_t modified = 0, changed = 0;  ///< ns

  [[nodiscard]] bool is_there() const { return mode != 0; }
  [[nodiscard]] bool is_regular() const;
  bool operator==(const FileState&) const = default;
};

/// The file as it is; within a FileView as it was when it was first looked at.
FileState look_at(const std::string& path);

/// While one lives, each file is looked at once: all that is read agrees, and the system is asked less.
class FileView {
 public:
  FileView();
  ~FileView();
  FileView(const FileView&) = delete;
  FileView& operator=(const FileView&) = delete;
};

using SeenFiles = std::map<std::string, FileState>;

/// Notes what this thread looks at from its beginning on. When it ends, that counts for the work around it, too.
class FileNotes {
 public:
  FileNotes();
  ~FileNotes();
  FileNotes(const FileNotes&) = delete;
  FileNotes& operator=(const FileNotes&) = delete;
  [[nodiscard]] const SeenFiles& seen() const;

 private:
  SeenFiles before_;
};

/// Looks at them again.
bool are_unchanged(const SeenFiles& files);

template <typename T>
struct MadeOfFiles {
  T value;
  SeenFiles files;
};

/// The session's value for the key, unless a file that it was made of has changed; else the value of `make`.
template <typename Key, typename Make>
Session::Pointer<Key> made_of_files(Key key, const Make& make) {
  if (auto known = session().find(key); known && are_unchanged(known->files)) return known;
  const FileNotes notes;
  auto value = make();
  return session().keep(std::move(key), {std::move(value), notes.seen()});
}

}  // namespace foretrain
