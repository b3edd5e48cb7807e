// A scenario's plan as files of trainers: what the scenario states, in the words of settings.def, the table by which
// such files are imported. Settings that the scenario does not state are left to the trainer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

class Outgoing;

/// A trainer whose files are written.
struct Exporter {
  std::string_view word, writes;
  std::string (*write)(Outgoing& out);
};

/// In the order of exporters.def.
std::span<const Exporter> exporters();

/// The word of the trainer whose files have the framework that the scenario names; "" for others.
std::string exporter_of(const Scenario& scenario);

struct ExportedFile {
  std::string text;
  /// "plan.sync.bucket: 25 MB": what the scenario states and the file, imported again, does not.
  std::vector<std::string> unsaid;
  /// "plan.sync.overlap: predicted true, by default false": not stated, a file could have it, and the trainer does
  /// otherwise by itself.
  std::vector<std::string> otherwise;
  /// The framework that predictions of this trainer name, where the scenario names another or none.
  std::string framework = {};
};

/// Throws ScenarioError for a scenario that does not train, and for a model that the trainer cannot have.
ExportedFile export_scenario(const Exporter& exporter, const Scenario& scenario);

#define EXPORTER(name, word, writes) std::string export_##name(Outgoing& out);
#include "reports/export/exporters.def"

}  // namespace foretrain
