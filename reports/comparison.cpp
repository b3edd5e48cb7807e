#include "reports/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/format.hpp"
#include "reports/json.hpp"
#include "reports/names.hpp"
#include "reports/table.hpp"

namespace foretrain {

namespace {

/// A line of the table: what it says of one result, empty where it has none.
struct Line {
  std::string name;
  std::function<std::string(const Result&)> cell;
};

template <typename Cell>
Line of_training(std::string name, Cell cell) {
  return {std::move(name), [cell](const Result& r) { return r.train ? cell(*r.train) : std::string(); }};
}

std::vector<Line> lines() {
  std::vector<Line> all = {
      {"time", [](const Result& r) { return format_seconds(r.time()); }},
      of_training("samples/s", [](const TrainResult& t) { return format_count(t.samples_per_second); }),
      of_training("tokens/s per GPU",
                  [](const TrainResult& t) {
                    return t.tokens_per_second > 0.0 ? format_count(t.tokens_per_second_per_gpu) : std::string();
                  }),
      of_training("MFU", [](const TrainResult& t) { return format_percent(t.mfu); })};
  for (const BreakdownPart& part : breakdown_parts) {
    all.push_back(of_training(std::string(part.name),
                              [time = part.time](const TrainResult& t) { return format_seconds(t.breakdown.*time); }));
  }
  all.push_back(of_training("memory of a GPU", [](const TrainResult& t) {
    return format_bytes(t.memory.total()) + (t.memory.fits() ? "" : " (does not fit)");
  }));
  all.push_back(of_training("time to train", [](const TrainResult& t) {
    return t.time_to_train ? format_seconds(*t.time_to_train) : std::string();
  }));
  all.push_back({"cost, USD", [](const Result& r) { return r.cost_usd ? format_count(*r.cost_usd) : std::string(); }});
  return all;
}

/// What a sample takes more or less in each part, greatest first: times of steps with different batches are no measure.
std::string causes(const TrainResult& train, const TrainResult& reference) {
  struct Cause {
    std::string_view name;
    double change;  ///< of the reference's time for a sample
  };
  const double samples = train.samples_per_second * train.step_time.value();
  const double reference_samples = reference.samples_per_second * reference.step_time.value();
  const double whole = reference.step_time.value() / reference_samples;
  std::vector<Cause> all;
  for (const BreakdownPart& part : breakdown_parts) {
    const double now = (train.breakdown.*part.time).value() / samples;
    const double then = (reference.breakdown.*part.time).value() / reference_samples;
    if (std::abs(now - then) >= 0.001 * whole) all.push_back({part.name, (now - then) / whole});
  }
  std::ranges::sort(all, std::ranges::greater{}, [](const Cause& c) { return std::abs(c.change); });
  std::string text;
  for (const Cause& cause : all) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause.name, signed_percent(cause.change));
  }
  return text;
}

/// The settings of a result by what they are of, several of one name numbered.
std::map<std::string, std::string> settings_by_name(const Result& result) {
  std::map<std::string, std::string> named;
  for (const Setting& s : result.settings) {
    const std::string key = s.line + (s.name.empty() ? "" : " " + s.name);
    std::string& value = named[key];
    value += (value.empty() ? "" : " · ") + s.value;
  }
  return named;
}

/// "Plan tensor: 1 instead of 8": what was asked differently.
std::string different_settings(const Result& result, const Result& reference) {
  const std::map<std::string, std::string> now = settings_by_name(result), then = settings_by_name(reference);
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value, const std::string& other) {
    text += fmt::format("{}{}: {} instead of {}", text.empty() ? "" : "; ", key, value, other);
  };
  for (const auto& [key, value] : now) {
    const auto found = then.find(key);
    if (found == then.end()) {
      add(key, value, "nothing");
    } else if (found->second != value) {
      add(key, value, found->second);
    }
  }
  for (const auto& [key, value] : then) {
    if (!now.contains(key)) add(key, "nothing", value);
  }
  return text;
}

}  // namespace

Speedup speedup_of(const Result& result, const Result& reference) {
  Speedup speedup;
  const bool both = result.train && reference.train;
  speedup.factor =
      both ? result.train->samples_per_second / reference.train->samples_per_second : reference.time() / result.time();
  const auto spread = [](const Result& r) {
    return r.uncertainty_low > Seconds(0.0) ? 0.5 * std::log(r.uncertainty_high / r.uncertainty_low) : 0.0;
  };
  const double share = std::exp(std::hypot(spread(result), spread(reference)));
  speedup.low = speedup.factor / share;
  speedup.high = speedup.factor * share;
  return speedup;
}

std::string comparison_text(const std::vector<Result>& results) {
  std::vector<std::string> header = {""};
  for (std::size_t i = 0; i < results.size(); ++i) header.push_back(fmt::format("[{}]", i + 1));
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    text += fmt::format("  [{}] {}  [{}]\n", i + 1, results[i].scenario, name(results[i].fidelity));
  }
  TextTable table("l" + std::string(results.size(), 'r'), header);
  for (const Line& line : lines()) {
    std::vector<std::string> row = {line.name};
    for (const Result& result : results) row.push_back(line.cell(result));
    const bool empty = std::ranges::all_of(row.begin() + 1, row.end(), [](const auto& cell) { return cell.empty(); });
    if (!empty) table.add_row(std::move(row));
  }
  text += "\n" + table.text(page_indent) + "\n";
  const Result& first = results.front();
  for (std::size_t i = 1; i < results.size(); ++i) {
    const Speedup speedup = speedup_of(results[i], first);
    const bool faster = speedup.factor >= 1.0;
    std::string sentence = faster ? fmt::format("[{}] is {:.3g} times as fast as [1] ({:.3g} to {:.3g})", i + 1,
                                                speedup.factor, speedup.low, speedup.high)
                                  : fmt::format("[{}] is {:.3g} times as slow as [1] ({:.3g} to {:.3g})", i + 1,
                                                1.0 / speedup.factor, 1.0 / speedup.high, 1.0 / speedup.low);
    if (results[i].train && first.train) {
      const std::string why = causes(*results[i].train, *first.train);
      if (!why.empty()) sentence += ". Of the time that a sample takes in [1]: " + why;
    }
    text += "  " + wrap(sentence + ".", page_width - 2, 2) + "\n";
    const std::string asked = different_settings(results[i], first);
    if (!asked.empty()) text += "    " + wrap("It has " + asked + ".", page_width - 4, 4) + "\n";
  }
  return text;
}

std::string comparison_json(const std::vector<Result>& results) {
  nlohmann::ordered_json json;
  json["results"] = nlohmann::ordered_json::parse(to_json(results));
  json["speedups"] = nlohmann::ordered_json::array();
  for (std::size_t i = 1; i < results.size(); ++i) {
    const Speedup s = speedup_of(results[i], results.front());
    json["speedups"].push_back({{"factor", s.factor}, {"low", s.low}, {"high", s.high}});
  }
  return json.dump(2);
}

}  // namespace foretrain
