#include <fmt/ranges.h>

#include <tuple>

#include "model/scenario/catalogue.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/load.hpp"
#include "model/workload/stated_operators.hpp"

namespace foretrain {

namespace {

/// The records that keys of a scenario fill, each by the path of the mapping that has the keys.
class Records {
 public:
  explicit Records(const Scenario& scenario) : plan_(scenario.plan) {
    const Cluster& cluster = scenario.cluster;
    const Network& network = cluster.network;
    if (cluster.groups.empty()) add("cluster.network", network);  // else each group has its own
    add("cluster.network", network.sharing);
    if (!std::holds_alternative<SingleSwitch>(network.fabric.shape)) {
      std::visit([&](const auto& shape) { add("cluster.network.fabric", shape); }, network.fabric.shape);
    }
    add("cluster.network.transport", network.transport);
    for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
      add(fmt::format("cluster.groups[{}]", i), cluster.groups[i]);
      add(fmt::format("cluster.groups[{}].network", i), cluster.groups[i].network);
    }
    add("plan", plan_);
    std::visit([this](const auto& work) { add_work(work); }, scenario.workload);
  }

  /// Null where no key at that path fills such a record.
  [[nodiscard]] const void* find(std::string_view path, const void* type) const {
    const auto found =
        std::ranges::find_if(all_, [&](const Part& part) { return part.type == type && part.path == path; });
    return found == all_.end() ? nullptr : found->record;
  }
  [[nodiscard]] bool has_any_at(std::string_view path) const {
    return std::ranges::find(all_, path, &Part::path) != all_.end();
  }

 private:
  struct Part {
    std::string path;
    const void *record, *type;
  };

  template <typename T>
  void add(std::string path, const T& record) {
    all_.push_back({std::move(path), &record, &keys::type_of_record<T>});
  }
  template <typename T>
  void add(std::string path, const std::optional<T>& record) {
    if (record) add(std::move(path), *record);
  }

  void add_work(const TrainWorkload& train) {
    add("plan.zero", plan_);
    add("plan.sync", plan_.sync);
    add("workload.train", train);
    add("workload.train", train.code);
    std::visit([this](const auto& shape) { add_model("workload.train.model", shape); }, train.model.shape);
    if (train.parts.quantised.any()) add("workload.train.quantisation", train.parts.quantised);
    if (train.data) add("workload.train.data.batching", train.data->batching);
    if (train.loader) add_loader("workload.train.loader", *train.loader);
    add("workload.train.checkpoint", train.checkpoint);
    if (train.checkpoint) add("workload.train.checkpoint.storage", train.checkpoint->storage);
    add("workload.train.recovery", train.recovery);
  }
  void add_work(const CollectiveWorkload& /*work*/) {
    add("plan.sync", plan_.sync);
    add("workload.collective", plan_.sync);
  }
  void add_work(const OperatorWorkload& work) {
    add("workload.operator", work.conditions);
    std::visit([this](const auto& shape) { add("workload.operator", shape); }, work.op.work);
    if (std::holds_alternative<Streaming>(work.op.work))
      add_new<ElementwiseShape, RowsShape, BatchNormShape, PoolingShape, EmbeddingShape, UpdateShape>();
  }
  /// Of shapes that are not kept, what holds without their keys.
  template <typename... Shapes>
  void add_new() {
    static const std::tuple<Shapes...> shapes;
    (add("workload.operator", std::get<Shapes>(shapes)), ...);
  }
  void add_work(const HostWorkload& work) {
    std::visit([this](const auto& shape) { add("workload.operator", shape); }, work.work);
  }
  void add_work(const StorageWorkload& work) {
    add("workload.operator", work.pattern);
    add("workload.operator.storage", work.storage);
  }
  void add_work(const LoaderWorkload& work) { add_loader("workload.operator", work.loader); }
  void add_work(const TasksWorkload& /*work*/) {}

