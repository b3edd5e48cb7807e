// The texts of an SVG and the room that they take, so that tests see what is cut off or covered.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "reports/figure/axis.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain::test {

struct PictureText {
  std::string text;
  double font = 0.0;
  Box box;  ///< pixels from the upper left corner: `low` is above
};

struct PictureTexts {
  double width = 0.0, height = 0.0;
  std::vector<PictureText> texts;
};

inline PictureTexts texts_of(const std::string& svg) {
  PictureTexts all;
  std::smatch size;
  if (std::regex_search(svg, size, std::regex(R"(viewBox="0 0 (\d+) (\d+)\")"))) {
    all.width = std::stod(size[1]);
    all.height = std::stod(size[2]);
  }
  const std::regex text(
      R"re(translate\(([-\d.]+),([-\d.]+)\)( rotate\([-\d.]+\))?"[^>]*font-size="([\d.]+)"\s*text-anchor="(\w+)"[^>]*>\s*<text>([^<]*)</text>)re");
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), text); at != std::sregex_iterator(); ++at) {
    const std::smatch& found = *at;
    const double x = std::stod(found[1]), y = std::stod(found[2]), font = std::stod(found[4]);
    // Letters of ordinary texts are a little narrower than the room that is set aside for them.
    const double long_side = 0.9 * text_width(found[6].str(), static_cast<int>(font));
    const double share = found[5] == "start" ? 0.0 : found[5] == "middle" ? 0.5 : 1.0;
    const bool upright = found[3].matched;
    const double before = share * long_side, behind = (1.0 - share) * long_side;
    const Box box = upright ? Box{x - 0.75 * font, x + 0.1 * font, y - behind, y + before}
                            : Box{x - before, x + behind, y - 0.75 * font, y + 0.1 * font};
    if (!found[6].str().empty()) all.texts.push_back({found[6], font, box});
  }
  return all;
}

/// Defects of the picture's texts; empty if all are whole, apart and of ten pixels or more.
inline std::string illegible(const std::string& svg) {
  const PictureTexts all = texts_of(svg);
  std::string wrong;
  for (std::size_t i = 0; i < all.texts.size(); ++i) {
    const auto& [text, font, box] = all.texts[i];
    if (font < 10.0) wrong += "too small: " + text + "\n";
    if (box.left < 0.0 || box.low < 0.0 || box.right > all.width || box.high > all.height)
      wrong += "cut: " + text + "\n";
    for (std::size_t j = 0; j < i; ++j) {
      const Box& other = all.texts[j].box;
      const bool apart =
          box.right <= other.left || other.right <= box.left || box.high <= other.low || other.high <= box.low;
      if (!apart) wrong += "one over the other: " + text + " | " + all.texts[j].text + "\n";
    }
  }
  return wrong;
}

}  // namespace foretrain::test
