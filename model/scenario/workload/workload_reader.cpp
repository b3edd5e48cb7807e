#include "model/scenario/workload/workload_reader.hpp"

#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/scenario/read_once.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

/// Length of training in samples; tokens count for models with a sequence.
double read_training_samples(const Field& field, const TrainWorkload& train) {
  const TrainingLength length = field.parse(parse_training_length);
  if (length.unit == TrainingLength::Unit::samples) return length.count;
  const ModelConfig& model = train.model;
  const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape);
  if (train.data || whole != nullptr) {
    return length.count / samples_of(train.data ? *train.data : usual_data(*whole), model).tokens();
  }
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  field.fail_if(transformer == nullptr || transformer->family == TransformerFamily::vit, "{} has images, not tokens",
                "a number of images", model.name);
  return length.count / static_cast<double>(transformer->sequence);
}

/// One GPU of every kind in the cluster.
std::vector<const Gpu*> gpus_in(const Cluster& cluster) {
  std::vector<const Gpu*> gpus;
  for (const NodeGroup& group : cluster.groups) gpus.push_back(&group.node.gpu);
  if (gpus.empty()) gpus.push_back(&cluster.node.gpu);
  return gpus;
}

/// FlashAttention needs the asynchronous copies and shared memory of Turing (v1) or Ampere (v2) and later, and adds no
/// bias that is trained to the scores (transformers, modeling_t5.py, has no other than the standard one).
AttentionKind usual_attention(const Cluster& cluster, const ModelConfig& model) {
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  if (transformer != nullptr && transformer->family == TransformerFamily::t5) return AttentionKind::standard;
  const bool old = std::ranges::any_of(gpus_in(cluster), [](const Gpu* gpu) { return gpu->compute_capability < 7.5; });
  return old ? AttentionKind::standard : AttentionKind::flash;
}

TrainerCode read_trainer_code(const MappingReader& train, const ModelConfig& model, const Cluster& cluster) {
  if (std::holds_alternative<NetworkConfig>(model.shape)) {
    train.refuse(
        {"kernels", "fused_qkv", "native_attention", "context_sharding", "fp8_all_gather", "keep_gathered_inputs",
         "gather_logits", "shifted_logits", "inplace_cross_entropy", "pending_stream_buffers"},
        fmt::format("{} is a network of layers, each with its own kernels", model.name),
        "a transformer, or leave the key out");
  } else {
    train.refuse({"memory_format"}, fmt::format("{} is no network of layers", model.name),
                 "a network of layers, or leave the key out");
  }
  TrainerCode code;
  code.kernels = cluster.node.gpu.processor ? KernelSet::unfused : KernelSet::fused;
  train.fill(code);
  complete_code(code);
  return code;
}

void read_train(const Field& field, const Cluster& cluster, ReadWorkload& result) {
  const MappingReader train = field.mapping(keys::train);
  TrainWorkload workload;
  workload.model = read_once(train["model"], read_model);
  workload.attention = usual_attention(cluster, workload.model);
  train.fill(workload);
  result.states_global_batch = train.has("global_batch");
  if (const auto per_gpu = train.find("global_batch_per_gpu")) {
    result.global_batch_per_gpu = per_gpu->as<double>();
  }
  read_training_precision(train, workload);
  workload.code = read_trainer_code(train, workload.model, cluster);
  for (const Gpu* gpu : gpus_in(cluster)) {
    check_training_precision(train, workload, *gpu);
    check_attention(workload.model, workload.attention, workload.precision, *gpu, field);
  }
  if (const auto data = train.find("data")) workload.data = read_data(*data, workload.model);
  if (const auto freeze = train.find("freeze")) read_freeze(*freeze, workload.model, workload.parts);
  if (const auto lora = train.find("lora")) read_lora(*lora, workload.model, workload.parts);
  if (const auto quantisation = train.find("quantisation")) {
    quantisation->mapping().fill(workload.parts.quantised);
    quantisation->fail_if(workload.parts.quantised.any() && !workload.parts.lora, "quantised weights cannot be trained",
                          "also lora: { rank: 16 }, or weights: none");
  }
  check_something_is_trained(field, workload.model, workload.parts);
  if (const auto samples = train.find("samples")) {
    workload.training_samples = read_training_samples(*samples, workload);
  }
  if (const auto loader = train.find("loader")) workload.loader = read_loader(*loader, cluster.node.storage);
  if (const auto checkpoint = train.find("checkpoint")) {
    workload.checkpoint = read_checkpoint(*checkpoint, cluster.node.storage);
  }
  const auto recovery = train.find("recovery");
  if (cluster.failures) workload.recovery = read_recovery(recovery, cluster);
  train.fail_if(recovery && !cluster.failures, "recovery", "nothing fails",
                "also cluster.failures, such as llama3-h100");
  result.workload = std::move(workload);
}

