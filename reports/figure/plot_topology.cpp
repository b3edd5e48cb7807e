#include "reports/figure/plot_topology.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

constexpr int screen_width = 760, margins_in_print = 2 * 28;

}  // namespace

Figure to_figure(const TopologyPicture& picture) {
  const int print = static_cast<int>(std::lround(picture.width_cm / 2.54 * print_pixels_per_inch));
  const int width = print > 0 ? std::max(print - margins_in_print, 60) : screen_width;
  Figure figure{.columns = 1};
  if (picture.cluster) {
    figure.panels.push_back(fabric_panel(*picture.cluster, width));
    figure.panels.back().title = picture.title;
  }
  figure.panels.push_back(node_panel(picture.node, picture.network, width));
  Panel& machine = figure.panels.back();
  machine.title = picture.cluster ? "each " + picture.node.name : picture.title;
  const std::string told = picture.node.description.empty() ? "" : picture.node.description + "; ";
  const int letters = width / text_width("x", 12);
  machine.subtitle = wrap(fmt::format("{}{} x {}; bandwidths of large copies in one direction", told, picture.node.gpus,
                                      picture.node.gpu.name),
                          letters, 0);
  return figure;
}

std::string to_text(const TopologyPicture& picture) {
  std::string text = picture.title + "\n";
  if (!picture.node.description.empty()) text += picture.node.description + "\n";
  if (picture.cluster) text += "\n" + fabric_text(*picture.cluster);
  return text + "\n" + wiring_text(picture.node, picture.network, 2);
}

}  // namespace foretrain
