#include "reports/explain/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"
#include "reports/print/table.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

namespace {

/// Labels begin with a capital.
std::string capitalised(std::string_view word) {
  std::string text(word);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

/// Empty cells of a row become `word`.
void fill_gaps(std::vector<std::string>& row, const std::string& word) {
  std::ranges::replace(row.begin() + 1, row.end(), std::string(), word);
}

/// One row per quantity that any result has.
void add_lines(const std::vector<Result>& results, TextTable& table) {
  const auto add = [&](std::string_view name, const auto& cell) {
    std::vector<std::string> row = {capitalised(name)};
    for (const Result& result : results) row.push_back(cell(result));
    const auto says_nothing = [](const std::string& text) { return text.empty() || text == "0 s"; };
    if (std::ranges::all_of(row.begin() + 1, row.end(), says_nothing)) return;
    fill_gaps(row, "-");
    table.add_row(std::move(row));
  };
  const auto of_training = [&](std::string_view name, const auto& cell) {
    add(name, [&](const Result& r) { return r.train() ? std::string(cell(*r.train())) : std::string(); });
  };
  const bool steps = std::ranges::all_of(results, [](const Result& r) { return r.train() != nullptr; });
  add(steps ? "step time" : "time", [](const Result& r) { return format_seconds(r.time()); });
  of_training("samples/s", [](const TrainResult& t) { return format_count(t.samples_per_second); });
  of_training("tokens/s per GPU", [](const TrainResult& t) {
    return t.tokens_per_second > 0.0 ? format_count(t.tokens_per_second_per_gpu) : "";
  });
  of_training("MFU", [](const TrainResult& t) { return format_percent(t.mfu); });
  for (const BreakdownPart& part : breakdown_parts) {
    of_training(part.name, [&](const TrainResult& t) { return format_seconds(t.breakdown.*part.time); });
  }
  of_training("peak GPU memory", [](const TrainResult& t) {
    return format_bytes(t.memory.total()) + (t.memory.fits()          ? ""
                                             : t.memory.fits_barely() ? " (fits barely)"
                                                                      : " (does not fit)");
  });
  of_training("goodput",
              [](const TrainResult& t) { return t.goodput ? format_percent(t.goodput->simulated.shares.useful) : ""; });
  of_training("time to train", [](const TrainResult& t) { return t.time_to_train ? length_text(t) : ""; });
  of_training("cost", [](const TrainResult& t) { return t.cost_usd ? cost_text(t) : ""; });
}

/// NaN where no tokens are counted.
double gpus_of(const TrainResult& train) { return train.tokens_per_second / train.tokens_per_second_per_gpu; }

std::string model_of(const Result& result) { return result.train() ? result.train()->model : ""; }

/// The change of time per sample, and the share of each part in it, greatest first. Step times of different batches do
/// not compare.
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
    text += fmt::format("{}{} {:+.1f}", text.empty() ? "" : ", ", cause.name, 100.0 * cause.change);
  }
  const double change = train.step_time.value() / samples / whole - 1.0;
  return text.empty() ? text : fmt::format(". Time per sample {} ({} percentage points)", signed_percent(change), text);
}

/// One row per setting that differs.
std::vector<std::vector<std::string>> different_settings(const std::vector<Result>& results) {
  std::vector<std::string> names;  // in the order in which they come
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const Setting& s : results[i].settings) {
      const std::string name = label_of(s);
      std::vector<std::string>& of_name = values.try_emplace(name, results.size()).first->second;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      of_name[i] += (of_name[i].empty() ? "" : ", ") + s.value;
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> row = values.at(name);
    if (std::ranges::adjacent_find(row, std::ranges::not_equal_to{}) == row.end()) continue;
    row.insert(row.begin(), capitalised(name));
    const bool counts = std::ranges::any_of(row.begin() + 1, row.end(), is_whole_number);
    fill_gaps(row, !counts ? "-" : name == "parameter servers" ? "0" : "1");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Speedup speedup_of(const Result& result, const Result& reference) {
  Speedup speedup;
  const bool both = result.train() && reference.train();
  speedup.factor = both ? result.train()->samples_per_second / reference.train()->samples_per_second
                        : reference.time() / result.time();
  const auto early = [](const Result& r) {
    return r.uncertainty_low > Seconds(0.0) ? std::log(r.time() / r.uncertainty_low) : 0.0;
  };
  const auto late = [](const Result& r) {
    return r.uncertainty_low > Seconds(0.0) ? std::log(r.uncertainty_high / r.time()) : 0.0;
  };
  // The least where the result is late and the reference early.
  speedup.low = speedup.factor / std::exp(std::hypot(late(result), early(reference)));
  speedup.high = speedup.factor * std::exp(std::hypot(early(result), late(reference)));
  return speedup;
}

std::string comparison_text(const std::vector<Result>& results) {
  std::vector<std::vector<std::string>> different = different_settings(results);
  const bool models_differ =
      std::ranges::any_of(results, [&](const Result& r) { return model_of(r) != model_of(results.front()); });
  std::vector<std::string> header = {models_differ || !different.empty() ? "Settings that differ" : ""};
  for (std::size_t i = 0; i < results.size(); ++i) header.push_back(fmt::format("[{}]", i + 1));
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    text += title_of(results[i], fmt::format("  [{}] ", i + 1)) + "\n";
  }
  TextTable table("l" + std::string(results.size(), 'r'), header);
  if (models_differ) {
    std::vector<std::string>& row = *different.insert(different.begin(), std::vector<std::string>{"Model"});
    for (const Result& result : results) row.push_back(model_of(result));
  }
  for (const std::vector<std::string>& row : different) table.add_row(row);
  if (!different.empty()) table.add_rule();
  add_lines(results, table);
  text += "\n" + table.text(page_indent) + "\n";
  const Result& first = results.front();
  for (std::size_t i = 1; i < results.size(); ++i) {
    const Speedup speedup = speedup_of(results[i], first);
    const TrainResult *train = results[i].train(), *reference = first.train();
    const bool both = train != nullptr && reference != nullptr;
    std::string sentence =
        fmt::format("[{}]: {:.3g} times the {} of [1]", i + 1, speedup.factor, both ? "samples/s" : "speed");
    if (speedup.low < speedup.high) {
      sentence += fmt::format(" (90 % interval {:.3g}–{:.3g} if errors are independent; narrower if shared)",
                              speedup.low, speedup.high);
    }
    if (both) {
      const double gpus = gpus_of(*train) / gpus_of(*reference);
      if (std::abs(gpus - 1.0) > 1e-3) sentence += fmt::format(", {:.3g} times per GPU", speedup.factor / gpus);
      sentence += causes(*train, *reference);
    }
    text += paragraph(sentence + ".");
  }
  if (models_differ) text += paragraph("The models differ, so samples/s does not measure training progress.");
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
