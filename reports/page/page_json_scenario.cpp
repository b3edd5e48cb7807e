// What is told of one scenario.
#include <cctype>
#include <cmath>
#include <map>

#include "model/base/words.hpp"
#include "reports/page/page_json.hpp"

namespace foretrain {

namespace {

PageJson number_or_null(std::optional<double> number) { return number ? PageJson(*number) : PageJson(nullptr); }

/// The greatest rate of a GPU among the curves at the smallest number of GPUs: what scaling is held against.
double best_rate_per_gpu(const ScalingFigure& figure, double samples_per_gpu) {
  for (std::size_t i = 0; i < figure.gpus.size(); ++i) {
    double best = 0.0;
    for (const TimeCurve& curve : figure.panels.front().curves) {
      if (curve.times[i]) best = std::max(best, samples_per_gpu / curve.times[i]->value());
    }
    if (best > 0.0) return best;
  }
  return 0.0;
}

/// Places of texts in a list, in order of appearance.
class Words {
 public:
  std::size_t place_of(const std::string& word) {
    const auto [known, is_new] = place_.try_emplace(word, list_.size());
    if (is_new) list_.push_back(word);
    return known->second;
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> place_;
  std::vector<std::string> list_;
};

double microseconds(Seconds time) { return std::round(time.value() * 1e9) * 1e-3; }

}  // namespace

std::string without_place(const std::string& error) {
  const std::size_t end = error.find(": ");
  const std::string place = error.substr(0, end);
  const bool is_place = end != std::string::npos && !place.empty() && std::isdigit(place.back()) != 0 &&
                        place.find(':') != std::string::npos && place.find(' ') == std::string::npos;
  return is_place ? error.substr(end + 2) : error;
}

PageJson scaling_json(const ScalingPart& scaling) {
  const ScalingFigure& figure = scaling.figure;
  PageJson json = {{"fidelity", name(scaling.fidelity)},
                   {"kept", figure.panels.front().subtitle},
                   {"gpus", figure.gpus},
                   {"usd_per_gpu_hour", number_or_null(scaling.usd_per_gpu_hour)},
                   {"curves", PageJson::array()},
                   {"not_predicted", scaling.not_predicted}};
  const double ideal = best_rate_per_gpu(figure, scaling.samples_per_gpu);
  for (const TimeCurve& curve : figure.panels.front().curves) {
    PageJson one = {{"algorithm", curve.name}};
    for (std::size_t i = 0; i < figure.gpus.size(); ++i) {
      std::optional<double> time, rate, efficiency, cost;
      if (curve.times[i]) {
        const double per_gpu = scaling.samples_per_gpu / curve.times[i]->value();
        time = curve.times[i]->value();
        rate = per_gpu * figure.gpus[i];
        efficiency = per_gpu / ideal;
        if (scaling.usd_per_gpu_hour) cost = *scaling.usd_per_gpu_hour / 3600.0 / per_gpu * 1e6;
      }
      one["time_s"].push_back(number_or_null(time));
      one["samples_per_second"].push_back(number_or_null(rate));
      one["efficiency"].push_back(number_or_null(efficiency));
      one["usd_per_million_samples"].push_back(number_or_null(cost));
    }
    json["curves"].push_back(std::move(one));
  }
  return json;
}

PageJson roofline_json(const RooflineFigure& roofline) {
  PageJson panels = PageJson::array();
  for (const RooflinePanel& panel : roofline.panels) {
    PageJson json = {{"gpu", panel.gpu}, {"bandwidth_bytes_per_second", panel.bandwidth.value()}};
    for (const Roof& roof : panel.roofs) {
      json["roofs"].push_back({{"name", roof.name}, {"flops_per_second", roof.rate.value()}});
    }
    json["points"] = PageJson::array();
    for (const RooflinePoint& point : panel.points) {
      if (!point.drawable()) continue;
      json["points"].push_back({{"operator", point.name},
                                {"precision", name(point.precision)},
                                {"time_s", point.time.value()},
                                {"flops_per_byte", point.intensity().value()},
                                {"flops_per_second", point.rate().value()},
                                {"of_the_roof", point.rate() / panel.roof_over(point)},
                                {"bound", point.bound}});
    }
    panels.push_back(std::move(json));
  }
  return panels;
}

PageJson links_json(const LinkUses& uses) {
  PageJson json = {{"nodes", uses.nodes}, {"time_s", uses.time.value()}, {"vertices", PageJson::array()}};
  for (const NodeVertex& vertex : uses.vertices) {
    json["vertices"].push_back({{"name", vertex.name}, {"kind", name(vertex.kind)}});
  }
  json["links"] = PageJson::array();
  for (const LinkUse& use : uses.links) {
    json["links"].push_back({{"name", use.name},
                             {"from", use.from},
                             {"to", use.to},
                             {"kind", name(use.kind)},
                             {"links", use.links},
                             {"bandwidth_bytes_per_second", use.bandwidth.value()},
                             {"busiest_bytes", use.busiest.value()},
                             {"mean_share", use.mean},
                             {"busiest_share", use.most}});
  }
  return json;
}

PageJson slices_json(const std::vector<Slice>& slices) {
  Words resources, names, categories;
  PageJson json = {{"resources", {}}, {"names", {}}, {"categories", {}}};
  for (const Slice& slice : slices) {
    const std::string lane = slice.resource.find(std::to_string(slice.lane)) == std::string::npos && slice.lane > 0
                                 ? " (" + std::to_string(slice.lane) + ")"
                                 : "";
    json["resource"].push_back(resources.place_of(slice.resource + lane));
    json["name"].push_back(names.place_of(slice.name));
    json["category"].push_back(categories.place_of(slice.category));
    json["start_us"].push_back(microseconds(slice.start));
    json["duration_us"].push_back(microseconds(slice.duration));
    json["micro_batch"].push_back(slice.micro_batch);
    json["tasks"].push_back(slice.tasks);
  }
  json["resources"] = resources.list();
  json["names"] = names.list();
  json["categories"] = categories.list();
  return json;
}

}  // namespace foretrain
