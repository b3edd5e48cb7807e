// A framework's configuration as a flat list of keys and values, and the tables by which importers turn these
// into a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/yaml_document.hpp"
#include "reports/import/draft.hpp"

namespace foretrain {

/// Throws ScenarioError at the setting.
[[noreturn]] void fail(const ForeignSetting& setting, std::string got, std::string expected);

/// The last setting of a key counts, as on command lines. A caller that asks for a setting has understood it.
class Settings {
 public:
  explicit Settings(std::vector<ForeignSetting> all) : all_(std::move(all)), understood_(all_.size(), false) {}

  /// The setting, or null; also where its value says that there is none ("null", "none", "auto", "-1" of tools that
  /// write so).
  const ForeignSetting* find(std::string_view key);
  /// Whether the value is left to the framework: "auto".
  [[nodiscard]] bool is_auto(std::string_view key) const;
  /// True for "true", "1", "yes" and a key that stands alone, false for their opposites and a key that is missing.
  bool flag(std::string_view key);
  /// A whole number from `least` to `most`, or nothing, also where it is a variable that the file does not set.
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t least = 1, std::int64_t most = 1'000'000'000);
  /// Every key that begins so is understood.
  void ignore(std::string_view beginning);
  /// Ignores settings without effect on time or memory, by the tool's lines of settings.def.
  void ignore_without_time(std::string_view tool);
  [[nodiscard]] bool any_understood() const;
  /// Puts those that nobody asked for among what is not understood.
  void leave_out_rest(Draft& draft) const;

 private:
  std::vector<ForeignSetting> all_;
  std::vector<bool> understood_;
};

/// The words beside a row's function: what its value becomes, or texts of an error.
struct ValueWords {
  std::string_view text, wrong, right;
};

/// A setting that decides one value of a scenario: a row of settings.def.
struct SettingRow {
  bool is_alias;
  std::string_view group, theirs, key;
  std::optional<std::string> (*value)(const ForeignSetting& setting, const ValueWords& words);
  ValueWords words = {};

  /// The dotted key of ours.
  [[nodiscard]] std::string_view ours() const;
  /// The tool's word for a value of ours: "true" or "false" of a switch; nothing where it has no word for it.
  [[nodiscard]] std::optional<std::string> their_value(const std::string& our_value) const;
};
std::span<const SettingRow> all_settings();

/// Writes what the rows of a group of settings.def say, where the draft has nothing yet.
void set_rows(Settings& settings, std::string_view group, Draft& draft);

// Values of rows; nothing: there is nothing to say. Each throws ScenarioError for what it cannot be.
std::optional<std::string> whole_number(const ForeignSetting& setting, const ValueWords& words = {});
/// Nothing for 0.
std::optional<std::string> positive_number(const ForeignSetting& setting, const ValueWords& words = {});
std::optional<std::string> true_or_false(const ForeignSetting& setting, const ValueWords& words = {});
/// Whether a limit, which zero turns off, is on: true or false. Nothing for a variable that the file does not set.
std::optional<std::string> whether_above_zero(const ForeignSetting& setting, const ValueWords& words = {});
std::optional<std::string> as_written(const ForeignSetting& setting, const ValueWords& words = {});
/// A positive number of elements in fp32.
std::optional<std::string> bytes_of_elements(const ForeignSetting& setting, const ValueWords& words = {});
/// The text where the setting is true, else nothing.
std::optional<std::string> where_true(const ForeignSetting& setting, const ValueWords& words);
/// Word for the value in "theirs=ours same …", in any case.
std::optional<std::string> in_our_words(const ForeignSetting& setting, const ValueWords& words);

/// Every scalar below a node as a setting; items of lists of mappings are "key[0]", lists of scalars "[a, b]".
std::vector<ForeignSetting> flat_settings(const YamlNode& document);

/// The GPUs that a configuration speaks of.
struct TrainingSize {
  std::optional<std::int64_t> gpus, gpus_per_node, nodes;
  std::int64_t replica = 1;  ///< GPUs that hold one replica of the model together: as many train at least
  SourcePosition where;      ///< of what says so
  std::string told_by;       ///< named; empty where nothing says it

  void said_by(const ForeignSetting& setting) {
    where = setting.where;
    told_by = named(setting);
  }
};

/// Node, nodes and GPUs of each: said where the size tells them, else assumed. How many GPUs these are.
std::int64_t set_cluster(Draft& draft, const TrainingSize& size);
/// Sets the samples of one rank in a step as the batch of each GPU: of those that hold a replica together, a share.
void set_batch_of_rank(Draft& draft, std::int64_t samples, const ForeignSetting& says);
/// The number that a key of the draft has; 1 where it has none.
std::int64_t number_of(const Draft& draft, std::string_view key);
void assume_model(Draft& draft);
/// Reads offloading, by the keys that place the optimizer's states and the parameters: cpu, nvme or none.
void set_offload(Settings& settings, Draft& draft, const std::string& optimizer, const std::string& parameters);
/// The scenario, in which what nobody asked for stands as not understood.
std::string finished_training(Settings& settings, Draft& draft, std::string_view tool);

/// Every option as a setting "--key" with the word behind it, in the order of the file; those of `#SBATCH` lines as
/// "#SBATCH --key". Quotes, comments, continued lines, arrays and strings of options are understood, variables and
/// $(( … )) are put in as far as the file sets them. What it does not set stays as it is written ("$RANK"). Conditions
/// and loops are not followed: what is assigned last above a use counts. Throws ScenarioError for a quote that is not
/// closed.
std::vector<ForeignSetting> shell_arguments(std::string_view text, const std::string& file);

}  // namespace foretrain
