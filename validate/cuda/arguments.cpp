#include "validate/cuda/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace foretrain::gpu {

namespace {

bool among(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Arguments::Arguments(const std::vector<std::string>& words, const Grammar& grammar) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || words[i].front() != '-') {
      if (!grammar.files) throw UsageError(words[i] + ": nothing is expected here");
      files_.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    std::string option = words[i].substr(0, equals);
    if (option == "-o") option = "--output";
    if (among(grammar.flags, option)) {
      if (equals != std::string::npos) throw UsageError(option + " takes no value");
      options_[option];
    } else if (among(grammar.values, option)) {
      if (equals == std::string::npos && i + 1 == words.size()) throw UsageError(words[i] + " needs a value");
      options_[option].push_back(equals == std::string::npos ? words[++i] : words[i].substr(equals + 1));
    } else {
      std::string known;
      for (const auto& list : {grammar.flags, grammar.values}) {
        for (const std::string& one : list) known += (known.empty() ? "" : ", ") + one;
      }
      throw UsageError(option + ": no such option; there are " + known);
    }
  }
}

std::vector<std::string> Arguments::all(const std::string& option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::vector<std::string>() : found->second;
}

std::string Arguments::text(const std::string& option) const {
  const std::vector<std::string> values = all(option);
  if (values.empty() || values.back().empty()) throw UsageError(option + " is missing");
  return values.back();
}

int Arguments::integer(const std::string& option, int fallback, int least) const {
  if (!has(option)) return fallback;
  const std::string word = text(option);
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < least) {
    throw UsageError(option + " " + word + ": a whole number of at least " + std::to_string(least) + " is expected");
  }
  return value;
}

std::vector<std::string> split_list(const std::string& option, const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    if (part.empty()) throw UsageError(option + " " + list + ": an empty name between commas");
    parts.push_back(part);
  }
  if (parts.empty()) throw UsageError(option + ": at least one name is expected");
  return parts;
}

}  // namespace foretrain::gpu
