#include "reports/import/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "model/base/csv.hpp"
#include "model/base/format.hpp"
#include "model/base/statistics.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

struct FigureRow {
  std::string_view format, text;
  LogQuantity quantity;
  double unit;
};
constexpr FigureRow figure_rows[] = {
#define LOG_FIGURE(format, text, quantity, unit) {format, text, LogQuantity::quantity, unit},
#include "reports/import/log_figures.def"
};

struct PauseRow {
  std::string_view text;
  LogPause kind;
};
constexpr PauseRow pause_rows[] = {
#define LOG_PAUSE(text, kind) {text, LogPause::kind},
#include "reports/import/log_figures.def"
};

/// A number, its thousands perhaps apart by commas or with K, M or B behind it, and the text after it.
struct LogNumber {
  double value = 0.0;
  std::string_view rest;
};
std::optional<LogNumber> figure_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t:=\"'"), text.size()));
  std::string digits;
  std::size_t end = 0;
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (; end < text.size(); ++end) {
    const bool thousands = text[end] == ',' && is_digit(end + 1) && is_digit(end + 2) && is_digit(end + 3) &&
                           !is_digit(end + 4) && digits.find('.') == std::string::npos;
    if (thousands) continue;
    const bool sign =
        (text[end] == '-' || text[end] == '+') && !digits.empty() && (digits.back() == 'e' || digits.back() == 'E');
    if (!is_digit(end) && text[end] != '.' && text[end] != 'e' && text[end] != 'E' && !sign) break;
    digits += text[end];
  }
  LogNumber figure;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), figure.value);
  if (error != std::errc() || stop != digits.data() + digits.size() || !std::isfinite(figure.value))
    return std::nullopt;
  figure.rest = text.substr(end);
  static constexpr std::string_view letters = "KMB";
  const bool has_letter = !figure.rest.empty() && letters.find(figure.rest[0]) != std::string_view::npos;
  if (has_letter && (figure.rest.size() == 1 || std::isalpha(static_cast<unsigned char>(figure.rest[1])) == 0)) {
    figure.value *= std::pow(1000.0, static_cast<double>(letters.find(figure.rest[0]) + 1));
  }
  return figure;
}

constexpr double least_figure = 1e-9, largest_figure = 1e18;  ///< of seconds, rates and bytes that can be

using Figures = std::map<LogQuantity, double>;

/// Reads one format. A step ends where its number changes, or where a figure comes again.
class LogReader {
 public:
  explicit LogReader(std::string_view format) : format_(format) {}

  void read(const std::string& line) {
    for (const PauseRow& row : pause_rows) {
      if (line.find(row.text) == std::string::npos) continue;
      end_step();
      pause_ = row.kind;
      return;
    }
    for (const FigureRow& row : figure_rows) {
      const std::size_t place = row.format == format_ ? line.find(row.text) : std::string::npos;
      if (place == std::string::npos) continue;
      const auto figure = figure_in(std::string_view(line).substr(place + row.text.size()));
      if (figure) take(row, *figure);
    }
  }

  /// Every step with its figures, and what came before it.
  std::vector<std::pair<Figures, LogPause>> steps() && {
    end_step();
    return std::move(steps_);
  }
  [[nodiscard]] std::optional<double> memory() const { return memory_; }

 private:
  void take(const FigureRow& row, const LogNumber& figure) {
    const double value = figure.value * row.unit;
    if (row.quantity == LogQuantity::step || row.quantity == LogQuantity::step_of_all) {
      const std::size_t next = figure.rest.find_first_not_of(' ');
      const bool of_all = next != std::string_view::npos && figure.rest[next] == '/';
      if (row.quantity == LogQuantity::step_of_all && !of_all) return;
      if (number_ && *number_ != value) end_step();
      number_ = value;
      return;
    }
    if (!(value > least_figure && value < largest_figure)) return;
    if (row.quantity == LogQuantity::memory) {
      memory_ = std::max(value, memory_.value_or(0.0));
    } else if (row.quantity == LogQuantity::part_of_time && parts_.insert(row.text).second) {
      figures_[row.quantity] += value;
    } else {
      if (figures_.contains(row.quantity)) end_step();
      figures_[row.quantity] = value;
      if (row.quantity == LogQuantity::part_of_time) parts_ = {row.text};
    }
  }

