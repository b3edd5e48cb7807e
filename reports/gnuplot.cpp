#include "reports/gnuplot.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/process.hpp"

namespace foretrain {

std::string gnuplot_string(std::string_view text) {
  // Single quotes: neither backslashes nor `commands` have a meaning inside; a quote is written twice.
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += "''";
    else
      quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
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
