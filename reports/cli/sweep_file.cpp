#include "reports/cli/sweep_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/units.hpp"

namespace foretrain {

namespace {

namespace fs = std::filesystem;
using Rows = std::map<std::size_t, std::vector<std::string>>;

std::vector<std::string> texts(const CsvRow& row) {
  std::vector<std::string> cells;
  std::transform(row.begin(), row.end(), std::back_inserter(cells), [](const CsvCell& cell) { return cell.text; });
  return cells;
}

/// The rows of a partial file with this header; the last line counts only if its end was written. Nothing when the file
/// is missing or of another sweep.
Rows rows_of(const std::string& path, const std::vector<std::string>& header) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  text.erase(text.rfind('\n') + 1);
  if (text.empty()) return {};
  try {
    const CsvTable table = parse_csv(text, path);
    if (texts(table.header) != header) return {};
    Rows rows;
    for (const CsvRow& row : table.rows) {
      std::vector<std::string> cells = texts(row);
      const auto number = static_cast<std::size_t>(parse_number(cells.front()));
      cells.erase(cells.begin());
      rows[number] = std::move(cells);
    }
    return rows;
  } catch (const std::runtime_error&) {
    return {};  // damaged: every row is predicted again
  }
}

}  // namespace

SweepFile::SweepFile(const std::string& path, std::uint64_t fingerprint, std::vector<std::string> header)
    : path_(path), partial_(path + ".partial"), header_(std::move(header)) {
  std::vector<std::string> partial_header = {fmt::format("row of {:016x}", fingerprint)};
  partial_header.insert(partial_header.end(), header_.begin(), header_.end());
  rows_ = rows_of(partial_, partial_header);
  // Written again as a whole, which leaves an unfinished last line behind.
  out_.open(partial_, std::ios::binary | std::ios::trunc);
  append(partial_header);
  const Rows kept = std::exchange(rows_, {});
  for (const auto& [number, cells] : kept) add(number, cells);
}

void SweepFile::append(const std::vector<std::string>& cells) {
  out_ << csv_line(cells) << '\n' << std::flush;
  if (!out_) throw UsageError(partial_ + ": cannot be written; choose another place with -o");
}

void SweepFile::add(std::size_t number, std::vector<std::string> cells) {
  std::vector<std::string> line = {std::to_string(number)};
  line.insert(line.end(), cells.begin(), cells.end());
  append(line);
  rows_[number] = std::move(cells);
}

void SweepFile::finish() {
  std::string text = csv_line(header_) + "\n";
  for (const auto& [number, cells] : rows_) text += csv_line(cells) + "\n";
  write_file(path_, text);
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
