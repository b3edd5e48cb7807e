// A panel without axes, drawn in pixels from its upper left corner: boxes with labels, lines by the kind of what they
// stand for. Lines lie below boxes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/figure/figure.hpp"

namespace foretrain {

/// A place in pixels.
struct Spot {
  double x = 0.0, y = 0.0;
};

class Sketch {
 public:
  static constexpr int font = 10;
  static constexpr double box_height = 22.0, edge = 4.0;  ///< of a box of one line; left free above and below a drawing

  /// A box of this kind (its colour); its label is left out
  /// where it does not fit, after its number alone was tried. Whether the label stands whole.
  bool box(std::string_view kind, Spot corner, double width, double height, const std::string& label);
  /// Names the boxes of a kind in the legend.
  void name_boxes(std::string_view kind, const std::string& name);
  /// A line of the series of this name.
  void line(const std::string& series, const std::vector<Spot>& spots);
  /// Half an ellipse from one place to another of the same height, so high; above the line between them, or below.
  void arc(const std::string& series, Spot from, double to, double height, bool above);
  void text(Spot at, const std::string& text, Pin pin);

  [[nodiscard]] Panel panel(int width, int height) &&;

 private:
  Series& boxes_of(std::string_view kind);
  std::vector<Series> lines_, boxes_;  ///< boxes by colour
  std::vector<Label> labels_;
};

}  // namespace foretrain
