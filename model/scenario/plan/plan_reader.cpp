#include "model/scenario/plan/plan_reader.hpp"

#include <numeric>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

namespace {

Field bucket_rules() {
  return Field(cached_yaml_file((data_directory() / "buckets.yaml").string()), "").mapping(keys::buckets_file)["rules"];
}

bool adds_up_locally(const Sync& sync) { return sync.algorithm == SyncAlgorithm::hierarchical_parameter_server; }

/// The size that the plan's rule comes to, once the rest of the plan is known.
void set_bucket(Plan& plan) {
  Sync& sync = plan.sync;
  if (plan.zero == 3 || sync.bucket_rule.empty()) return;
  const MappingReader rule = bucket_rules().at(sync.bucket_rule).mapping();
  const double ranks = static_cast<double>(plan.data) * plan.context;
  const double elements = std::max(rule.value_or("elements", 0.0), rule.value_or("elements_per_rank", 0.0) * ranks);
  const Bytes size = std::max(rule.value_or("size", Bytes(0.0)), bytes_per_element(sync.gradient_precision) * elements);
  // Without overlap, several buckets only save memory.
  const BucketsWhole whole = rule.value_or("whole", BucketsWhole::never);
  const bool alone = whole == BucketsWhole::without_overlap && !sync.overlap && !divides_gradients(plan);
  sync.bucket = whole == BucketsWhole::always || alone ? Bytes::infinity() : size;
  if (!(sync.first_bucket > Bytes(0.0))) sync.first_bucket = rule.value_or("first_bucket", Bytes(0.0));
}

/// Refuses contradictions within `zero: { stage: 2, shard: 8, gradients: kept, by: scatter }`.
void check_zero(const MappingReader& keys, const Plan& plan) {
  keys.fail_if(plan.shard > 0 && plan.zero == 0, "shard", "stage 0 divides nothing",
               "stage: 1, 2 or 3, or leave the key out");
  keys.fail_if(plan.zero != 2 && keys.has("gradients"), "gradients",
               "stage {} leaves no choice of when gradients are scattered", "stage: 2, or leave the key out",
               plan.zero);
  keys.fail_if((plan.zero == 0 || plan.zero == 3) && keys.has("by"), "by",
               "stage {} leaves no choice of how gradients are summed", "stage: 1, or leave the key out", plan.zero);
  keys.fail_if(plan.zero_by == ZeroBy::all_reduce && divides_gradients(plan), "by",
               "ranks keep only their shard, but gradients are all-reduced",
               "by: scatter, gradients: kept or stage: 1");
}

/// `where` the rule for buckets is stated, which there may not be.
void check_bucket_rule(const SourcePosition& where, const Sync& sync) {
  if (sync.bucket_rule.empty() || bucket_rules().find(sync.bucket_rule)) return;
  const std::vector<std::string> known = bucket_rule_names();
  throw ScenarioError(where, "plan.sync.bucket", fmt::format("unknown rule \"{}\"", sync.bucket_rule),
                      did_you_mean(nearest_word(sync.bucket_rule, known), or_list(known) + ", or a size: 25 MB"));
}

/// Keys that only servers have, and rules for buckets.
void check_sync(const MappingReader& keys, const Sync& sync) {
  if (const auto bucket = keys.find("bucket")) check_bucket_rule(bucket->where(), sync);
  if (has_servers(sync.algorithm)) return;
  for (const YamlEntry& entry : keys.field().node().entries) {
    keys.fail_if(keys::is_server_key(entry.key), entry.key, "{} without a parameter server",
                 "algorithm: parameter_server, or leave the key out", entry.key);
  }
}

/// Experts over more ranks than data and context have are held whole by tensor ranks (Megatron-Core, parallel folding:
/// Liu et al. 2025, arXiv 2504.14960). So they are where `expert_tensor: 1` says so; and unless it says something,
/// where they are small (Megatron-Bridge, recipes of Qwen3 and DeepSeek-V3: expert_tensor_parallel_size = 1).
void fold_experts(const MappingReader& keys, const ModelConfig& model, Plan& plan) {
  const int stated = keys.value_or("expert_tensor", 0);
  keys.fail_if(stated != 0 && stated != 1 && stated != plan.tensor, "expert_tensor",
               "experts divided among {0} of {1} tensor ranks", "1 or {1}", stated, plan.tensor);
  if (plan.tensor == 1 || plan.expert == 1) return;
  const bool divides = plan.expert % plan.tensor == 0;
  const bool must = stated == 1 || (stated == 0 && plan.expert > std::int64_t{plan.data} * plan.context);
  keys.fail_if(must && !divides, "expert", "{0} ranks of experts over {1} tensor ranks and others",
               "a multiple of {1}, or expert_tensor: {1}", plan.expert, plan.tensor);
  const auto* shape = model.has_experts() ? std::get_if<TransformerConfig>(&model.shape) : nullptr;
  const bool small = shape != nullptr && shape->ffn_hidden <= shape->hidden;  // which nobody divides further
  plan.folded_experts = must || (stated == 0 && divides && small);
  if (plan.folded_experts) plan.expert /= plan.tensor;
}

/// `stage_layers: by_speed`, or a number of layers for each stage.
void read_stage_layers(const Field& field, Plan& plan) {
  field.fail_if(plan.interleave > 1 || plan.schedule == PipelineSchedule::dualpipe || plan.embedding_in_pipeline,
                "stages of several chunks, or ends that count as layers", "one chunk a stage, or leave the key out");
  plan.balance_by_speed = field.is_scalar() && field.text() == "by_speed";
  if (plan.balance_by_speed) return;
  field.fail_if(field.is_scalar(), "no layers", "by_speed, or a list such as [20, 12]");
  for (const Field& layers : field.list()) plan.stage_layers.push_back(layers.as<int>());
  field.fail_if(plan.stage_layers.size() > 2 && std::find(plan.stage_layers.begin() + 1, plan.stage_layers.end() - 1,
                                                          0) != plan.stage_layers.end() - 1,
                "a stage between others without a layer", "layers for all but the first and the last stage");
  field.fail_if(!std::cmp_equal(plan.stage_layers.size(), plan.pipeline), "layers of {0} stages", "pipeline: {1}",
                plan.stage_layers.size(), plan.pipeline);
}

/// In the order of ParallelDimension.
constexpr int Plan::*sizes[] = {&Plan::tensor, &Plan::context, &Plan::expert, &Plan::data, &Plan::pipeline};

/// Nodes that the fabric keeps closest together; 0 where it knows no such neighbourhoods.
int neighbourhood(const Cluster& cluster) {
  const auto& shape = cluster.network.fabric.shape;
  if (const auto* tree = std::get_if<FatTree>(&shape)) return tree->nodes_per_leaf;
  if (const auto* dragonfly = std::get_if<Dragonfly>(&shape)) return dragonfly->nodes_per_router;
  if (const auto* sites = std::get_if<Sites>(&shape)) return (cluster.nodes + sites->sites - 1) / sites->sites;
  return 0;
}

/// `order: tensor-context-expert-data-pipeline`, in any order; dimensions of one rank may be left out. The plan's sizes
/// must be known.
void read_order(const Field& field, Plan& plan) {
  std::vector<ParallelDimension> order;
  for (const std::string& word : split(field.text(), '-')) {
    const auto dimension = value_of<ParallelDimension>(word);
    field.fail_if(!dimension, "unknown dimension \"{}\"", "{1}, joined by -", word,
                  or_list({names_of<ParallelDimension>.begin(), names_of<ParallelDimension>.end()}));
    field.fail_if(std::ranges::count(order, *dimension) > 0, "{} twice", "every dimension once", word);
    order.push_back(*dimension);
  }
  for (const ParallelDimension dimension : plan.order) {
    if (std::ranges::find(order, dimension) != order.end()) continue;
    const int size = plan.*sizes[static_cast<std::size_t>(dimension)];
    field.fail_if(size > 1, "without {0}, which has {1} ranks", "for example {2}-{0}", name(dimension), size,
                  field.text());
    order.push_back(dimension);
  }
  std::ranges::copy(order, plan.order.begin());
}

/// Nodes in the order of ranks, as listed; or for as many as `gpus` need `packed`, the first ones, which holds where
/// nothing is stated, or `scattered`, one from each leaf (router, site) of the fabric in turn. `taken`: by other jobs.
std::vector<int> read_placement(const std::optional<Field>& field, const Cluster& cluster, double gpus,
                                const std::vector<int>& taken) {
  std::vector<int> nodes;
  const std::string word = !field ? "packed" : field->is_scalar() ? field->text() : "";
  if (word == "scattered") {
    const int together = neighbourhood(cluster);
    field->fail_if(together == 0, "a fabric without leaves to scatter over",
                   "cluster.network.fabric: { kind: fat_tree, … }, or a list of nodes");
    for (int place = 0; place < together; ++place) {
      for (int node = place; node < cluster.nodes; node += together) nodes.push_back(node);
    }
  } else if (word == "packed") {
    nodes.resize(at_index(cluster.nodes));
    std::iota(nodes.begin(), nodes.end(), 0);
  } else {
    NodeList list(cluster, taken);
    for (const Field& entry : field->list_or_one()) list.add(entry);
    field->fail_if(list.nodes().empty(), "no nodes", "nodes in the order of ranks, for example [0..7, 12..15]");
    return list.nodes();
  }
  std::erase_if(nodes, [&](int node) { return std::ranges::binary_search(taken, node); });
  double left = gpus;
  const auto end =
      std::ranges::find_if(nodes, [&](int node) { return (left -= number(cluster.gpus_on(node))) <= 0.0; });
  if (end != nodes.end()) nodes.erase(end + 1, nodes.end());
  return nodes;
}

/// Checks across several keys.
void check_training_plan(const MappingReader& keys, const TrainWorkload& train, const Plan& plan) {
  keys.fail_if(plan.tensor_overlap && !plan.sequence_parallel, "tensor_overlap",
               "all-reduces, which cannot overlap GEMMs in chunks", "sequence_parallel: true, or leave the key out");
  if (const auto zero = keys.find("zero"); zero && zero->is_mapping()) check_zero(zero->mapping(), plan);
  keys.fail_if(plan.zero != 3 && keys.has("reshard_after_forward"), "reshard_after_forward",
               "zero: {} does not shard weights", "zero: 3, or leave the key out", plan.zero);
  const std::vector<Field> offload = keys.list("offload");
  for (const Field& item : offload) {
    item.fail_if(item.text() == "none" && offload.size() > 1, "none with other values",
                 "none alone, or the other values");
  }
  if (const auto sync = keys.find("sync")) check_sync(sync->mapping(keys::sync), plan.sync);
  // Keys of the expert all-to-all and its launches need a model with experts.
  if (train.model.has_experts()) return;
  keys.refuse({"expert_dispatch", "expert_comm_overlap", "graphed_parts"}, "the model has no experts",
              "a model with experts, or leave the key out");
}

}  // namespace

