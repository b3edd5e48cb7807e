#include "validate/cuda/commands.hpp"

#include <getopt.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "model/base/error.hpp"

namespace foretrain::gpu {

namespace {

std::vector<std::string> names_between_commas(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    if (name.empty()) throw UsageError("--only " + text + ": an empty name between commas");
    names.push_back(name);
  }
  if (names.empty()) throw UsageError("--only: names of suites are missing");
  return names;
}

int seconds_in(const std::string& word) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && value >= 1) return value;
  throw UsageError(word + ": a limit is in whole seconds, at least 1");
}

}  // namespace

Options read_options(const std::vector<std::string>& words, const std::vector<const char*>& known, bool files) {
  std::vector<std::string> kept = words;
  std::vector<char*> arguments = {nullptr};
  for (std::string& word : kept) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<option> table;
  for (const char* name : known) {
    const bool flag = name == std::string("quick");
    table.push_back({name, flag ? no_argument : required_argument, nullptr, 0});
  }
  table.push_back({});
  Options options;
  opterr = 0;
  optind = 0;
  const int count = static_cast<int>(arguments.size()) - 1;
  int place = 0;
  const char* const letters = known.empty() ? "" : "o:";
  for (int found = 0; (found = getopt_long(count, arguments.data(), letters, table.data(), &place)) != -1;) {
    const std::string name = found == 'o' ? "output" : found == 0 ? table[static_cast<std::size_t>(place)].name : "";
    if (name == "output") options.folder = optarg;
    if (name == "quick") options.quick = true;
    if (name == "only") options.only = names_between_commas(optarg);
    if (name.ends_with("limit")) options.limit = seconds_in(optarg);
    if (name.empty()) {
      const auto before = static_cast<std::size_t>(optind) - 1;
      const std::string wrong = optopt != 0 ? std::string{'-', static_cast<char>(optopt)} : arguments[before];
      throw UsageError(wrong + ": no such option here, or not with this value; see foretrain-gpu --help");
    }
  }
  options.files.assign(arguments.begin() + optind, arguments.end() - 1);
  if (!files && !options.files.empty()) throw UsageError(options.files.front() + ": nothing is expected here");
  if (!known.empty() && options.folder.empty()) throw UsageError("a folder is missing: -o FOLDER");
  return options;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replace_file(const std::string& path, const std::string& text) {
  const std::string beside = path + ".part";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw std::system_error(errno, std::generic_category(), beside);
  std::filesystem::rename(beside, path);
}

}  // namespace foretrain::gpu
