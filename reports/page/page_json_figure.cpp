// Figures as JSON, and those of answers that are JSON themselves.
#include <algorithm>
#include <cmath>

#include "model/base/words.hpp"
#include "reports/figure/plot.hpp"
#include "reports/page/page_json.hpp"
#include "reports/result/json.hpp"

namespace foretrain {

namespace {

PageJson axis_json(const Axis& axis) {
  PageJson json = {{"name", axis.name}, {"logarithmic", axis.logarithmic}, {"unit", axis.unit}};
  if (axis.low != axis.high) json["range"] = {axis.low, axis.high};
  for (const Tic& tic : axis.tics) json["tics"].push_back({tic.at, tic.label});
  return json;
}

PageJson series_json(const Series& series) {
  PageJson json = {{"name", series.name.empty() ? series.table_name : series.name}, {"colour", series.colour}};
  json["measured"] = series.measured;
  json["line"] = series.line;
  json["dashed"] = series.dashed;
  json["dots"] = series.dot != Dot::none;
  const auto what = [&](std::size_t i) { return i < series.what.size() ? series.what[i] : std::string(); };
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const Point& point = series.points[i];
    const PageJson y = std::isfinite(point.y) ? PageJson(point.y) : PageJson(nullptr);
    json["points"].push_back({{"at", {point.x, y}}, {"size", point.size}, {"what", what(i)}});
  }
  for (std::size_t i = 0; i < series.boxes.size(); ++i) {
    const Box& box = series.boxes[i];
    json["boxes"].push_back({{"at", {box.left, box.right, box.low, box.high}}, {"what", what(i)}});
  }
  return json;
}

PageJson panel_json(const Panel& panel) {
  PageJson json = {{"title", panel.title},       {"subtitle", panel.subtitle},  {"width", panel.width},
                   {"height", panel.height},     {"rows", panel.rows},          {"x", axis_json(panel.x)},
                   {"y", axis_json(panel.y)},    {"series", PageJson::array()}, {"levels", PageJson::array()},
                   {"labels", PageJson::array()}};
  for (const Series& series : panel.series) {
    if (!series.points.empty() || !series.boxes.empty()) json["series"].push_back(series_json(series));
  }
  for (const Level& level : panel.levels) {
    json["levels"].push_back({{"at", level.at}, {"name", level.name}, {"vertical", level.vertical}});
  }
  for (const Label& label : panel.labels) {
    json["labels"].push_back({{"text", label.text}, {"at", {label.x, label.y}}, {"room", label.room}});
  }
  return json;
}

Seconds seconds_in(const PageJson& json, const char* key) { return Seconds(json.at(key).get<double>()); }

MemoryTimeline::Moment moment_of(const PageJson& json) {
  MemoryTimeline::Moment moment;
  moment.phase = value_of<MemoryTimeline::Phase>(json.at("phase").get<std::string>()).value();
  moment.micro_batch = json.value("micro_batch", -1);
  for (std::size_t part = 0; part < memory_part_count; ++part) {
    moment.parts.size.at(part) = Bytes(json.at("bytes").at(memory_part_keys.at(part)).get<double>());
  }
  return moment;
}

/// Null where there are no bars.
PageJson bars_json(const CurveChart& chart) {
  return chart.labels.empty() ? PageJson(nullptr) : figure_json({.panels = {to_bars(chart, 380)}});
}

}  // namespace

PageJson figure_json(const Figure& figure) {
  PageJson json = PageJson::array();
  for (const Panel& panel : figure.panels) json.push_back(panel_json(panel));
  return json;
}