  void add_model(const std::string& path, const TransformerConfig& model) {
    add(path, model);
    if (!model.pattern.empty()) add(path, model.mamba);
  }
  void add_model(const std::string& /*path*/, const NetworkConfig& /*model*/) {}
  void add_model(const std::string& path, const VisionLanguageConfig& model) {
    add(path + ".vision", model.vision);
    add(path + ".projector", model.projector);
    add(path + ".language", model.language);
  }
  void add_loader(const std::string& path, const DataLoader& loader) {
    add(path, loader);
    if (!(loader.per_sample > Seconds(0.0))) add(path, loader.stages);
    add(path + ".dataset", loader.dataset);
    add(path + ".storage", loader.storage);
  }

  const Plan& plan_;
  std::vector<Part> all_;
};

class Resolver {
 public:
  explicit Resolver(const Scenario& scenario) : scenario_(scenario), records_(scenario) {}

  std::vector<ResolvedSetting> values() && {
    visit_mappings(scenario_.where.document, keys::scenario, [this](const DocumentMapping& one) { add(one); });
    return std::move(values_);
  }

 private:
  /// A scenario states only the changes of a preset, and one kind of work.
  void add(const DocumentMapping& mapping) {
    if (mapping.node.is_scalar()) return;  // { sleep: 2 ms }
    const bool stated_alone = mapping.node.find("preset") != nullptr || mapping.node.find("hf") != nullptr ||
                              mapping.known.front() == keys::workload.keys.data();
    for (const keys::Key* key : mapping.known) {
      if (*std::ranges::find(mapping.known, key->name, &keys::Key::name) != key) continue;  // of two variants
      const std::string path = join_path(mapping.path, key->name);
      const YamlEntry* entry = mapping.node.find(key->name);
      const auto opens = [](const keys::Form& form) { return form.mapping != nullptr; };  // a mapping of keys
      if (entry == nullptr) {
        if (!stated_alone) add_unstated(mapping, path, *key);
      } else if (entry->value.is_scalar() || std::ranges::none_of(key->value.forms(), opens)) {
        values_.push_back(
            {path, in_one_line(entry->value), origin_of(entry->value.where), place_of(entry->value.where)});
      }
    }
  }

  /// Places without lines are words of the command line, or what chose the value in its stead ("plan: auto").
  [[nodiscard]] ResolvedSetting::From origin_of(const SourcePosition& where) const {
    if (where.line == 0)
      return where.file.starts_with("--") ? ResolvedSetting::From::command_line : ResolvedSetting::From::assumed;
    const auto in_file = [&](const auto& stated) { return stated.second.file == where.file; };
    return std::ranges::any_of(scenario_.where.framework, in_file) ? ResolvedSetting::From::trainer
                                                                   : ResolvedSetting::From::scenario;
  }

  /// Path of a catalogue file below its folder, the same wherever that is.
  static std::string place_of(SourcePosition where) {
    const std::string folder = (data_directory() / "").string();
    if (where.file.starts_with(folder)) where.file.erase(0, folder.size());
    return where.text();
  }

  /// Adds the key's default; keys without one are left out.
  void add_unstated(const DocumentMapping& mapping, const std::string& path, const keys::Key& key) {
    const auto setting = std::ranges::find(scenario_.framework_settings, path, &ResolvedSetting::key);
    if (setting != scenario_.framework_settings.end()) {
      const auto& train = std::get<TrainWorkload>(scenario_.workload);
      if (!key.framework->means_something({scenario_.cluster, scenario_.plan, &train})) return;
      values_.push_back(*setting);
      if (setting->from == ResolvedSetting::From::trainer) values_.back().source.insert(0, scenario_.trainer + ": ");
    } else if (key.value.all[0].mapping != nullptr && records_.has_any_at(path) && usual_value(key).empty()) {
      static const YamlNode nothing = yaml_mapping({});
      add({nothing, path, keys::keys_of(key.value.all[0], "")});
    } else if (means_something(mapping, path, key)) {
      const bool per_gpu = key.name == "global_batch" && mapping.node.find("global_batch_per_gpu") != nullptr;
      const std::string usual = per_gpu ? "global_batch_per_gpu x GPUs" : usual_of(key);
      const std::string value = held_by(mapping.path, path, key);
      if (value.empty()) return;
      values_.push_back(
          {path, value, ResolvedSetting::From::assumed, value == usual ? "default" : "default: " + usual});
    }
  }

