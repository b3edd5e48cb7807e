#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/base/format.hpp"
#include "reports/studies/memory_report.hpp"

namespace foretrain {

namespace {

constexpr int plot_width = 700, plot_height = 380;  // pixels
constexpr double gb = 1e9;

// In the order of MemoryPart.
constexpr std::array<std::string_view, memory_part_count> colors = {"#0072B2", "#56B4E9", "#1B3A57", "#E69F00",
                                                                    "#F0E442", "#D9A7C7", "#D55E00", "#009E73",
                                                                    "#7FBF9F", "#4D4D4D", "#BDBDBD"};

/// From the bottom up: what stays comes first.
constexpr std::array<MemoryPart, memory_part_count> stacked = {
    MemoryPart::weights,       MemoryPart::gradients, MemoryPart::optimizer,   MemoryPart::context,
    MemoryPart::communication, MemoryPart::gathered,  MemoryPart::activations, MemoryPart::recomputed,
    MemoryPart::temporaries,   MemoryPart::loss,      MemoryPart::allocator};

/// Passes in a row of the same kind and micro-batch.
struct PassRun {
  std::size_t first, last;
  MemoryTimeline::Phase phase;
  int micro_batch;
};

std::vector<PassRun> pass_runs_of(const std::vector<MemoryTimeline::Moment>& moments) {
  std::vector<PassRun> runs;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const MemoryTimeline::Moment& m = moments[i];
    const MemoryTimeline::Phase phase =
        m.phase == MemoryTimeline::Phase::loss ? MemoryTimeline::Phase::forward : m.phase;
    if (!runs.empty() && runs.back().phase == phase && runs.back().micro_batch == m.micro_batch) {
      runs.back().last = i;
    } else {
      runs.push_back({i, i, phase, m.micro_batch});
    }
  }
  return runs;
}

/// Lines between passes and, where there is room, what each is.
void add_passes(Panel& panel, const std::vector<MemoryTimeline::Moment>& moments) {
  const std::vector<PassRun> runs = pass_runs_of(moments);
  const double pixels = static_cast<double>(plot_width) / static_cast<double>(moments.size());
  for (const PassRun& s : runs) {
    if (s.phase == MemoryTimeline::Phase::optimizer) continue;
    const double width = pixels * static_cast<double>(s.last - s.first + 1);
    const std::string label =
        runs.size() <= 24 && width > 90.0
            ? fmt::format("{} {}", name(s.phase), s.micro_batch + 1)
            : fmt::format("{}{}", s.phase == MemoryTimeline::Phase::backward ? "B" : "F", s.micro_batch + 1);
    if (width <= text_width(label, panel.x.font)) continue;
    panel.x.tics.push_back({(static_cast<double>(s.first) + static_cast<double>(s.last)) / 2.0, label});
    if (s.first == 0) continue;
    panel.levels.push_back({.at = static_cast<double>(s.first) - 0.5, .vertical = true, .colour = "#d0d0d0"});
  }
}

/// One area for each part that takes room somewhere, the uppermost first, as the legend names them.
void add_areas(Panel& panel, const std::vector<MemoryTimeline::Moment>& moments) {
  std::vector<double> below(moments.size());
  for (const MemoryPart part : stacked) {
    const auto p = static_cast<std::size_t>(part);
    Series area{.name = std::string(name(part)), .colour = colors.at(p), .joined = true};
    bool used = false;
    for (std::size_t i = 0; i < moments.size(); ++i) {
      const double size = moments[i].parts.size.at(p).value() / gb, at = static_cast<double>(i);
      area.boxes.push_back({at - 0.5, at + 0.5, below[i], below[i] + size});
      below[i] += size;
      used = used || size > 0.0;
    }
    if (used) panel.series.insert(panel.series.begin(), std::move(area));
  }
}

}  // namespace

Figure to_figure(const MemoryReport& report) {
  const MemoryTimeline& timeline = report.timeline;
  const std::vector<MemoryTimeline::Moment>& moments = timeline.moments;
  const Bytes peak = moments[timeline.peak].parts.total();
  Panel panel{.title = report.scenario, .width = plot_width, .height = plot_height};
  panel.x.low = -0.5;
  panel.x.high = static_cast<double>(moments.size()) - 0.5;
  panel.x.font = 11;
  panel.x.name = fmt::format("step of pipeline stage {}, layer by layer", timeline.stage + 1);
  if (timeline.shown < timeline.micro_batches) {
    panel.x.name += fmt::format(", {} of {} micro-batches", timeline.shown, timeline.micro_batches);
  }
  panel.y = {.name = "memory (GB)", .high = std::max(timeline.capacity, peak).value() / gb * 1.12, .grid = true};
  add_passes(panel, moments);
  add_areas(panel, moments);
  panel.levels.push_back({.at = timeline.capacity.value() / gb,
                          .name = fmt::format("{}: {}", report.gpu, format_bytes(timeline.capacity)),
                          .colour = "#B00020",
                          .width = 2.0,
                          .dashed = false});
  const Point at{static_cast<double>(timeline.peak), peak.value() / gb};
  const bool late = at.x > 0.5 * panel.x.high;
  panel.series.push_back({.colour = "#222222", .points = {at}, .dot = Dot::circle, .dot_size = 0.7});
  panel.labels.push_back({.text = "peak " + format_bytes(peak),
                          .x = at.x,
                          .y = at.y,
                          .pin = late ? Pin::right : Pin::left,
                          .right = late ? -8 : 8,
                          .up = 10});
  return {.panels = {std::move(panel)}, .legend = Legend::beside};
}

}  // namespace foretrain