PageJson result_figures(const PageJson& result) {
  PageJson figures = PageJson::object();
  if (!result.contains("breakdown_s")) return figures;
  const Result read = result_from_json(result.dump());
  if (read.train() == nullptr) return figures;
  figures["breakdown"] = figure_json(to_figure(std::vector<BreakdownBar>{{read.scenario, read.train()->breakdown}}));
  CurveChart communication{.curves = {{"total", {}}, {"exposed", {}}}};
  const PageJson transfers = result.value("communication_s", PageJson::object());
  for (const auto& [name, time] : transfers.items()) {
    communication.labels.push_back(name);
    communication.curves[0].values.push_back(time.at("total"));
    communication.curves[1].values.push_back(time.at("exposed"));
  }
  communication.scale = time_scale(span_of(communication.curves, 1).high);
  figures["communication"] = bars_json(communication);
  CurveChart memory{.scale = {"memory (GB)", 1e9}, .curves = {{"memory", {}}}};
  for (const auto& [kind, size] : result.at("memory_per_gpu_bytes").items()) {
    const bool is_kind = kind != "headroom" && !kind.starts_with("host");
    if (!is_kind || !size.is_number() || size.get<double>() <= 0.0) continue;
    memory.labels.push_back(kind);
    memory.curves[0].values.push_back(size);
  }
  figures["memory"] = bars_json(memory);
  return figures;
}

PageJson explanation_figures(const PageJson& explanation) {
  PageJson figures = PageJson::object();
  const PageJson& unchanged = explanation.contains("what_ifs") ? explanation.at("what_ifs") : explanation;
  if (!unchanged.contains("time_s")) return figures;
  Explanation read;
  read.result.scenario = explanation.value("scenario", "");
  read.result.work.emplace<OperatorResult>().time = seconds_in(unchanged, "time_s");
  for (const PageJson& one : explanation.at("sensitivities")) {
    read.sensitivities.push_back(
        {one.at("resource"), seconds_in(one, "faster_s"), seconds_in(one, "slower_s"), one.at("share")});
  }
  const Figure tornado = to_figure(read);
  if (!tornado.panels.front().y.tics.empty()) figures["sensitivities"] = figure_json(tornado);
  constexpr double worth_drawing = 0.005;
  CurveChart remedies{.scale = {"change of the speed (%)", 0.01}, .curves = {{"speed", {}}}};
  for (const PageJson& one : explanation.at("remedies")) {
    if (!one.contains("speedup") || std::abs(one.at("speedup").get<double>() - 1.0) < worth_drawing) continue;
    const bool fits = one.value("fits", true);
    remedies.labels.push_back(one.at("change").get<std::string>() + (fits ? "" : " (does not fit)"));
    remedies.curves[0].values.push_back(one.at("speedup").get<double>() - 1.0);
  }
  figures["remedies"] = bars_json(remedies);
  return figures;
}

PageJson memory_figures(const PageJson& memory) {
  MemoryReport report;
  report.scenario = memory.value("scenario", "");
  report.gpu = "capacity";
  MemoryTimeline& timeline = report.timeline;
  timeline.capacity = Bytes(memory.at("memory_per_gpu_bytes").at("capacity").get<double>());
  timeline.stage = memory.value("stage", 0);
  timeline.micro_batches = memory.value("micro_batches", 0);
  timeline.shown = memory.value("micro_batches_shown", 0);
  for (const PageJson& moment : memory.at("timeline")) timeline.moments.push_back(moment_of(moment));
  if (timeline.moments.empty()) return PageJson::object();
  const auto total = [](const MemoryTimeline::Moment& moment) { return moment.parts.total(); };
  const auto fullest = std::ranges::max_element(timeline.moments, {}, total);
  timeline.peak = static_cast<std::size_t>(fullest - timeline.moments.begin());
  return {{"memory_over_step", figure_json(to_figure(report))}};
}

PageJson accuracy_figure(const PageJson& accuracy) {
  AccuracyReport report;
  for (const PageJson& one : accuracy.at("cases")) {
    report.cases.push_back({.name = one.at("case"),
                            .group = one.at("group"),
                            .quantity = one.at("quantity"),
                            .measured = one.at("measured"),
                            .predicted = one.at("predicted")});
  }
  return figure_json(to_figure(report));
}

}  // namespace foretrain
