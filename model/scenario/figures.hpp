// Figures of hardware files: read, and noted with their source.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/constant.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// Kind and text of a `source:` or of an entry of `sources:`, either `{ kind: fit, text: "…" }`.
struct Source {
  ConstantKind kind = ConstantKind::assumption;
  std::string text;
};
Source read_source(const Field& field);

/// Warnings of a mapping's `assumed:`: the key, and why. Keys that another file has stated since are left
/// out.
std::vector<std::string> assumed_in(const MappingReader& owner);

/// Collects the constants of one piece of hardware. `sources:` maps figures, or mappings of figures ("cpu",
/// "network.efficiency"), to where they come from; `default` stands for all others. Figures that a scenario states or
/// replaces are assumptions of that scenario.
class FigureLog {
 public:
  /// `owner` is the mapping of the hardware, `name` what its constants are called after. Throws ScenarioError when an
  /// entry of `sources:` names no key of the owner, and when a catalogue file (with a `kind:`) has no default source.
  FigureLog(std::string name, const Field& owner);
  /// Of what has no sources of its own.
  FigureLog(std::string name, std::string owner_path) : name_(std::move(name)), owner_path_(std::move(owner_path)) {}

  void add(const Field& figure);
  /// For figures with a `source:` of their own.
  void add(const Field& figure, const Source& source);
  /// Adds a mapping's stated keys, with the mapping's own source if it has one.
  void add(const MappingReader& mapping, std::initializer_list<std::string_view> keys,
           const std::optional<Source>& source = std::nullopt);
  void append(const std::vector<Constant>& constants);
  [[nodiscard]] std::vector<Constant> take() && { return std::move(constants_); }

 private:
  [[nodiscard]] Source source_of(const Field& figure) const;
  [[nodiscard]] std::string relative_path(const Field& figure) const;

  std::string name_, owner_path_;
  std::set<std::string> files_;  ///< whose figures the sources are of
  std::vector<std::pair<std::string, Source>> sources_;
  std::vector<Constant> constants_;
};

/// Reads a figure that must be there, and notes it.
template <typename Q>
Q figure(const MappingReader& mapping, std::string_view key, FigureLog& log) {
  const Field field = mapping[key];
  log.add(field);
  return field.as<Q>();
}

}  // namespace foretrain
