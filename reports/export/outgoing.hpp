// A file of a trainer in the making: what the scenario states, and what the file has of it so far.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Stated values of a scenario's training and plan, by dotted key; of a transformer each value, and the precision,
/// stated or not, and the batch in samples.
std::map<std::string, std::string> stated_values(const Scenario& scenario);

class Outgoing {
 public:
  /// Throws ScenarioError for a scenario that does not train.
  explicit Outgoing(const Scenario& scenario);

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const Plan& plan() const { return scenario_.plan; }
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }
  /// Throws ScenarioError for a model that is none.
  [[nodiscard]] const TransformerConfig& transformer() const;

  /// Stated value of a key.
  [[nodiscard]] std::optional<std::string> stated(const std::string& key) const;
  [[nodiscard]] bool states(const std::string& key, std::string_view value) const { return stated(key) == value; }

  /// The file has no place for these keys, nor for those below them.
  void leave_out(std::initializer_list<std::string_view> keys) { left_out_.insert(left_out_.end(), keys); }
  [[nodiscard]] bool leaves_out(std::string_view key) const;

  /// The file says these keys in words that its importer does not read.
  void say_unread(std::initializer_list<std::string_view> keys) { unread_.insert(unread_.end(), keys); }
  /// Stated keys that no row has read.
  [[nodiscard]] std::map<std::string, std::string> unread() const;

  /// Why the trainer does not run the plan: "torchtitan refuses …".
  void refuse(std::string why) { refused_.push_back(std::move(why)); }
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }

  void put(const std::string& theirs, std::string value);
  /// Writes the rows of a group of settings.def, each of our keys once, except those that begin so.
  void put_rows(std::string_view group, std::initializer_list<std::string_view> without = {});
  /// In the order in which they were put. Switches are "true" or "false".
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }

 private:
  const Scenario& scenario_;
  std::map<std::string, std::string> stated_;
  std::vector<std::string_view> left_out_, unread_;
  std::vector<std::string> refused_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

/// Arguments of Megatron-LM, without those of its launcher.
void put_megatron_arguments(Outgoing& out);
/// Writes offloading, by the keys that place optimizer states and parameters: "cpu" or "nvme".
void put_offload(Outgoing& out, const std::string& optimizer, const std::string& parameters);
/// Without those of parameter servers and of other jobs.
std::int64_t training_nodes(const Scenario& scenario);
/// Micro-batches that each replica adds up.
std::int64_t accumulated(const Outgoing& out);

// Dotted settings as a file. Numbers, true and false stand as they are, all else in quotes where the format has them.
std::string as_yaml(const Outgoing& out);
std::string as_toml(const Outgoing& out);
std::string as_json(const Outgoing& out);

}  // namespace foretrain
