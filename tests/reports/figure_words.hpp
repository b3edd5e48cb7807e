// A figure in words, all of it: what a picture shows, without a renderer's pixels.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "reports/figure/figure.hpp"

namespace foretrain::test {

inline std::string quoted(const std::string& text) { return "<" + text + ">"; }

/// In lines of at most 110 characters, broken between words.
inline std::string folded(const std::string& line) {
  constexpr std::size_t most = 110;
  if (line.size() <= most) return line + "\n";
  const std::size_t end = line.rfind(' ', most);
  return line.substr(0, end) + "\n" + folded("     " + line.substr(end));
}

inline std::string axis_words(const Axis& axis) {
  std::string words = quoted(axis.name);
  if (axis.logarithmic) words += " log";
  if (axis.low != axis.high) words += fmt::format(" {:.6g}..{:.6g}", axis.low, axis.high);
  if (!axis.unit.empty()) words += " in " + axis.unit;
  if (axis.font != Axis{}.font) words += fmt::format(" font {}", axis.font);
  if (axis.grid) words += " grid";
  for (const Tic& tic : axis.tics)
    words += fmt::format("{}{:.6g}={}", &tic == axis.tics.data() ? ": " : " ", tic.at, tic.label);
  return words;
}

inline std::string series_words(const Series& series) {
  static constexpr std::array dots = {"none",  "own",     "circle", "square", "triangle",
                                      "wedge", "diamond", "ring",   "frame"};
  std::string words = quoted(series.name);
  if (!series.table_name.empty()) words += " reported " + quoted(series.table_name);
  if (series.at_end) words += " ends in " + quoted(series.value);
  if (!series.colour.empty()) words += " " + std::string(series.colour);
  if (series.line > 0.0) words += fmt::format(" line {:.3g}{}", series.line, series.dashed ? " dashed" : "");
  if (series.dot != Dot::none)
    words += fmt::format(" dot {} {:.3g}", dots.at(static_cast<std::size_t>(series.dot)), series.dot_size);
  if (series.joined) words += " joined";
  if (series.measured) words += " measured";
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const Point& point = series.points[i];
    words += fmt::format(" ({:.6g}, {:.6g}{})", point.x, point.y,
                         point.size == 1.0 ? "" : fmt::format("; {:.4g}", point.size));
    if (i < series.ranges.size()) words += fmt::format("[{:.6g}..{:.6g}]", series.ranges[i].low, series.ranges[i].high);
  }
  for (std::size_t i = 0; i < series.boxes.size(); ++i) {
    const Box& box = series.boxes[i];
    words += fmt::format(" [{:.6g}..{:.6g} x {:.6g}..{:.6g}]", box.left, box.right, box.low, box.high);
    if (series.points.empty() && i < series.ranges.size())
      words += fmt::format("[{:.6g}..{:.6g}]", series.ranges[i].low, series.ranges[i].high);
  }
  return words;
}

inline std::string label_words(const Label& label) {
  static constexpr std::array pins = {"left", "middle", "right"};
  std::string words = fmt::format("{} at ({:.6g}, {:.6g}) {}", quoted(label.text), label.x, label.y,
                                  pins.at(static_cast<std::size_t>(label.pin)));
  if (label.right != 0 || label.up != 0) words += fmt::format(" {:+},{:+}", label.right, label.up);
  if (label.colour != Label{}.colour) words += " " + std::string(label.colour);
  if (label.font != Label{}.font) words += fmt::format(" font {}", label.font);
  if (label.room > 0.0) words += fmt::format(" room {:.6g}", label.room);
  if (label.free) words += " free";
  return words;
}

inline std::string panel_words(const Panel& panel) {
  std::string words =
      fmt::format("panel {}, {}: {} x {}{}{}{}{}\n", quoted(panel.title), quoted(panel.subtitle), panel.width,
                  panel.height, panel.rows ? " rows" : "", panel.frame ? " frame" : "", panel.bare ? " bare" : "",
                  panel.edge.empty() ? "" : " edge " + std::string(panel.edge));
  words += folded("  x " + axis_words(panel.x)) + folded("  y " + axis_words(panel.y));
  for (const Series& series : panel.series) words += folded("  series " + series_words(series));
  for (const Level& level : panel.levels) {
    words += fmt::format("  {} {} at {:.6g} {} {}{}\n", level.vertical ? "vertical" : "level", quoted(level.name),
                         level.at, level.colour, level.width, level.dashed ? " dashed" : "");
  }
  for (const Label& label : panel.labels) words += "  label " + label_words(label) + "\n";
  return words;
}

inline std::string figure_words(const Figure& figure) {
  static constexpr std::array legends = {"above", "beside", "shared"};
  std::string words =
      fmt::format("\nfigure {}, columns {}, legend {}\n", quoted(figure.title),
                  std::min<std::size_t>(figure.columns, 100), legends.at(static_cast<std::size_t>(figure.legend)));
  for (const Panel& panel : figure.panels) words += panel_words(panel);
  return words;
}

}  // namespace foretrain::test
