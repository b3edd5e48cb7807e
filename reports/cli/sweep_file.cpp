#include "reports/cli/sweep_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/units.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_rows = 100'000'000;

/// Whether every quote in it is closed; else a record goes on in the next line.
bool is_whole(std::string_view record) { return std::ranges::count(record, '"') % 2 == 0; }

std::size_t cells_in(std::string_view record) {
  std::size_t cells = 1;
  bool quoted = false;
  for (const char c : record) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++cells;
  }
  return cells;
}

}  // namespace

SweepFile::SweepFile(const std::string& path, std::uint64_t fingerprint, std::vector<std::string> header)
    : path_(path), partial_(path + ".partial"), header_(std::move(header)) {
  std::vector<std::string> partial_header = {fmt::format("row of {:016x}", fingerprint)};
  partial_header.insert(partial_header.end(), header_.begin(), header_.end());
  end_ = continue_from(partial_header);
  if (end_ == 0) {
    places_.clear();
    rows_ = failed_ = 0;
    out_.open(partial_, std::ios::binary | std::ios::trunc);
    append(csv_line(partial_header));
  } else {
    fs::resize_file(partial_, end_);  // leaves an unfinished last line behind
    out_.open(partial_, std::ios::binary | std::ios::app);
  }
}

/// Notes the rows of a partial file with this header, up to the last line whose end was written, and says where that
/// is. 0 when the file is missing, of another sweep, or damaged: every row is then predicted again.
std::uint64_t SweepFile::continue_from(const std::vector<std::string>& partial_header) {
  std::ifstream file(partial_, std::ios::binary);
  std::string record, line;
  std::uint64_t begin = 0, at = 0;
  while (std::getline(file, line) && !file.eof()) {
    at += line.size() + 1;
    record += record.empty() ? line : "\n" + line;
    if (!is_whole(record)) continue;
    const bool known = begin == 0 ? record == csv_line(partial_header) : note_record(record, begin, header_.size());
    if (!known) return 0;
    begin = at;
    record.clear();
  }
  return begin;
}

bool SweepFile::note_record(const std::string& record, std::uint64_t offset, std::size_t columns) {
  const std::size_t comma = record.find(',');
  if (comma == std::string::npos || cells_in(record) != columns + 1) return false;
  try {
    const std::int64_t number = parse_integer(record.substr(0, comma), 0, most_rows);
    note_row(static_cast<std::size_t>(number), offset + comma + 1, std::string_view(record).substr(comma + 1));
    return true;
  } catch (const UnitError&) {
    return false;
  }
}

void SweepFile::note_row(std::size_t number, std::uint64_t offset, std::string_view cells) {
  if (number >= places_.size()) places_.resize(number + 1);
  if (has(number)) return;
  places_[number] = {offset, static_cast<std::uint32_t>(cells.size())};
  ++rows_;
  if (!cells.ends_with(',')) ++failed_;
}

void SweepFile::append(std::string_view line) {
  out_ << line << '\n' << std::flush;
  if (!out_) throw UsageError(partial_ + ": cannot be written; choose another place with -o");
  end_ += line.size() + 1;
}

void SweepFile::add(std::size_t number, std::string_view cells) {
  const std::string line = fmt::format("{},{}", number, cells);
  const std::uint64_t offset = end_ + (line.size() - cells.size());
  append(line);
  note_row(number, offset, cells);
}

void SweepFile::finish() {
  constexpr std::size_t piece_size = 1'000'000;
  std::ifstream rows(partial_, std::ios::binary);
  std::size_t number = 0;
  std::string piece = csv_line(header_) + "\n";
  bool first = true;
  write_file(path_, [&]() -> std::string_view {
    if (!std::exchange(first, false)) piece.clear();
    for (; number < places_.size() && piece.size() < piece_size; ++number) {
      if (!has(number)) continue;
      const std::size_t at = piece.size();
      piece.resize(at + places_[number].length + 1, '\n');
      rows.seekg(static_cast<std::streamoff>(places_[number].offset));
      rows.read(piece.data() + at, places_[number].length);
      if (!rows) throw UsageError(partial_ + ": cannot be read again");
    }
    return piece;
  });
  out_.close();
  fs::remove(partial_);
}

void Fingerprint::add(std::string_view piece) {
  hash_ = (fnv_1a(piece, hash_) ^ piece.size()) * fnv_1a_prime;  // so that "ab", "c" differs from "a", "bc"
}

void Fingerprint::add_folder(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) add(read_text_file(file));
}

void Fingerprint::add_identity(const std::string& file) {
  std::error_code unseen;
  add(std::to_string(fs::file_size(file, unseen)));
  const auto written = fs::last_write_time(file, unseen);
  if (!unseen) add(std::to_string(written.time_since_epoch().count()));
}

}  // namespace foretrain