  void end_step() {
    if (figures_.empty()) return;
    steps_.emplace_back(std::move(figures_), pause_);
    figures_.clear();
    parts_.clear();
    number_.reset();
    pause_ = LogPause::none;
  }

  std::string_view format_;
  Figures figures_;
  std::set<std::string_view> parts_;
  std::optional<double> number_, memory_;
  LogPause pause_ = LogPause::none;
  std::vector<std::pair<Figures, LogPause>> steps_;
};

/// With ",device/batches_per_sec=" behind Lightning's progress bar: "Epoch 0: 100%|█| 311/311 [00:13<00:00, 23.54it/s,
/// v_num=422]", of slow steps "2.69s/it".
std::string with_rate_of_bar(std::string line) {
  const std::size_t rate = line.find("it/s, v_num="), time = line.find("s/it, v_num="), end = std::min(rate, time);
  if (!line.starts_with("Epoch ") || end == std::string::npos) return line;
  const auto number = figure_in(std::string_view(line).substr(line.rfind(' ', end) + 1));
  if (!number || number->value <= 0.0) return line;
  return line + fmt::format(",device/batches_per_sec={:.6g}", end == rate ? number->value : 1.0 / number->value);
}

/// Lines, also of progress bars; rows of a table (CSV) as ",name=value,name=value".
std::vector<std::string> lines_of_log(const ImportInput& input) {
  std::string text = input.text;
  std::ranges::replace(text, '\r', '\n');
  const std::string first = text.substr(0, text.find('\n'));
  const bool table = input.file.ends_with(".csv") && first.find(',') != std::string::npos;
  std::vector<std::string> lines;
  if (!table) {
    for (const std::string& line : split(text, '\n')) lines.push_back(with_rate_of_bar(without_colours(line)));
    return lines;
  }
  const CsvTable cells = parse_csv(input.text, input.file);
  for (const CsvRow& row : cells.rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].text.empty()) line += "," + cells.header[i].text + "=" + row[i].text;
    }
  }
  return lines;
}

/// A mean of the whole run: its number of steps is a rounded rate times the time.
void use_whole_time(Figures& figures) {
  const auto whole = figures.find(LogQuantity::whole_time), rate = figures.find(LogQuantity::steps_per_second);
  if (whole == figures.end() || rate == figures.end()) return;
  const double steps = std::round(whole->second * rate->second);
  if (steps >= 1.0) figures[LogQuantity::time] = whole->second / steps;
}

bool is_rate(LogQuantity quantity) { return quantity != LogQuantity::time && quantity != LogQuantity::part_of_time; }

constexpr double settled = 1.1;  ///< times the median: a step is warm-up as long as none before it was faster

/// Number of steps at the beginning that are slower than those of the second half: kernels are compiled and chosen,
/// memory is allocated, connections are made. The first step counts in no log of more than three.
std::size_t warm_up_of(const std::vector<LoggedStep>& steps, LogQuantity quantity) {
  if (steps.size() <= 3) return 0;
  std::vector<double> times;
  for (const LoggedStep& step : steps) times.push_back(is_rate(quantity) ? 1.0 / step.value : step.value);
  const double usual = median({times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end()});
  std::size_t slow = 1;
  while (slow < times.size() / 2 && times[slow] > settled * usual) ++slow;
  return slow;
}

