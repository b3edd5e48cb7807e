#include "reports/gnuplot.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "model/base/utf8.hpp"

namespace foretrain {

std::string gnuplot_string(std::string_view text) {
  // Single quotes: neither backslashes nor `commands` have a meaning inside; a quote is written twice.
  std::string quoted = "'";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0) {
      const bool control = static_cast<unsigned char>(text[at]) < 0x80;
      quoted += control ? " " : "\uFFFD";
    } else if (text[at] == '\'') {
      quoted += "''";
    } else {
      quoted +=
          text[at] == '\t' || text[at] == '\n' || text[at] == '\r' ? std::string_view(" ") : text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return quoted + "'";
}

namespace {

/// Without <title> elements: gnuplot puts its internal names there, and browsers show them under the pointer.
std::string without_titles(std::string svg) {
  static constexpr std::string_view begin = "<title>";
  static constexpr std::string_view end = "</title>";
  std::size_t from = 0;
  while ((from = svg.find(begin, from)) != std::string::npos) {
    const std::size_t to = svg.find(end, from);
    if (to == std::string::npos) break;
    svg.erase(from, to + end.size() - from);
  }
  return svg;
}

}  // namespace

std::string run_gnuplot(const std::string& script) {
  FilterResult result;
  try {
    // -d: the user's own settings would change the picture.
    result = run_filter({"gnuplot", "-d"}, script);
  } catch (const std::system_error& error) {
    throw UsageError(
        fmt::format("cannot draw: {}; install gnuplot (Debian, Ubuntu: apt-get install gnuplot-nox)", error.what()));
  }
  if (result.status != 0 || result.output.empty()) {
    throw std::runtime_error("gnuplot could not draw the picture: " + result.errors);
  }
  return without_titles(std::move(result.output));
}

}  // namespace foretrain