std::vector<std::string> bucket_rule_names() {
  std::vector<std::string> names;
  for (const YamlEntry& rule : bucket_rules().node().entries) names.push_back(rule.key);
  return names;
}

Plan read_stated_plan(const Field& field) {
  Plan plan;
  plan.sync.bucket_rule = "auto";
  field.mapping(keys::plan).fill(plan);
  return plan;
}

void complete_plan(const Field& field, const Framework& framework, const TrainWorkload& train, const Cluster& cluster,
                   const std::vector<int>& taken, Plan& plan) {
  const MappingReader keys = field.mapping(keys::plan);
  if (!keys.has("schedule") && plan.interleave > 1) plan.schedule = PipelineSchedule::interleaved;
  // torchtitan keeps a pipeline stage's weights from pass to pass (fsdp_reshard_after_forward: not pp_enabled).
  if (!keys.has("reshard_after_forward")) plan.reshard_after_forward = plan.zero != 3 || plan.pipeline == 1;
  if (!framework.decides("plan.sync.local_reduce")) plan.sync.local_reduce = adds_up_locally(plan.sync);
  check_training_plan(keys, train, plan);
  const std::int64_t replica = std::int64_t{1} * plan.tensor * plan.pipeline * plan.context;
  if (const auto placement = keys.find("placement"); placement || !taken.empty()) {
    const double replicas = number(keys.has("data") ? plan.data : cluster.gpus());
    plan.placement = read_placement(placement, cluster, number(replica) * replicas, taken);
  }
  if (!keys.has("data")) {  // check_scenario complains where the factors do not divide the GPUs
    const std::int64_t gpus = worker_gpus(plan, cluster);
    plan.data = gpus > 0 && gpus % replica == 0 ? static_cast<int>(gpus / replica) : 1;
  }
  if (const auto order = keys.find("order")) read_order(*order, plan);
  if (const auto layers = keys.find("stage_layers")) read_stage_layers(*layers, plan);
  fold_experts(keys, train.model, plan);
  for (const auto& [key, where] : framework.where) {
    if (key == "plan.sync.bucket") check_bucket_rule(where, plan.sync);
  }
  set_bucket(plan);
}