void read_collective(const Field& field, const Cluster& cluster, ReadWorkload& result) {
  const MappingReader keys = field.mapping();
  CollectiveWorkload workload;
  workload.operation = keys["operation"].as<CollectiveOperation>();
  workload.size = keys["size"].as<Bytes>();
  workload.ranks = keys.value_or("ranks", cluster.gpus());
  keys.fail_if(workload.ranks > cluster.gpus(), "ranks", "{0} ranks on {1} GPUs", "at most {1}", workload.ranks,
               cluster.gpus());
  workload.groups = keys.value_or("groups", 1);
  keys.fail_if(workload.ranks % workload.groups != 0, "groups", "{0} ranks cannot be divided into {1} groups",
               "a divisor of {0}", workload.ranks, workload.groups);
  workload.layout = keys.value_or("layout", RankGrouping::blocked);
  result.collective = keys;
  result.workload = workload;
}

/// The keys that say under which conditions an operator runs leave its shape.
OperatorConditions take_conditions(YamlNode& shape, const std::string& path) {
  OperatorConditions conditions;
  for (const keys::Mapping& keys : {keys::alone, keys::operand}) {
    const auto known = [&](const YamlEntry& entry) {
      return std::ranges::find(keys.keys, entry.key, &keys::Key::name) != keys.keys.end();
    };
    YamlNode stated = shape;
    std::erase_if(stated.entries, [&](const YamlEntry& entry) { return !known(entry); });
    std::erase_if(shape.entries, known);
    Field(stated, path).mapping(keys).fill(conditions);
  }
  return conditions;
}

void read_operator_workload(const Field& field, const Cluster& cluster, ReadWorkload& result) {
  StatedWork work = read_stated_work(field);
  const std::string kind = work.name().text();
  const bool stores = kind == "disk_read" || kind == "disk_write", loads = kind == "data_loader";
  if ((stores || loads) && work.repeat > 1) work.name().fail("this is done once", "no repeat");
  const Storage& storage = cluster.node.storage;
  if (stores) result.workload = read_storage_workload(work.shape(), kind == "disk_write", storage);
  if (loads) result.workload = read_loader_workload(work.shape(), storage);
  if (stores || loads) return;
  const auto on = work.shape().find("on");
  const bool on_cpu = on ? on->as<bool>(keys::key_of(keys::placed, "on"))
                         : kind == "memory_walk";  // which GPUs have not but by its name
  work.keys.erase("on");
  if (on_cpu || kind == "memory_walk") {
    HostWorkload workload = on_cpu ? read_host_operator(work.name(), work.shape(), cluster.node.cpu)
                                   : read_gpu_chase(work.shape(), cluster.node.gpu);
    workload.repeat = work.repeat;
    result.workload = std::move(workload);
    return;
  }
  const YamlNode stated = work.keys;
  const OperatorConditions conditions = take_conditions(work.keys, work.path);
  OperatorWorkload workload{read_operator(work, cluster.node.gpu), work.repeat, conditions};
  const bool casts = std::holds_alternative<Matmul>(workload.op.work) && casts_operands(workload.op.precision);
  if (const auto cast = Field(stated, work.path).find("cast"); cast && !casts) {
    cast->fail("operands of this operator are not cast", "a matmul in fp8, mxfp8 or nvfp4");
  }
  result.workload = std::move(workload);
}

}  // namespace

void complete_code(TrainerCode& code) {
  code.fused_optimizer |= code.fusions.has(Fusion::optimizer);
  const bool fuses_loss = code.fusions.has(Fusion::cross_entropy) && code.loss.kind == Loss::Kind::eager;
  if (fuses_loss) code.loss.kind = Loss::Kind::fused;
}

ReadWorkload read_workload(const Field& field, const Cluster& cluster) {
  const MappingReader workload = field.mapping(keys::workload);
  field.fail_if(field.node().entries.size() != 1, "{} kinds of workload",
                "exactly one of train, collective, operator or tasks", field.node().entries.size());
  ReadWorkload result;
  if (const auto train = workload.find("train")) read_train(*train, cluster, result);
  if (const auto collective = workload.find("collective")) read_collective(*collective, cluster, result);
  if (const auto op = workload.find("operator")) read_operator_workload(*op, cluster, result);
  if (const auto tasks = workload.find("tasks")) result.workload = read_tasks(*tasks, cluster);
  return result;
}

}  // namespace foretrain
