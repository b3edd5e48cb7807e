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

std::string gnuplot_preamble(int width, int height) {
  return fmt::format(R"(set encoding utf8
set terminal svg size {},{} dynamic noenhanced font 'DejaVu Sans,Arial,Helvetica,sans-serif,13' background '#ffffff'
set border 3 linecolor rgb '#4d4d4d'
set tics nomirror out scale 0.6 textcolor rgb '#333333'
set grid ytics linecolor rgb '#e4e4e4' linetype 1 linewidth 1
unset key
)",
                     width, height);
}

std::string gnuplot_margins(int picture_width, int picture_height, int left, int right, int top, int bottom) {
  const auto x = [&](int pixels) { return static_cast<double>(pixels) / picture_width; };
  const auto y = [&](int pixels) { return 1.0 - static_cast<double>(pixels) / picture_height; };
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset tmargin at screen {:.5f}\n"
      "set bmargin at screen {:.5f}\n",
      x(left), x(right), y(top), y(bottom));
}

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
