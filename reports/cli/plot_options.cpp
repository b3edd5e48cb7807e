// The options of `foretrain plot`, each once; which a kind takes stands in plot_command.cpp.
#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/plot.hpp"

namespace foretrain {

namespace {

/// "8.5cm", "85 mm" or "3.35 in".
double centimetres(const std::string& text) {
  constexpr std::pair<std::string_view, double> units[] = {{"cm", 1.0}, {"mm", 0.1}, {"in", 2.54}};
  try {
    const NumberAndUnit width = split_number_and_unit(text);
    for (const auto& [unit, size] : units) {
      const double cm = width.number * size;
      if (width.unit == unit && cm >= 4.0 && cm <= 100.0) return cm;
    }
  } catch (const UnitError&) {
    // Said below, in the words of the option.
  }
  throw UsageError("--width " + text + ": a width of 4 to 100 cm, such as 8.5cm, 85mm or 3.35in");
}

/// Options for the look of a picture, and the file of its numbers.
void add_looks(CLI::App& app, PlotOptions& options) {
  app.add_option_function<std::string>(
         "--title", [&options](const std::string& title) { options.title = title; }, "title of the picture ('': none)")
      ->type_name("TEXT");
  app.add_option_function<std::string>(
         "--labels",
         [&options](const std::string& names) {
           for (const std::string& name : split(names, ',')) options.labels.emplace_back(trim(name));
         },
         "names of the series, in their order")
      ->type_name("NAME[,NAME]");
  const auto refuse = [](const std::string& file) -> std::string {
    return file.ends_with(".csv") ? "" : file + ": what is drawn is written as .csv";
  };
  add_text(app, "--csv", options.table, "FILE.csv", "write what is drawn: plain numbers, their units in the header")
      ->check(refuse, "");
  app.add_option_function<std::string>(
         "--width", [&options](const std::string& width) { options.width_cm = centimetres(width); },
         "width for print, such as 8.5cm for a column")
      ->type_name("WIDTH");
}

/// A text, several with commas between, or a flag.
struct PlotOption {
  std::string_view name;
  std::variant<std::string PlotOptions::*, std::vector<std::string> PlotOptions::*, bool PlotOptions::*> value;
  const char *type, *what;
};
constexpr PlotOption plot_options[] = {
    {"x", &PlotOptions::x, "KEY", "the key or column across (map: default cluster.network.nic_bandwidth)"},
    {"y", &PlotOptions::y, "KEY", "key upwards (default: workload.collective.size)"},
    {"panels", &PlotOptions::panels, "KEY",
     "a panel for each value of this key or column (map: default workload.collective.ranks)"},
    {"until", &PlotOptions::until, "TIME", "end of the timeline (default: all of it)"},
    {"beside", &PlotOptions::beside, "TRACE.json",
     "a measured step in Chrome's format, as PyTorch's profiler writes it"},
    {"run", &PlotOptions::run, "NAME", "between hosts: the timeline of this run, measured with --timeline"},
    {"streams", &PlotOptions::streams, "WORD", "only streams whose names contain this"},
    {"measurements", &PlotOptions::measurements, "DIR", "the operators that foretrain-gpu measured into this folder"},
    {"algorithms", &PlotOptions::algorithms, "NAME[,NAME]",
     "ways of synchronising (default: ring,parameter_server,naive)"},
    {"curve", &PlotOptions::curves, "COLUMN[,COLUMN]", "a line for each of their values"},
    {"quantity", &PlotOptions::quantities, "NAME[,NAME]",
     "a panel for each: time, memory, samples_per_second, tokens_per_second, mfu, cost, bus_bandwidth"},
    {"constant-tokens", &PlotOptions::constant_tokens, "",
     "shorter sequences come in larger batches: batch times length stays that of the scenario"},
    {"band", &PlotOptions::band, "", "shade the 90 % interval"},
    {"rates", &PlotOptions::rates, "", "print samples per second next to the bars"}};

/// Options of other types. Whether there is one of this name.
bool add_other(CLI::App& app, const std::string& name, PlotOptions& options) {
  if (name == "gpus") {
    add_gpu_numbers(app, options.gpus, "numbers of GPUs (default: 1,2,4,8,16)");
  } else if (name == "where") {
    add_conditions(app, options.where);
  } else if (name == "fidelity") {
    add_fidelity(app, options.fidelity);
  } else if (name == "set") {
    add_overrides(app, options.overrides);
  } else if (name == "jobs") {
    add_jobs(app, options.jobs);
  } else {
    return false;
  }
  return true;
}

void add_named(CLI::App& app, const std::string& name, PlotOptions& options) {
  if (add_other(app, name, options)) return;
  const auto* const found = std::ranges::find(plot_options, name, &PlotOption::name);
  if (found == std::end(plot_options)) return;  // a word of PlotKind that is no option
  const std::string spelt = name == "panels" ? "--panels,--panel" : "--" + name;
  if (const auto* flag = std::get_if<bool PlotOptions::*>(&found->value)) {
    app.add_flag(spelt, options.**flag, found->what);
  } else if (const auto* text = std::get_if<std::string PlotOptions::*>(&found->value)) {
    add_text(app, spelt, options.**text, found->type, found->what);
  } else {
    add_text(app, spelt, options.*std::get<std::vector<std::string> PlotOptions::*>(found->value), found->type,
             found->what)
        ->delimiter(',')
        ->allow_extra_args(false);
  }
}

}  // namespace

void add_plot_options(CLI::App& app, const PlotKind& kind, PlotOptions& options) {
  const std::vector<std::string> names = split_words(kind.options);
  const auto takes = [&](std::string_view word) { return std::ranges::find(names, word) != names.end(); };
  if (kind.input != nullptr) {
    CLI::Option* input = app.add_option(kind.input, options.files, kind.input_what)->required(!takes("any"));
    if (!takes("any") && !takes("many")) input->expected(1);
  }
  add_picture(app, "-o,--output", options.output, takes("draw") ? "picture to write" : "also draw it")
      ->required(takes("draw"));
  add_looks(app, options);
  if (kind.variations != nullptr) {
    add_variations(app, options.variations, kind.variations)->required(takes("vary"));
  }
  for (const std::string& name : names) add_named(app, name, options);
}

}  // namespace foretrain
