#include "validate/cuda/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace foretrain::gpu {

Arguments::Arguments(const Words& words, const Words& flags, const Words& values, bool files) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) {
      if (!files) throw UsageError(words[i] + ": nothing is expected here");
      files_.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    std::string option = words[i].substr(0, equals);
    if (option == "-o") option = "--output";
    if (std::ranges::find(flags, option) != flags.end()) {
      if (equals != std::string::npos) throw UsageError(option + " takes no value");
      options_[option];
    } else if (std::ranges::find(values, option) != values.end()) {
      if (equals == std::string::npos && i + 1 == words.size()) throw UsageError(words[i] + " needs a value");
      options_[option].push_back(equals == std::string::npos ? words[++i] : words[i].substr(equals + 1));
    } else {
      std::string known;
      for (const Words& list : {flags, values}) {
        for (const std::string& one : list) known += (known.empty() ? "" : ", ") + one;
      }
      throw UsageError(option + ": no such option; there are " + known);
    }
  }
}

Arguments::Words Arguments::all(const std::string& option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? Words() : found->second;
}

std::string Arguments::text(const std::string& option) const {
  const Words values = all(option);
  if (values.empty() || values.back().empty()) throw UsageError(option + " is missing");
  return values.back();
}

Arguments::Words Arguments::list(const std::string& option) const {
  Words parts;
  std::istringstream in(text(option));
  for (std::string part; std::getline(in, part, ',');) {
    if (part.empty()) throw UsageError(option + " " + in.str() + ": an empty name between commas");
    parts.push_back(part);
  }
  return parts;
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

}  // namespace foretrain::gpu
