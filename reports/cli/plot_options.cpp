// The options of `foretrain plot`, each once; which a kind takes stands in plot_command.cpp.
#include <algorithm>
#include <type_traits>
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

/// How a picture is to look, and where its numbers go.
void add_looks(CLI::App& app, PlotOptions& options, bool band) {
  app.add_option_function<std::string>(
         "--title", [&options](const std::string& title) { options.title = title; },
         "instead of the picture's own; '': none")
      ->type_name("TEXT");
  app.add_option_function<std::string>(
         "--labels",
         [&options](const std::string& names) {
           for (const std::string& name : split(names, ',')) options.labels.emplace_back(trim(name));
         },
         "names of the series, in their order")
      ->type_name("NAME,NAME,…");
  const auto refuse = [](const std::string& file) -> std::string {
    return file.ends_with(".csv") ? "" : file + ": what is drawn is written as .csv";
  };
  add_text(app, "--csv", options.table, "FILE.csv", "write what is drawn: plain numbers, their units in the header")
      ->check(refuse, "");
  app.add_option_function<std::string>(
         "--width", [&options](const std::string& width) { options.width_cm = centimetres(width); },
         "for print, so wide: letters of 6 points and more, a column of a paper is 8.5cm")
      ->type_name("WIDTH");
  if (band) app.add_flag("--band", options.band, "shade the range in which nine of ten such cases lie");
}

/// A text, several with commas between, or a flag.
struct PlotOption {
  std::string_view name;
  std::variant<std::string PlotOptions::*, std::vector<std::string> PlotOptions::*, bool PlotOptions::*> value;
  const char *type, *what;
};
constexpr PlotOption plot_options[] = {
    {"kind", &PlotOptions::kind, "products|attention|collectives", "what is drawn (default: products)"},
    {"x", &PlotOptions::x, "KEY",
     "the key or column across (of maps default: cluster.network.nic_bandwidth, else what varies)"},
    {"y", &PlotOptions::y, "KEY", "key upwards (default: workload.collective.size, else what varies)"},
    {"panels", &PlotOptions::panels, "KEY",
     "a panel for each value of this key or column (of maps default: workload.collective.ranks, else what varies)"},
    {"from", &PlotOptions::from, "TIME", "leave out what lies before (default: the start)"},
    {"until", &PlotOptions::until, "TIME", "leave out of the timeline what lies behind (default: the end)"},
    {"beside", &PlotOptions::beside, "TRACE.json",
     "a measured step in Chrome's format, as PyTorch's profiler writes it"},
    {"run", &PlotOptions::run, "NAME", "between hosts: the timeline of this run, measured with --timeline"},
    {"streams", &PlotOptions::streams, "WORD", "of the timeline those streams whose names contain this"},
    {"measurements", &PlotOptions::measurements, "DIR", "the operators that foretrain-gpu measured into this folder"},
    {"algorithms", &PlotOptions::algorithms, "NAME,NAME,…",
     "ways of synchronising (default: ring,parameter_server,naive)"},
    {"curve", &PlotOptions::curves, "COLUMN,…", "a line for each of their values"},
    {"kinds", &PlotOptions::kinds, "NAME,NAME,…", "algorithms (default: all that run on the GPU)"},
    {"node", &PlotOptions::nodes, "NAME,NAME,…", "only what was measured on these"},
    {"quantity", &PlotOptions::quantities, "NAME,NAME,…",
     "a panel for each: time, memory, samples_per_second, tokens_per_second, mfu, cost, bus_bandwidth"},
    {"constant-tokens", &PlotOptions::constant_tokens, "",
     "shorter sequences come in larger batches: batch times length stays that of the scenario"},
    {"rates", &PlotOptions::rates, "", "write samples per second beside the bars"},
    {"strong", &PlotOptions::strong, "", "keep the global batch instead of the batch per GPU"}};

/// Options of other types. Whether there is one of this name.
bool add_other(CLI::App& app, const std::string& name, PlotOptions& options) {
  if (name == "gpus") {
    add_gpu_numbers(app, options.gpus, "numbers of GPUs (default: 1,2,4,8,16)");
  } else if (name == "lengths") {
    app.add_option("--lengths", options.lengths, "sequence lengths (default: 128 to 32768)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}));
  } else if (name == "cases") {
    add_text(app, "--cases", options.cases, "CASES.csv",
             "tables with measured.* columns, whose points are drawn (default: all that come with foretrain)");
  } else if (name == "where") {
    add_conditions(app, options.where);
  } else {
    return false;
  }
  return true;
}

/// The names by which an option goes: "--panels,--panel".
std::string spelt(const std::string& name) { return name == "panels" ? "--panels,--panel" : "--" + name; }

void add_named(CLI::App& app, const std::string& name, PlotOptions& options) {
  if (add_other(app, name, options)) return;
  const auto* const found = std::ranges::find(plot_options, name, &PlotOption::name);
  const auto add = [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), bool PlotOptions::*>) {
      app.add_flag(spelt(name), options.*value, found->what);
    } else {
      CLI::Option* added = add_text(app, spelt(name), options.*value, found->type, found->what);
      if constexpr (std::is_same_v<decltype(value), std::vector<std::string> PlotOptions::*>) {
        added->delimiter(',')->allow_extra_args(false);
      }
    }
  };
  std::visit(add, found->value);
}

}  // namespace

void add_plot_options(CLI::App& app, const PlotKind& kind, PlotOptions& options) {
  const auto takes = [&](PlotTakes what) { return (kind.takes & what) != 0; };
  if (kind.input != nullptr) {
    CLI::Option* input = app.add_option(kind.input, options.files, kind.input_what);
    if (!takes(any_inputs)) input->required();
    if (!takes(any_inputs) && !takes(many_inputs)) input->expected(1);
  }
  add_picture(app, "-o,--output", options.output, takes(must_draw) ? "where the picture goes" : "draw it as well")
      ->required(takes(must_draw));
  add_looks(app, options, takes(takes_band));
  if (kind.variations != nullptr) {
    add_variations(app, options.variations, kind.variations)->required(takes(must_vary));
  }
  if (takes(takes_fidelity)) add_fidelity(app, options.fidelity);
  if (takes(takes_overrides)) add_overrides(app, options.overrides);
  if (takes(takes_jobs)) add_jobs(app, options.jobs);
  for (const std::string& name : split_words(kind.options)) add_named(app, name, options);
}

}  // namespace foretrain
