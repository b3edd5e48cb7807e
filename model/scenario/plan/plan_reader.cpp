#include "model/scenario/plan/plan_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/server_keys.hpp"

namespace foretrain {

namespace {

constexpr IntegerRange factor{1, 1'000'000};

void read_consistency(const Field& field, Sync& sync) {
  const auto [word, number] = field.word_with_number(0);  // bounded(0) is synchronous
  if (word == "bounded" && number) {
    sync.consistency = Sync::Consistency::bounded;
    sync.staleness = *number;
  } else if (word == "synchronous" && !number) {
    sync.consistency = Sync::Consistency::synchronous;
  } else if (word == "asynchronous" && !number) {
    sync.consistency = Sync::Consistency::asynchronous;
  } else if (number && (word == "asynchronous" || word == "synchronous")) {
    field.fail(fmt::format("{} has no bound on staleness", word),
               fmt::format("{}, or bounded({})", word, word == "synchronous" ? 0 : *number));
  } else {
    field.fail(fmt::format("unknown value \"{}\"", field.text()), "synchronous, asynchronous or bounded(4)");
  }
}

Sync::SlowWorkers read_slow_workers(const Field& field) {
  const MappingReader keys = field.mapping(keys::slow_workers);
  Sync::SlowWorkers slow;
  keys.fill(slow);
  if (slow.factor < 1.0 || slow.factor > 1000.0) {
    keys.fail("factor", fmt::format("{} times the compute time of the others", slow.factor), "from 1 to 1000");
  }
  return slow;
}

/// Every kind of compression from `first` on as it is written, with a number for example: "fp16, …, top_k(1 %)".
std::string compressions(Compression::Kind first) {
  std::vector<std::string> written;
  for (auto kind = static_cast<std::size_t>(first); kind < names_of<Compression::Kind>.size(); ++kind) {
    const Compression::Number number = Compression::number_of(static_cast<Compression::Kind>(kind));
    const std::string_view example = number == Compression::Number::rank    ? "(4)"
                                     : number == Compression::Number::share ? "(1 %)"
                                                                            : "";
    written.push_back(fmt::format("{}{}", names_of<Compression::Kind>[kind], example));
  }
  return or_list(written, written.size());
}

/// "top_k(0.01)" or "top_k(1 %)": the share of the gradients that is sent.
double read_sent_share(const Field& field) {
  const std::string_view text = field.text();
  const std::size_t open = text.find('(');
  const std::string wanted = fmt::format(
      "a share of the gradients above 0 and up to 1, for example {0}(0.01) or {0}(1 %)", text.substr(0, open));
  if (open == std::string_view::npos || text.back() != ')') {
    field.fail(fmt::format("\"{}\" does not say how many gradients are sent", text), wanted);
  }
  std::string_view number = trim(text.substr(open + 1, text.size() - open - 2));
  const bool percent = number.ends_with('%');
  if (percent) number = trim(number.substr(0, number.size() - 1));
  double share = 0.0;
  try {
    share = parse_number(number) / (percent ? 100.0 : 1.0);
  } catch (const UnitError& error) {
    field.fail(error.got(), wanted);
  }
  if (share <= 0.0 || share > 1.0) field.fail(fmt::format("a share of {} of the gradients", share), wanted);
  return share;
}

void read_compression(const Field& field, Compression& compression) {
  using enum Compression::Number;
  const std::string_view text = field.text();
  const auto kind = value_of<Compression::Kind>(text.substr(0, text.find('(')));
  const Compression::Number wanted = kind ? Compression::number_of(*kind) : nothing;
  if (wanted == share) {
    compression.share = read_sent_share(field);
  } else {
    const std::optional<int> number = field.word_with_number(1).number;
    if (!kind || number.has_value() != (wanted == rank)) {
      field.fail(fmt::format("unknown value \"{}\"", text), compressions(Compression::Kind::none));
    }
    compression.rank = number.value_or(0);
  }
  compression.kind = *kind;
  compression.error_feedback = compression.needs_whole_gradient();  // they lose too much without
}

void read_error_feedback(const MappingReader& keys, Sync& sync) {
  const auto stated = keys.find("error_feedback");
  if (!stated) return;
  sync.compression.error_feedback = stated->flag();
  if (sync.compression.kind == Compression::Kind::none) {
    stated->fail("error feedback without compression",
                 fmt::format("compression: {}, or leave the key out", compressions(Compression::Kind::fp16)));
  }
}

Field bucket_rules() {
  return Field(cached_yaml_file((data_directory() / "buckets.yaml").string()), "").mapping(keys::buckets_file)["rules"];
}

/// Where nothing runs beside them, cutting gains nothing but memory.
bool cut(BucketsWhole whole, const Plan& plan) {
  if (whole == BucketsWhole::without_overlap) return plan.sync.overlap || divides_gradients(plan);
  return whole == BucketsWhole::never;
}

/// `bucket:`, how many gradients are synchronised at once: a size, or the name of a rule of scenarios/buckets.yaml.
void read_bucket(const Field& field, Sync& sync) {
  const std::string& text = field.text();
  const Field rules = bucket_rules();
  if (rules.node().find(text) != nullptr) {
    sync.bucket_rule = text;
    return;
  }
  if (text.find_first_of("0123456789") == std::string::npos) {
    field.fail(fmt::format("unknown rule \"{}\"", text),
               fmt::format("{}, or a size: 25 MB", fmt::join(bucket_rule_names(), ", ")));
  }
  sync.bucket_rule.clear();
  sync.bucket = field.quantity<Bytes>();
}

/// The size that the plan's rule comes to, once the rest of the plan is known.
void set_bucket(Plan& plan) {
  Sync& sync = plan.sync;
  if (plan.zero == 3 || sync.bucket_rule.empty()) return;
  const Field rules = bucket_rules();
  const MappingReader rule = rules.at(sync.bucket_rule).mapping(keys::bucket_rule);
  const double ranks = static_cast<double>(plan.data) * plan.context;
  const double elements = std::max(rule.number_or("elements", 0.0), rule.number_or("elements_per_rank", 0.0) * ranks);
  const Bytes size =
      std::max(rule.quantity_or("size", Bytes(0.0)), bytes_per_element(sync.gradient_precision) * elements);
  sync.bucket = cut(rule.choice_or("whole", BucketsWhole::never), plan) ? size : Bytes::infinity();
  if (!(sync.first_bucket > Bytes(0.0))) sync.first_bucket = rule.quantity_or("first_bucket", Bytes(0.0));
}

void read_sync(const Field& field, Sync& sync) {
  const MappingReader keys = field.mapping(keys::sync);
  keys.fill(sync);
  if (const auto levels = keys.find("levels")) sync.levels = read_levels(*levels);
  if (const auto consistency = keys.find("consistency")) read_consistency(*consistency, sync);
  if (const auto bucket = keys.find("bucket")) read_bucket(*bucket, sync);
  if (const auto compression = keys.find("compression")) read_compression(*compression, sync.compression);
  read_error_feedback(keys, sync);
  sync.local_reduce = keys.flag_or("local_reduce", sync.algorithm == SyncAlgorithm::hierarchical_parameter_server);
  if (const auto slow = keys.find("slow_workers")) sync.slow_workers = read_slow_workers(*slow);
  if (has_servers(sync.algorithm)) return;
  for (const YamlEntry& entry : field.node().entries) {
    if (!is_server_key(entry.key)) continue;
    keys.fail(entry.key, fmt::format("{} without a parameter server", entry.key),
              "algorithm: parameter_server, or leave the key out");
  }
}

/// A word or a list of words; `none` stands alone.
Plan::Offload read_offload(const Field& field) {
  enum class Word { none, optimizer, parameters, activations };
  Plan::Offload offload;
  const std::vector<Field> list = field.list_or_one();
  for (const Field& item : list) {
    const Word word = item.choice<Word>();
    if (word == Word::none && list.size() > 1) item.fail("none beside other words", "none alone, or the other words");
    offload.optimizer |= word == Word::optimizer;
    offload.parameters |= word == Word::parameters;
    offload.activations |= word == Word::activations;
  }
  return offload;
}

/// A level, or `{ stage: 2, shard: 8, gradients: kept, by: scatter }`.
void read_zero(const Field& field, Plan& plan) {
  plan.zero = zero_level(field);
  if (!field.is_mapping()) return;
  const MappingReader keys = field.mapping(keys::zero);
  keys.fill(plan);
  keys.fail_if(plan.shard > 0 && plan.zero == 0, "shard", "stage 0 divides nothing",
               "stage: 1, 2 or 3, or leave the key out");
  if (keys.has("gradients") && plan.zero != 2) {
    keys.fail("gradients", fmt::format("stage {} leaves no choice of when gradients are scattered", plan.zero),
              "stage: 2, or leave the key out");
  }
  if (keys.has("by") && (plan.zero == 0 || plan.zero == 3)) {
    keys.fail("by", fmt::format("stage {} leaves no choice of how gradients are summed", plan.zero),
              "stage: 1, or leave the key out");
  }
  keys.fail_if(plan.zero_by == ZeroBy::all_reduce && divides_gradients(plan), "by",
               "gradients of which a rank keeps its part alone, summed for all ranks",
               "by: scatter, gradients: kept or stage: 1");
}

/// How many replicas the GPUs have room for; 1 where the factors do not divide them (check_scenario complains then).
int replicas_left(const Plan& plan, const Cluster& cluster) {
  const std::int64_t replica = static_cast<std::int64_t>(plan.tensor) * plan.pipeline * plan.context;
  const std::int64_t gpus = worker_gpus(plan, cluster);
  return gpus > 0 && gpus % replica == 0 ? static_cast<int>(gpus / replica) : 1;
}

/// Experts no wider than the hidden state, which nobody divides further.
bool has_small_experts(const ModelConfig& model) {
  return model.has_experts() &&
         std::get<TransformerConfig>(model.shape).ffn_hidden <= std::get<TransformerConfig>(model.shape).hidden;
}

/// How experts' tokens travel, and what is launched between their counts, are questions to models that have some.
void check_expert_exchange(const MappingReader& keys, const ModelConfig& model) {
  if (model.has_experts()) return;
  keys.refuse({"expert_dispatch", "expert_overlap", "graphed_parts"}, "the model has no experts",
              "a model with experts, or leave the key out");
}

/// Experts over more ranks than data and context have are held whole by tensor ranks (Megatron-Core, parallel folding:
/// Liu et al. 2025, arXiv 2504.14960). So they are where `expert_tensor: 1` says so; and unless it says something,
/// where they are small (Megatron-Bridge, recipes of Qwen3 and DeepSeek-V3: expert_tensor_parallel_size = 1).
void fold_experts(const MappingReader& keys, const ModelConfig& model, Plan& plan) {
  const int stated = keys.int_or("expert_tensor", 0, {1, 1'000'000});
  if (stated != 0 && stated != 1 && stated != plan.tensor) {
    keys.fail("expert_tensor", fmt::format("experts divided among {} of {} tensor ranks", stated, plan.tensor),
              fmt::format("1 or {}", plan.tensor));
  }
  if (plan.tensor == 1 || plan.expert == 1) return;
  const bool divides = plan.expert % plan.tensor == 0;
  const bool must = stated == 1 || (stated == 0 && plan.expert > std::int64_t{plan.data} * plan.context);
  if (must && !divides) {
    keys.fail("expert", fmt::format("{} ranks of experts over {} tensor ranks and others", plan.expert, plan.tensor),
              fmt::format("a multiple of {}, or expert_tensor: {}", plan.tensor, plan.tensor));
  }
  plan.folded_experts = must || (stated == 0 && divides && has_small_experts(model));
  if (plan.folded_experts) plan.expert /= plan.tensor;
}

/// `stage_layers: by_speed`, or a number of layers for each stage.
void read_stage_layers(const Field& field, Plan& plan) {
  field.fail_if(plan.interleave > 1 || plan.schedule == PipelineSchedule::dualpipe || plan.embedding_in_pipeline,
                "stages of several chunks, or ends that count as layers", "one chunk a stage, or leave the key out");
  plan.balance_by_speed = field.is_scalar() && field.text() == "by_speed";
  if (plan.balance_by_speed) return;
  if (field.is_scalar()) field.fail("no layers", "by_speed, or a list such as [20, 12]");
  for (const Field& layers : field.list()) plan.stage_layers.push_back(static_cast<int>(layers.integer({0, 100'000})));
  field.fail_if(plan.stage_layers.size() > 2 && std::find(plan.stage_layers.begin() + 1, plan.stage_layers.end() - 1,
                                                          0) != plan.stage_layers.end() - 1,
                "a stage between others without a layer", "layers for all but the first and the last stage");
  if (!std::cmp_equal(plan.stage_layers.size(), plan.pipeline)) {
    field.fail(fmt::format("layers of {} stages", plan.stage_layers.size()),
               fmt::format("pipeline: {}", plan.pipeline));
  }
}

Plan read_training_plan(const Field& field, const TrainWorkload& train, const Cluster& cluster,
                        const std::vector<int>& taken) {
  const MappingReader keys = field.mapping(keys::plan);
  Plan plan;
  keys.fill(plan);
  plan.schedule = keys.choice_or(
      "schedule", plan.interleave > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_forward_one_backward);
  keys.fail_if(plan.tensor_overlap && !plan.sequence_parallel, "tensor_overlap",
               "all-reduces, which are not chunked behind products", "sequence_parallel: true, or leave the key out");
  if (const auto zero = keys.find("zero")) read_zero(*zero, plan);
  // torchtitan keeps a pipeline stage's weights from pass to pass (fsdp_reshard_after_forward: not pp_enabled).
  plan.reshard_after_forward = keys.flag_or("reshard_after_forward", plan.zero != 3 || plan.pipeline == 1);
  if (keys.has("reshard_after_forward") && plan.zero != 3) {
    keys.fail("reshard_after_forward", fmt::format("zero: {} does not shard weights", plan.zero),
              "zero: 3, or leave the key out");
  }
  if (const auto offload = keys.find("offload")) plan.offload = read_offload(*offload);
  if (const auto headroom = keys.find("headroom")) plan.headroom = read_share(*headroom, "headroom", "memory");
  plan.sync.bucket_rule = "auto";
  if (const auto sync = keys.find("sync")) read_sync(*sync, plan.sync);
  if (const auto placement = keys.find("placement"); placement || !taken.empty()) {
    const double replica = number(std::int64_t{1} * plan.tensor * plan.pipeline * plan.context);
    const double replicas = number(keys.integer_or("data", cluster.gpus(), factor));
    plan.placement = read_placement(placement, cluster, replica * replicas, taken);
  }
  plan.data = keys.int_or("data", replicas_left(plan, cluster), factor);
  if (const auto order = keys.find("order")) read_order(*order, plan);
  if (const auto layers = keys.find("stage_layers")) read_stage_layers(*layers, plan);
  fold_experts(keys, train.model, plan);
  check_expert_exchange(keys, train.model);
  set_bucket(plan);
  return plan;
}

Plan read_collective_plan(const Field& field, const ReadWorkload& workload) {
  const MappingReader keys = field.mapping(keys::collective_plan);
  Plan plan;
  if (const auto sync = keys.find("sync")) read_sync(*sync, plan.sync);
  workload.collective->fill(plan.sync);
  if (const auto levels = workload.collective->find("levels")) plan.sync.levels = read_levels(*levels);
  return plan;
}

}  // namespace

std::vector<std::string> bucket_rule_names() {
  std::vector<std::string> names;
  for (const YamlEntry& rule : bucket_rules().node().entries) names.push_back(rule.key);
  return names;
}

int zero_level(const Field& field) {
  constexpr IntegerRange levels{0, 3};
  const Field level = field.is_mapping() ? field.mapping(keys::zero)["stage"] : field;
  return static_cast<int>(level.integer(levels));
}

Plan read_plan(const std::optional<Field>& field, const ReadWorkload& workload, const Cluster& cluster,
               const std::vector<int>& taken) {
  const YamlNode nothing = yaml_mapping({});
  const Field plan = field.value_or(Field(nothing, "plan"));
  if (const auto* train = std::get_if<TrainWorkload>(&workload.workload)) {
    return read_training_plan(plan, *train, cluster, taken);
  }
  if (std::holds_alternative<CollectiveWorkload>(workload.workload)) return read_collective_plan(plan, workload);
  Plan result;
  plan.mapping(keys::execution_plan).fill(result);
  return result;
}

}  // namespace foretrain
