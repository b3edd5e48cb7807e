// `--vary KEY=VALUES`: which values a key takes in a sweep.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/load/cases.hpp"

namespace foretrain {

/// One key and its values, or several keys that change together: "a,b" and "1:2", "2:4".
struct Variation {
  std::string key;
  std::vector<std::string> values;

  [[nodiscard]] std::vector<std::string> keys() const;
  /// One value for each key.
  [[nodiscard]] std::vector<std::string> values_at(std::size_t place) const;
};

/// Reads "KEY=V1,V2,…" (commas inside parentheses, brackets, braces and quotes belong to a value), "KEY=A..B" (whole
/// steps of one), "KEY=A..B+N" (steps of N) or "KEY=A..BxN" (each N times the one before). A and B may carry the same
/// unit. Keys that change together have a colon between their values: "KEY,OTHER=V1:W1,V2:W2". Throws UsageError.
Variation parse_variation(const std::string& text);
std::vector<Variation> parse_variations(const std::vector<std::string>& texts);

/// One case per combination, the last key changing fastest, each with `base` as its base and the other overrides
/// ("KEY=VALUE") in force. A value may be a whole way of synchronising (sync_choice), and keys of parameter servers
/// count beside algorithms that have them.
class Combinations {
 public:
  /// Throws UsageError for more than `most`, and for a key that is given twice.
  Combinations(std::string base, const std::vector<std::string>& overrides, const std::vector<Variation>& variations,
               std::size_t most = 1'000'000);

  [[nodiscard]] std::size_t size() const { return count_; }
  /// Named after the keys and values that count.
  [[nodiscard]] Case at(std::size_t number) const;
  /// The numbers of those that differ: others repeat an earlier one but for keys that do not count.
  [[nodiscard]] std::vector<std::size_t> distinct() const;
  /// In words, of the variations from `first` on or of the first alone: "ring, tensor-parallel GPUs: 4".
  [[nodiscard]] std::string words(std::size_t number, std::size_t first = 0) const;
  [[nodiscard]] std::string first_words(std::size_t number) const;
  /// The keys that variations set, in order, and those of the common overrides before them.
  [[nodiscard]] const std::vector<std::string>& varied() const { return varied_; }
  [[nodiscard]] std::vector<std::string> columns() const;

 private:
  /// Overrides of a key's value.
  struct Part {
    std::string key, value;
    std::vector<Override> overrides;
    int added_machines = 0;
  };
  using Choice = std::vector<Part>;  ///< by key of the variation

  static Part part_of(const std::string& key, const std::string& value);
  /// Whether the row has what the part sets.
  static bool counts(const Part& part, const Case& row);
  [[nodiscard]] std::vector<const Part*> parts_of(std::size_t number, std::size_t first = 0) const;

  std::string base_;
  std::vector<Override> common_;
  std::vector<std::string> varied_;
  std::vector<std::vector<Choice>> choices_;  ///< by variation and value
  std::size_t count_ = 1;
};

/// A whole way of synchronising as one value of --vary, by its settings: "ring", "servers(8)",
/// "servers(8,dedicated,added)".
struct SyncChoice {
  std::vector<std::pair<std::string, std::string>> settings;  ///< dotted keys and their values
  int added_machines = 0;  ///< so many more than the scenario has: dedicated servers that take none of its machines
};

/// Reads a value of `plan.sync`, `plan.sync.algorithm` or `workload.collective.algorithm`: an algorithm's name, or
/// servers(N), servers(N,PLACEMENT), servers(N,dedicated,added). Nothing for other keys, and for a mapping. Throws
/// UsageError.
std::optional<SyncChoice> sync_choice(std::string_view key, std::string_view value);

/// In words: "ring", "8 servers", "8 dedicated servers, added".
std::string sync_words(std::string_view value);

/// Raises cluster.nodes of the row by so many. Throws UsageError where the scenario has machines of several kinds.
void add_machines(Case& row, int machines);

/// Takes out what the row's own algorithm has no use for: keys of parameter servers beside an algorithm without them.
void leave_out_unused(std::vector<Override>& overrides);

}  // namespace foretrain