void set_times(LoggedRun& run, const std::vector<LoggedStep>& steps) {
  run.warm_up = warm_up_of(steps, run.quantity);
  std::vector<double> counted, all;
  for (const LoggedStep& step : std::span(steps).subspan(run.warm_up)) {
    all.push_back(step.value);
    if (step.after == LogPause::none) counted.push_back(step.value);
    if (step.after == LogPause::evaluation) ++run.evaluation;
    if (step.after == LogPause::checkpoint) ++run.checkpoint;
  }
  if (counted.empty()) {
    counted = all;  // every line comes behind an evaluation
    run.evaluation = run.checkpoint = 0;
  }
  run.steps = counted.size();
  run.median = median(counted);
  for (const LoggedStep& step : std::span(steps).subspan(run.warm_up)) {
    const double longer = is_rate(run.quantity) ? run.median / step.value : step.value / run.median;
    if (step.after == LogPause::checkpoint) run.checkpoint_share += (longer - 1.0) / static_cast<double>(all.size());
  }
  run.slowest_tenth = quantile(counted, is_rate(run.quantity) ? 0.1 : 0.9);
  run.spread = (quantile(counted, 0.75) - quantile(counted, 0.25)) / run.median;
}

/// The steps of a format by the first of its quantities that any has.
LoggedRun run_of(std::string_view format, const std::vector<std::string>& lines, std::vector<LoggedStep>& steps) {
  LogReader reader(format);
  for (const std::string& line : lines) reader.read(line);
  LoggedRun run;
  run.format = format;
  run.memory = reader.memory();
  auto all = std::move(reader).steps();
  for (auto& [figures, pause] : all) use_whole_time(figures);
  for (LogQuantity quantity = LogQuantity::time; quantity != LogQuantity::whole_time && steps.empty();
       quantity = static_cast<LogQuantity>(static_cast<int>(quantity) + 1)) {
    LogPause pause = LogPause::none;
    for (const auto& [figures, before] : all) {
      if (before != LogPause::none) pause = before;
      const auto found = figures.find(quantity);
      if (found == figures.end()) continue;
      steps.push_back({found->second, pause});
      pause = LogPause::none;
    }
    run.quantity = quantity;
  }
  if (run.quantity == LogQuantity::part_of_time) run.quantity = LogQuantity::time;
  if (run.quantity == LogQuantity::steps_per_second) {
    for (LoggedStep& step : steps) step.value = 1.0 / step.value;
    run.quantity = LogQuantity::time;
  }
  return run;
}

}  // namespace

std::string LoggedRun::text() const {
  std::string words = fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
  std::vector<std::string> left;
  if (warm_up > 0) left.push_back(fmt::format("{} warm-up", warm_up));
  if (evaluation > 0) left.push_back(fmt::format("{} behind evaluation", evaluation));
  if (checkpoint > 0) left.push_back(fmt::format("{} behind checkpoints", checkpoint));
  if (!left.empty()) words += fmt::format(" ({} left out)", fmt::join(left, ", "));
  if (steps > 1) words += fmt::format(", quartiles {} apart", format_percent(spread));
  return words;
}

LoggedRun read_training_log(const ImportInput& input) {
  const std::vector<std::string> lines = lines_of_log(input);
  LoggedRun best;
  std::vector<LoggedStep> most;
  std::string_view tried;
  for (const FigureRow& row : figure_rows) {
    if (row.format == tried) continue;
    tried = row.format;
    std::vector<LoggedStep> steps;
    LoggedRun run = run_of(row.format, lines, steps);
    if (steps.size() <= most.size()) continue;
    most = std::move(steps);
    best = std::move(run);
  }
  if (most.empty()) {
    throw ScenarioError(
        {input.file, 0, 0}, "", "no line has a step time",
        "a log of Megatron-LM, NeMo, torchtitan, DeepSpeed, Hugging Face's Trainer, nanotron, Composer, "
        "Lightning or MLPerf, with its throughput");
  }
  best.file = input.file;
  set_times(best, most);
  return best;
}

}  // namespace foretrain
