#include "reports/figure/plot_goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

double by_formula(const TrainResult& train, int every) {
  const TrainResult::Goodput& goodput = *train.goodput;
  return daly_goodput(every * train.step_time, goodput.blocked, goodput.recovery, goodput.mtbf);
}

Panel panel_of(const Result& result) {
  const TrainResult& train = *result.train();
  const IntervalSearch& search = *train.goodput->intervals;
  Panel panel{.title = result.scenario, .width = 420, .height = 280};
  panel.x = {.name = "steps between checkpoints", .logarithmic = true};
  double lowest = 100.0;
  Series simulated{.name = "simulated", .line = 2.0, .dot = Dot::own};
  Series formula{.name = "Daly's formula", .line = 1.5, .dashed = true};
  for (const IntervalChoice& tried : search.tried) {
    const auto every = static_cast<double>(tried.every);
    simulated.points.push_back({every, tried.goodput * 100.0});
    lowest = std::min(lowest, simulated.points.back().y);
    if (!search.daly) continue;
    formula.points.push_back({every, by_formula(train, tried.every) * 100.0});
    lowest = std::min(lowest, formula.points.back().y);
  }
  panel.y = {.name = "steps that last, share of the time (%)",
             .low = std::floor(lowest / 10.0) * 10.0,
             .high = 100.0,
             .grid = true};
  panel.series = {std::move(simulated)};
  if (search.daly) panel.series.push_back(std::move(formula));
  const auto mark = [&](const char* whose, const IntervalChoice& choice, int up) {
    const auto every = static_cast<double>(choice.every);
    panel.series.push_back(
        {.colour = "#333333", .points = {{every, choice.goodput * 100.0}}, .dot = Dot::ring, .dot_size = 1.4});
    panel.labels.push_back({.text = fmt::format("{}: {}", whose, grouped(std::to_string(choice.every))),
                            .x = every,
                            .y = choice.goodput * 100.0,
                            .up = up});
  };
  mark("best", search.best, -22);
  if (search.daly && search.daly->every != search.best.every) mark("Daly", *search.daly, -38);
  return panel;
}

}  // namespace

std::string to_text(const GoodputFigure& figure) {
  std::string text;
  for (const Result& result : figure.trainings) {
    const TrainResult& train = *result.train();
    TextTable table("rrrr", {"steps", "worked between", "simulated", "Daly's formula"});
    for (const IntervalChoice& tried : train.goodput->intervals->tried) {
      table.add_row({std::to_string(tried.every), format_seconds(tried.every * train.step_time),
                     format_percent(tried.goodput),
                     train.goodput->intervals->daly ? format_percent(by_formula(train, tried.every)) : "-"});
    }
    text += fmt::format("{}{}: goodput by interval between checkpoints\n\n{}", text.empty() ? "" : "\n",
                        result.scenario, table.text(page_indent));
  }
  return text;
}

Figure to_figure(const GoodputFigure& figure) {
  Figure picture{.columns = 2, .legend = Legend::shared};
  for (const Result& result : figure.trainings) picture.panels.push_back(panel_of(result));
  return picture;
}

}  // namespace foretrain
