#include "model/base/seen_files.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace foretrain {

namespace {

/// Recent file checks of a session.
struct Looks {
  int views = 0;    ///< that are open
  SeenFiles known;  ///< since the outermost of them was opened
  int noting = 0;
  SeenFiles noted;
};

Looks& looks() { return session().part<Looks>(); }

FileState state_now(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return {};
  const auto ns = [](const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {found.st_dev, found.st_ino, found.st_mode, found.st_size, ns(found.st_mtim), ns(found.st_ctim)};
}

}  // namespace

bool FileState::is_regular() const { return S_ISREG(mode); }

FileState look_at(const std::string& path) {
  Looks& own = looks();
  FileState state;
  if (own.views == 0) {
    state = state_now(path);
  } else {
    const auto [known, is_new] = own.known.try_emplace(path);
    if (is_new) known->second = state_now(path);
    state = known->second;
  }
  if (own.noting > 0) own.noted.try_emplace(path, state);
  return state;
}

FileView::FileView() {
  if (looks().views++ == 0) looks().known.clear();
}

FileView::~FileView() { --looks().views; }

FileNotes::FileNotes() : before_(std::exchange(looks().noted, {})) { ++looks().noting; }

FileNotes::~FileNotes() {
  Looks& own = looks();
  own.noted.merge(before_);
  if (--own.noting == 0) own.noted.clear();
}

const SeenFiles& FileNotes::seen() const { return looks().noted; }

bool are_unchanged(const SeenFiles& files) {
  return std::ranges::all_of(files, [](const auto& file) { return look_at(file.first) == file.second; });
}

}  // namespace foretrain
