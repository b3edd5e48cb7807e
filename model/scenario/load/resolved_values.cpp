#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/scenario/catalogue.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

class Resolver {
 public:
  explicit Resolver(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<Trait> values() && {
    visit_mappings(scenario_.where.document, keys::scenario, [this](const DocumentMapping& one) { add(one); });
    return std::move(values_);
  }

 private:
  /// Of a preset only what is changed is the scenario's to say, of kinds of work only the one.
  void add(const DocumentMapping& mapping) {
    const bool stated_alone = mapping.node.find("preset") != nullptr || mapping.node.find("hf") != nullptr ||
                              mapping.known.front() == keys::workload.keys.data();
    for (const keys::Key* key : mapping.known) {
      if (*std::ranges::find(mapping.known, key->name, &keys::Key::name) != key) continue;  // of two variants
      const std::string path = join_path(mapping.path, key->name);
      const YamlEntry* entry = mapping.node.find(key->name);
      if (entry == nullptr) {
        if (!stated_alone) add_unstated(path, *key);
      } else if (!is_opened(*entry, *key)) {
        const SourcePosition& where = entry->value.where;
        const auto from = where.line == 0 ? Trait::From::command_line : Trait::From::scenario;
        values_.push_back({path, in_one_line(entry->value), from, place_of(where)});
      }
    }
  }

  /// Of the catalogue's files below its folder: the same wherever that lies.
  static std::string place_of(SourcePosition where) {
    const std::string folder = (data_directory() / "").string();
    if (where.file.starts_with(folder)) where.file.erase(0, folder.size());
    return where.text();
  }

  /// Whether what it holds is told key by key.
  static bool is_opened(const YamlEntry& entry, const keys::Key& key) {
    const auto opens = [](const keys::Form& form) { return form.mapping != nullptr; };
    return !entry.value.is_scalar() && std::ranges::any_of(key.value.forms(), opens);
  }

  void add_unstated(const std::string& path, const keys::Key& key) {
    const auto setting = std::ranges::find(scenario_.traits, path, &Trait::key);
    if (setting != scenario_.traits.end()) {
      values_.push_back(*setting);
      if (setting->from == Trait::From::trainer) values_.back().source.insert(0, scenario_.trainer + ": ");
    } else if (const keys::Mapping* table = key.value.all[0].mapping; table != nullptr && has_record_of(path, *table)) {
      static const YamlNode nothing = yaml_mapping({});
      add({nothing, path, keys::keys_of(key.value.all[0], "")});
    } else {
      const std::string held = held_by(path, key), usual = usual_of(key);
      const std::string value = !held.empty() ? held : usual.empty() || usual.starts_with("needed") ? "none" : usual;
      values_.push_back(
          {path, value, Trait::From::assumed, value == usual || usual.empty() ? "default" : "default: " + usual});
    }
  }

  /// Whether the scenario has a record that keys of the table at this path fill.
  [[nodiscard]] bool has_record_of(const std::string& path, const keys::Mapping& table) const {
    const std::string within = path + ".";
    return std::ranges::any_of(table.keys, [&](const keys::Key& key) { return record_of(within, key) != nullptr; });
  }
  [[nodiscard]] std::string held_by(const std::string& path, const keys::Key& key) const {
    const auto& [cluster, plan] = std::tie(scenario_.cluster, scenario_.plan);
    if (path == "cluster.gpus_per_node") return std::to_string(cluster.gpus_per_node);
    if (path == "cluster.nodes") return std::to_string(cluster.nodes);
    if (path == "cluster.nccl") {
      return cluster.nccl.none() ? "none" : fmt::format("{}.{}", cluster.nccl.major, cluster.nccl.minor);
    }
    if (path == "plan.expert_tensor") return std::to_string(plan.folded_experts ? 1 : plan.tensor);
    const void* record = key.member.written == nullptr ? nullptr : record_of(path, key);
    return record == nullptr ? "" : key.member.written(record, key);
  }
  /// Null for what is no record of the scenario's own: networks of groups and of inline nodes are not the cluster's.
  [[nodiscard]] const void* record_of(const std::string& path, const keys::Key& key) const {
    const Plan& plan = scenario_.plan;
    const Network* network = path.starts_with("cluster.network.") ? &scenario_.cluster.network : nullptr;
    const auto* train = std::get_if<TrainWorkload>(&scenario_.workload);
    const std::pair<const void*, const void*> records[] = {
        {&keys::type_of_record<Plan>, train == nullptr ? nullptr : &plan},
        {&keys::type_of_record<Sync>, &plan.sync},
        {&keys::type_of_record<Network>, network},
        {&keys::type_of_record<Sharing>, network == nullptr ? nullptr : &network->sharing},
        {&keys::type_of_record<TrainWorkload>, train},
        {&keys::type_of_record<TrainerCode>, train == nullptr ? nullptr : &train->code}};
    const auto* record = std::ranges::find(records, key.member.record, &std::pair<const void*, const void*>::first);
    return record == std::end(records) ? nullptr : record->second;
  }

  const Scenario& scenario_;
  std::vector<Trait> values_;
};

}  // namespace

std::vector<Trait> resolved_values(const Scenario& scenario) { return Resolver(scenario).values(); }

}  // namespace foretrain
