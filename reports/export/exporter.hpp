// A scenario's plan as files of trainers: what the scenario states, in the words of settings.def, the table by which
// such files are imported. Settings that the scenario does not state are left to the trainer.
#pragma once

#include <map>
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
  std::string_view lacks;  ///< see exporters.def
  /// Whether it cannot have the key where its file does not say it.
  [[nodiscard]] bool lacking(std::string_view key) const;
  /// Whether it lacks the key by name, and no file says it.
  [[nodiscard]] bool never_has(std::string_view key) const;
};

/// In the order of exporters.def.
std::span<const Exporter> exporters();

/// The word of the trainer whose files have the framework that the scenario names; "" for others.
std::string exporter_of(const Scenario& scenario);

struct ExportedFile {
  std::string text;
  /// "plan.sync.bucket: 25 MB": what the scenario states and the file, imported again, does not.
  std::vector<std::string> unsaid;
  /// Those lines by key of settings in use that the trainer lacks; "" for a plan that it refuses.
  std::multimap<std::string, std::string> lacking = {};
  /// "plan.sync.overlap: predicted true, by default false": not stated, a file could have it, and the trainer does
  /// otherwise by itself.
  std::vector<std::string> otherwise;
  /// The framework that predictions of this trainer name, where the scenario names another or none.
  std::string framework = {};
};

/// Throws ScenarioError for a scenario that does not train, and for a model that the trainer cannot have.
ExportedFile export_scenario(const Exporter& exporter, const Scenario& scenario);

#define EXPORTER(name, word, writes, lacks) std::string export_##name(Outgoing& out);
#include "reports/export/exporters.def"

}  // namespace foretrain