  /// Whether the key could be stated as well.
  [[nodiscard]] bool means_something(const DocumentMapping& mapping, const std::string& path,
                                     const keys::Key& key) const {
    const Plan& plan = scenario_.plan;
    const auto* const train = std::get_if<TrainWorkload>(&scenario_.workload);
    const bool trains = train != nullptr;
    const bool exchanges = std::holds_alternative<CollectiveWorkload>(scenario_.workload);
    if (path == "plan.execution") return !trains && !exchanges;
    // Few frameworks decide these.
    if (path == "plan.zero" || path == "plan.sync.algorithm") return trains && replicas_of(plan) > 1;
    // Frameworks have something for all trainings to which any other such key means something.
    if (key.framework != nullptr || (mapping.path == "plan" && !trains)) return false;
    if (mapping.path == "cluster" && !scenario_.cluster.groups.empty()) {
      return !path.starts_with("cluster.node") && path != "cluster.gpus_per_node";
    }
    if (keys::is_server_key(key.name) && (mapping.path == "plan.sync" || mapping.path == "workload.collective")) {
      return has_servers(plan.sync.algorithm) && trains == (mapping.path == "plan.sync");
    }
    if (path == "workload.train.attention") return !std::holds_alternative<NetworkConfig>(train->model.shape);
    if (path == "plan.placement") return !has_servers(plan.sync.algorithm);
    if (path == "plan.reshard_after_forward") return plan.zero == 3;
    return !key.together.starts_with("Instead of") && goes_together(mapping, key);
  }

  /// Whether what the key goes together with holds, where that is another key of the mapping.
  [[nodiscard]] bool goes_together(const DocumentMapping& mapping, const keys::Key& key) const {
    if (key.together == "fp8") return mapping.path.ends_with(".fp8");
    const auto other = keys::companion_of(key, mapping.known);
    if (!other) return true;
    const auto held = std::ranges::find(values_, join_path(mapping.path, other->key->name), &ResolvedSetting::key);
    return held == values_.end() ? mapping.node.find(other->key->name) != nullptr : other->suits(held->value);
  }

  [[nodiscard]] std::string held_by(const std::string& mapping, const std::string& path, const keys::Key& key) const {
    const Cluster& cluster = scenario_.cluster;
    const Plan& plan = scenario_.plan;
    if (path == "name") return scenario_.name;
    if (path == "cluster.gpus_per_node") return fmt::to_string(cluster.gpus_per_node);
    if (path == "cluster.nccl") {
      return cluster.nccl.none() ? "none" : fmt::format("{}.{}", cluster.nccl.major, cluster.nccl.minor);
    }
    if (path == "plan.expert_tensor") return fmt::to_string(plan.folded_experts ? 1 : plan.tensor);
    if (path == "plan.order") {
      std::vector<std::string_view> order;
      for (const ParallelDimension dimension : plan.order) order.push_back(name(dimension));
      return fmt::format("{}", fmt::join(order, "-"));
    }
    if (const auto* train = std::get_if<TrainWorkload>(&scenario_.workload)) {
      if (path == "workload.train.precision") return std::string(name(train->precision));
    }
    if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario_.workload)) {
      if (path == "workload.collective.ranks") return fmt::to_string(collective->ranks);
    }
    const void* record = records_.find(mapping, key.member.record);
    if (key.member.written != nullptr && record != nullptr) return key.member.written(record, key);
    // Several kinds of fabrics, models and operators have keys in one table.
    const bool of_others = key.member.record != nullptr && record == nullptr && records_.has_any_at(mapping);
    return of_others ? "" : usual_value(key);
  }

  const Scenario& scenario_;
  const Records records_;
  std::vector<ResolvedSetting> values_;
};

}  // namespace

std::vector<ResolvedSetting> resolved_values(const Scenario& scenario) { return Resolver(scenario).values(); }

}  // namespace foretrain
