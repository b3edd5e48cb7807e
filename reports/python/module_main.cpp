// foretrain._foretrain: what the Python package has in C++. Everything here takes and gives texts; the package's Python
// files make objects of them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/session.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/sweep_rows.hpp"
#include "reports/cli/workers.hpp"
#include "reports/print/names.hpp"
#include "reports/python/captured_command.hpp"
#include "reports/result/csv.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"
#include "sim/simulate.hpp"

namespace py = pybind11;

namespace foretrain {

namespace {

/// Other Python threads run while this one computes, but one at a time in here: they share a session, which is not made
/// for several threads.
class Computing {
 private:
  struct Room {
    std::mutex mutex;
    Session session;
  };
  static Room& room() {
    static Room only;
    return only;
  }
  py::gil_scoped_release without_python_;
  std::scoped_lock<std::mutex> alone_{room().mutex};
  SessionScope session_{room().session};
};

/// Whether Python has been interrupted (Ctrl-C); its exception is then set.
bool interrupted_by_python() {
  const py::gil_scoped_acquire with_python;
  return PyErr_CheckSignals() != 0;
}

/// After `Computing`: raises what interrupted_by_python() has set.
void raise_interrupt() {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

/// As `foretrain predict`: its JSON, and its text.
std::pair<std::string, std::string> predict_file(const std::string& file, const std::vector<std::string>& overrides,
                                                 const std::string& fidelity_word) {
  const Computing computing;
  const Fidelity fidelity = fidelity_named(fidelity_word);
  const Scenario scenario = planned_file(file, overrides, fidelity);
  Result result = predict(scenario, fidelity);
  result.resolved = resolved_values(scenario);
  return {to_json(result), to_text(result, {})};
}

/// Header; of each column its kind: text, number, flag; rows.
using SweepAnswer =
    std::tuple<std::vector<std::string>, std::vector<std::string>, std::vector<std::vector<std::string>>>;

SweepAnswer sweep(const SweepInput& input, const std::string& fidelity_word, int jobs) {
  const Fidelity fidelity = fidelity_named(fidelity_word);
  const SweepRows rows = sweep_rows(input);
  SweepAnswer answer;
  auto& [header, kinds, lines] = answer;
  header = rows.header;
  header.insert(header.end(), predicted_columns().begin(), predicted_columns().end());
  for (const std::string& column : header) kinds.emplace_back(name(kind_of_column(column)));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.count; ++i) {
    lines.push_back(rows.cells_of(i));
    order.push_back(i);
  }
  bring_together(order, rows);
  const TextTask task = [&](std::size_t i) { return to_json(predict_row(rows.case_of(order[i]), fidelity)); };
  const auto take = [&](std::size_t i, const Reply& reply) {
    const std::vector<std::string> cells =
        reply.kind == Reply::Kind::answer ? predicted_cells(result_from_json(reply.text)) : failed_cells(reply.text);
    std::vector<std::string>& row = std::get<2>(answer)[order[i]];
    row.insert(row.end(), cells.begin(), cells.end());
  };
  answer_all(rows.count, jobs > 0 ? jobs : default_workers(), task, take, interrupted_by_python);
  return answer;
}

SweepAnswer sweep_file(const std::string& file, const std::string& table, const std::vector<std::string>& variations,
                       const std::vector<std::string>& overrides, const std::string& fidelity, int jobs) {
  SweepAnswer answer;
  {
    const Computing computing;
    answer = sweep({file, table, variations, overrides, {}, ""}, fidelity, jobs);
  }
  raise_interrupt();
  return answer;
}

std::tuple<int, std::string, std::string> command(const std::vector<std::string>& arguments) {
  CommandOutput said;
  {
    const Computing computing;
    said = run_command(arguments, interrupted_by_python);
  }
  raise_interrupt();
  return {said.status, said.output, said.messages};
}

std::vector<CatalogueEntry> entries_of(const std::string& section) {
  if (section == "scenarios") return list_scenarios();
  if (section == "hardware") return list_hardware();
  if (section == "models") return list_models();
  if (section == "frameworks" || section == "trainers") return list_trainers();
  throw UsageError("the catalogue has scenarios, hardware, models and frameworks");
}

/// Names with their descriptions.
std::vector<std::pair<std::string, std::string>> catalogue(const std::string& section) {
  const Computing computing;
  std::vector<std::pair<std::string, std::string>> names;
  for (const CatalogueEntry& entry : entries_of(section)) names.emplace_back(entry.name, entry.description);
  return names;
}

/// Exceptions become those of foretrain/errors.py.
void raise_in_python(std::exception_ptr thrown) {  // NOLINT(performance-unnecessary-value-param): as pybind11 calls it
  const auto raise = [](const char* type, const py::object& made) {
    PyErr_SetObject(py::module_::import("foretrain.errors").attr(type).ptr(), made.ptr());
  };
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const ScenarioError& error) {
    const SourcePosition& where = error.where();
    raise("ScenarioError", py::module_::import("foretrain.errors")
                               .attr("ScenarioError")(error.what(), where.file, where.line, where.column, error.key(),
                                                      error.got(), error.expected()));
  } catch (const UsageError& error) {
    raise("UsageError", py::str(error.what()));
  } catch (const ImpossiblePlan& error) {
    raise("UsageError", py::str(error.what()));
  } catch (const std::logic_error& error) {
    raise("PredictionError", py::str(internal_error_text(error.what())));
  } catch (const std::runtime_error& error) {
    raise("PredictionError", py::str(error.what()));
  }
}

}  // namespace

}  // namespace foretrain

PYBIND11_MODULE(_foretrain, module) {
  using namespace foretrain;
  py::register_exception_translator(raise_in_python);
  module.attr("__version__") = FORETRAIN_VERSION;
  module.def("predict", predict_file, py::arg("file"), py::arg("overrides"), py::arg("fidelity"));
  module.def("sweep", sweep_file, py::arg("file"), py::arg("table"), py::arg("variations"), py::arg("overrides"),
             py::arg("fidelity"), py::arg("jobs"));
  module.def("command", command, py::arg("arguments"));
  module.def("stack_override", stack_override, py::arg("stack"));
  module.def("catalogue", catalogue, py::arg("section"));
}