Plan read_other_plan(const Field& field, const ReadWorkload& workload) {
  Plan plan;
  if (!workload.collective) {
    field.mapping(keys::execution_plan).fill(plan);
    return plan;
  }
  const MappingReader keys = field.mapping(keys::collective_plan);
  keys.fill(plan);
  if (const auto sync = keys.find("sync")) {
    const MappingReader stated = sync->mapping(keys::sync);
    check_sync(stated, plan.sync);
    if (!stated.has("local_reduce")) plan.sync.local_reduce = adds_up_locally(plan.sync);
  }
  workload.collective->fill(plan.sync);
  return plan;
}

NodeList::NodeList(const Cluster& cluster, const std::vector<int>& taken)
    : taken_by_(at_index(cluster.nodes), By::nobody) {
  for (const int node : taken) taken_by_[at_index(node)] = By::others;
}

void NodeList::add(const Field& field) {
  const std::string& text = field.text();
  const int count = static_cast<int>(taken_by_.size());
  const std::size_t dots = text.find("..");
  const auto node = [&](std::string_view part) {
    const auto number = number_behind(trim(part), "");
    field.fail_if(!number, "\"{}\" is no node", "a number, or a range such as 0..7", text);
    field.fail_if(*number >= count, "node {0} does not exist", "0 to {1}", *number, count - 1);
    return *number;
  };
  const int first = node(std::string_view(text).substr(0, dots));
  const int last = dots == std::string::npos ? first : node(std::string_view(text).substr(dots + 2));
  if (last < first) field.fail("the range ends before it begins", fmt::format("{}..{}", last, first));
  for (int next = first; next <= last; ++next) {
    By& by = taken_by_[at_index(next)];
    if (by == By::own) field.fail(fmt::format("node {} twice", next), "each node once");
    if (by == By::others) field.fail(fmt::format("node {} is another job's", next), "nodes that no entry of jobs has");
    by = By::own;
    nodes_.push_back(next);
  }
}

}  // namespace foretrain
