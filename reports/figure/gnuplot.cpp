#include "reports/figure/gnuplot.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"

namespace foretrain {

std::string gnuplot_string(std::string_view text) {
  // Signs that mean something between double quotes stand as their number in octal digits; between single quotes two
  // apostrophes in a row cannot be written.
  constexpr std::string_view with_meaning = "\"\\`'";
  std::string quoted = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const char first = text[at];
    if (length == 0) {
      const bool control = static_cast<unsigned char>(first) < 0x80;
      quoted += control ? " " : "\uFFFD";
    } else if (first == '\t' || first == '\n' || first == '\r') {
      quoted += ' ';
    } else if (with_meaning.find(first) != std::string_view::npos) {
      quoted += fmt::format("\\{:03o}", first);
    } else {
      quoted += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return quoted + "\"";
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

/// Without the time at which it was drawn: the same figure gives the same bytes. Cairo from 1.18 on (Debian 13) packs
/// that time into a compressed stream, where it stays.
std::string without_date(std::string pdf) {
  static constexpr std::string_view key = "/CreationDate (D:", none = "19700101000000";
  const std::size_t at = pdf.find(key);
  if (at != std::string::npos) pdf.replace(at + key.size(), none.size(), none);
  return pdf;
}

}  // namespace

std::optional<PictureFormat> picture_format(std::string_view path) {
  static constexpr std::array<std::string_view, 3> ends = {".svg", ".png", ".pdf"};  // in the order of PictureFormat
  const std::string end = std::filesystem::path(path).extension().string();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (end == ends.at(i)) return static_cast<PictureFormat>(i);
  }
  return std::nullopt;
}

std::string terminal_script(PictureFormat format, int width, int height, double pixels_per_inch) {
  constexpr std::string_view rest = "noenhanced font 'DejaVu Sans,13' background '#ffffff'";
  const bool print = pixels_per_inch != screen_pixels_per_inch;
  const int dots = print ? 5 : 2;                                 // of a pixel
  const double scale = screen_pixels_per_inch / pixels_per_inch;  // of a pixel to one of screens
  switch (format) {
    case PictureFormat::png:  // gnuplot counts its font's size in points, 72 an inch
      return fmt::format(
          "set terminal pngcairo size {},{} fontscale {:.4g} linewidth {} pointscale {:.4g} dashlength {} {}\n",
          dots * width, dots * height, 0.75 * dots, dots, 1.3 * dots, print ? 1 : 2, rest);
    case PictureFormat::pdf:
      return fmt::format(
          "set terminal pdfcairo size {:.4f}in,{:.4f}in fontscale {:.6g} linewidth {:.4g} pointscale {:.4g} {}\n",
          width / pixels_per_inch, height / pixels_per_inch, 0.5625 * scale, 1.7 * scale, scale, rest);
    case PictureFormat::svg:
      break;
  }
  return fmt::format(
      "set terminal svg size {},{} dynamic noenhanced font 'DejaVu Sans,Arial,Helvetica,sans-serif,13' background "
      "'#ffffff'\n",
      width, height);
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
  if (result.output.starts_with("%PDF")) return without_date(std::move(result.output));
  if (!result.output.starts_with("<?xml")) return std::move(result.output);
  std::string svg = without_titles(std::move(result.output));
  boost::replace_all(svg, "]]>", "]]&gt;");  // gnuplot writes it as it is, and XML takes it for the end of a section
  return svg;
}

}  // namespace foretrain
