// Small files of other tools beside what becomes of them, in rows/*.txt. A row is
//   === IMPORTER [KEY=VALUE …] [| why]    what --set says
//   the file
//   --- VIEW [KEY …]                      one or more, each with
//   what it shows
// and ends with an empty line.
#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

struct View {
  std::vector<std::string> words;
  std::string expected;
};

struct Row {
  std::string importer, why, text;
  std::vector<std::string> overrides;
  std::vector<View> views;
};

std::vector<Row> rows_in(const std::filesystem::path& file) {
  std::vector<Row> rows;
  for (const std::string& line : split(read_text_file(file), '\n')) {
    if (line.starts_with("=== ")) {
      const std::size_t bar = std::min(line.find(" | "), line.size());
      std::vector<std::string> words = split_words(line.substr(4, bar - 4));
      rows.push_back({words.front(), line.substr(bar), "", {words.begin() + 1, words.end()}, {}});
    } else if (line.starts_with("--- ")) {
      rows.back().views.push_back({split_words(line.substr(4)), ""});
    } else if (rows.back().views.empty()) {
      rows.back().text += line + "\n";
    } else if (!line.empty()) {
      rows.back().views.back().expected += line + "\n";
    }
  }
  return rows;
}

/// The lines of a text of which this holds.
template <typename Wanted>
std::string lines_of(const std::string& text, Wanted wanted) {
  std::string lines;
  for (const std::string& line : split(text, '\n')) {
    if (wanted(line)) lines += line + "\n";
  }
  return lines;
}

bool is_assumed(const std::string& line) { return line.find("# assumed") != std::string::npos; }

/// Keys with values, without what is assumed.
std::string stated(const std::string& text) {
  const std::size_t begin = text.find("\nname: ") + 1;
  return lines_of(text.substr(begin, text.find("\nassumed:") - begin), [](const std::string& line) {
    if (line.empty() || line.starts_with("name: ") || line.ends_with(":")) return false;
    return line.starts_with("  nodes: ") || !is_assumed(line);
  });
}

/// The lines below a key at the margin, without what is assumed and without comments.
std::string part(const std::string& text, const std::string& key) {
  bool inside = false;
  std::string lines;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(" ")) inside = line == key + ":";
    if (inside && line.starts_with(" ") && !is_assumed(line)) lines += line.substr(0, line.find("  #")) + "\n";
  }
  return lines;
}

std::string shown(const View& view, const std::string& text) {
  const std::string& word = view.words.front();
  const std::vector<std::string> keys(view.words.begin() + 1, view.words.end());
  if (word == "stated") return stated(text);
  if (word == "wiring") return wiring_of(text).substr(1);
  if (word == "tasks") return lines_of(text, [](const std::string& line) { return line.find("- {") == 4; });
  if (word == "table") {  // without the last cell, which says where a row comes from
    std::string rows;
    for (const std::string& line : split(text.substr(text.find('\n') + 1), '\n')) {
      if (!line.empty()) rows += line.substr(0, line.rfind(",\"nccl-tests")) + "\n";
    }
    return rows;
  }
  std::string lines;
  for (const std::string& key : keys) {
    lines += word == "part" ? part(text, key)
                            : lines_of(text, [&](const std::string& line) { return line.starts_with(key + ": "); });
  }
  return lines;
}

void check_row(const Row& row) {
  std::string text, complaint;
  try {
    text = import_text(row.importer, row.text, row.overrides);
  } catch (const ScenarioError& error) {
    complaint = error.what();
  }
  for (const View& view : row.views) {
    const std::string& word = view.words.front();
    CHECK(complaint.empty() == (word != "refused"));
    if (word != "refused" && word != "has" && word != "lacks") {
      CHECK(shown(view, text) == view.expected);
      continue;
    }
    for (const std::string& line : split(std::string(trim(view.expected)), '\n')) {
      const bool there = (word == "refused" ? complaint : text).find(line) != std::string::npos;
      INFO(line << "\n" << complaint << text);
      CHECK(there == (word != "lacks"));
    }
  }
}

}  // namespace

TEST_CASE("small files become what stands beside them") {
  std::size_t rows = 0;
  for (const auto& file : std::filesystem::directory_iterator(FORETRAIN_SOURCE_DIR "/tests/import/rows")) {
    for (const Row& row : rows_in(file.path())) {
      INFO(file.path().filename().string() << ": " << row.importer << row.why << "\n" << row.text);
      CHECK_FALSE(row.views.empty());
      check_row(row);
      ++rows;
    }
  }
  CHECK(rows > 140);
}
