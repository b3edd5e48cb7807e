#include "model/scenario/load/checks.hpp"

#include <cmath>

#include "model/base/number.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

class PlanChecks : CheckedScenario {
 public:
  explicit PlanChecks(const Scenario& one) : CheckedScenario{one} {}

  void run() const {
    fail_if(!scenario.background.empty() && (std::holds_alternative<OperatorWorkload>(scenario.workload) ||
                                             std::holds_alternative<HostWorkload>(scenario.workload)),
            "background", "an operator shares no link with other traffic", "train, collective or tasks as workload");
    check_unequal_devices();
    check_groups();
    fail_if(plan.offload_to_disks && !cluster.node.storage.exists(), "plan.offload_to", "a node without disks",
            "memory, or cluster.node with storage");
    check_jobs();
    check_training(scenario);
    if (train == nullptr) return;
    check_gpu_count();
    check_batch();
    check_pipeline();
    fail_if(train->optimizer == Optimizer::muon && (plan.zero > 1 || plan.offload.optimizer || servers_update(plan)),
            "workload.train.optimizer", "muon, which needs whole matrices on a GPU",
            "plan.zero: 0 or 1, nothing offloaded and no servers; or adamw");
    check_shard();
    fail_if(plan.tensor_overlap && train->parts.lora, "plan.tensor_overlap",
            "LoRA with chunked tensor-parallel collectives", "false, or no lora");
    check_packing();
    if (const auto* transformer = std::get_if<TransformerConfig>(&train->model.shape)) {
      check_transformer(*transformer);
    } else if (const auto* whole = std::get_if<VisionLanguageConfig>(&train->model.shape)) {
      check_vision_language(*whole);
    } else {
      check_network();
    }
  }

 private:
  /// Complains at `key` unless `factor` divides `amount`.
  void require_divisible(std::string_view key, std::int64_t factor, std::int64_t amount, std::string_view what) const {
    fail_if(amount % factor != 0, key, "{0} {1} are not divisible by {2}", "a divisor of {0}", amount, what, factor);
  }

  /// The factor to blame when their product is wrong: one given on the command line if there is one, else data, which
  /// is the easiest to change, else another that was stated.
  std::string guilty_factor() const {
    std::string guilty = "plan";
    bool from_command_line = false;
    for (const char* key : {"plan.context", "plan.pipeline", "plan.tensor", "plan.data"}) {
      const SourcePosition* where = scenario.where.find(key);
      if (where == nullptr || (from_command_line && where->line != 0)) continue;
      from_command_line = where->line == 0;
      guilty = key;
    }
    return guilty;
  }

  void check_gpu_count() const {
    const std::int64_t gpus = worker_gpus(plan, cluster);
    const std::int64_t replica = static_cast<std::int64_t>(plan.tensor) * plan.pipeline * plan.context;
    const double ranks = number(replica) * plan.data;  // which 64 bits may not count
    if (ranks == number(gpus)) return;
    const std::string factors =
        fmt::format("tensor {} x pipeline {} x context {}", plan.tensor, plan.pipeline, plan.context);
    const std::string remedy = gpus % replica == 0 ? fmt::format("data: {}", gpus / replica)
                                                   : fmt::format("tensor x pipeline x context x data = {}", gpus);
    const std::string stated = scenario.where.contains("plan.data") ? fmt::format(" x data {}", plan.data) : "";
    fail_if(!plan.placement.empty(), "plan.placement", "{0} nodes with {1} GPUs for {2}{3} = {4}",
            "nodes with {5}{4} GPUs, or {6}", plan.placement.size(), gpus, factors, stated,
            stated.empty() ? number(replica) : ranks, stated.empty() ? "a multiple of " : "", remedy);
    const std::string guilty = guilty_factor();
    fail_if(stated.empty(), guilty, "{} = {} does not divide the {} GPUs", "{3}", factors, replica, gpus, remedy);
    fail(guilty,
         fmt::format("{}{} = {}, but the cluster has {} GPUs{}", factors, stated, ranks, gpus,
                     gpus < cluster.gpus() ? " besides its dedicated servers" : ""),
         remedy);
  }

  /// Every pass of a step is a task, and takes about 15 µs and 5 kB: with 500,000 a prediction takes some seconds.
  void check_passes(const char* key) const {
    constexpr std::int64_t most_passes = 500'000;
    const std::int64_t chunks = std::int64_t{plan.pipeline} * plan.interleave;
    const std::int64_t micro_batches = train->global_batch / (train->micro_batch * plan.data);
    fail_if(micro_batches > most_passes / chunks, key, "{0} micro-batches in a step through {1} model chunk{2}",
            "at most {3} passes: a larger micro_batch, or global_batch: {4}", micro_batches, chunks,
            chunks > 1 ? "s" : "", most_passes, most_passes / chunks * train->micro_batch * plan.data);
  }

  void check_batch() const {
    const bool per_gpu = scenario.where.contains("workload.train.global_batch_per_gpu");
    const char* key = per_gpu ? "workload.train.global_batch_per_gpu" : "workload.train.global_batch";
    const std::int64_t pass = train->micro_batch * plan.data;
    const std::int64_t below = train->global_batch / pass * pass;
    fail_if(below != train->global_batch, key, "{} samples are not divisible by data {} x micro_batch {} = {}", "{4}",
            train->global_batch, plan.data, train->micro_batch, pass,
            below > 0 ? fmt::format("for example {} or {}", below, below + pass)
                      : fmt::format("a multiple of {} or a smaller micro_batch", pass));
    check_passes(key);
  }

  /// Chunks a stage that a schedule is made for, as it is said where there are others.
  void check_chunks() const {
    using enum PipelineSchedule;
    const bool several = plan.interleave > 1, v_shaped = plan.schedule == v_half || plan.schedule == v_min;
    const bool suits = plan.schedule == interleaved   ? several
                       : plan.schedule == zero_bubble ? plan.interleave <= 2
                       : v_shaped                     ? plan.interleave == 2
                                                      : !several;
    const char* expected = v_shaped                       ? "interleave: 2"
                           : plan.schedule == zero_bubble ? "interleave: 1 or 2, or schedule: interleaved"
                           : plan.schedule == dualpipe    ? "interleave: 1: each stage holds two chunks by itself"
                           : several                      ? "interleaved, or interleave: 1"
                                                          : "gpipe or 1f1b, or interleave: 2 or more";
    fail_if(!suits, "plan.schedule", "{0} with {1} chunks a stage", "{2}", name(plan.schedule), plan.interleave,
            expected);
  }

  void check_pipeline() const {
    fail_if(plan.interleave > 1 && plan.pipeline == 1, "plan.interleave", "{} chunks per stage without a pipeline",
            "pipeline: 2 or more, or interleave: 1", plan.interleave);
    check_chunks();
    if (!splits_backward(plan.schedule)) return;
    fail_if(plan.pipeline == 1, "plan.schedule", "{} without a pipeline", "pipeline: 2 or more, or leave the key out",
            name(plan.schedule));
    fail_if(plan.zero == 3, "plan.zero", "weights that are gathered for each pass, with {}",
            "zero: 0, 1 or 2, or schedule: 1f1b", name(plan.schedule));
    if (plan.schedule != PipelineSchedule::dualpipe) return;
    fail_if(plan.offload.parameters || plan.offload.activations, "plan.offload",
            "copies between host and GPU in each pass, with dualpipe", "optimizer or none, or schedule: 1f1b");
    fail_if(plan.pipeline % 2 != 0, "plan.pipeline", "dualpipe with {} stages", "an even number of stages",
            plan.pipeline);
    const std::int64_t passes = train->global_batch / (train->micro_batch * plan.data);
    const std::int64_t least = std::int64_t{2} * plan.pipeline;
    const std::int64_t even = std::max(passes + 1, least) / 2 * 2;
    fail_if(passes % 2 != 0 || passes < least, "workload.train.global_batch",
            "dualpipe with {0} micro-batches over {1} stages",
            "an even number of at least twice the stages: global_batch: {2}", passes, plan.pipeline,
            even * train->micro_batch * plan.data);
  }

  /// ZeRO over a part of the ranks that hold the same parameters.
  void check_shard() const {
    if (plan.shard == 0) return;
    require_divisible("plan.zero.shard", plan.shard, replicas_of(plan), "ranks with the same parameters");
    fail_if(plan.shard % plan.expert != 0, "plan.zero.shard", "{0} ranks a shard with experts over {1}",
            "a multiple of {1}", plan.shard, plan.expert);
  }

  void check_tensor(const TransformerConfig& model) const {
    require_divisible("plan.tensor", plan.tensor, model.heads, "heads");
    require_divisible("plan.tensor", plan.tensor, model.kv_heads, "key–value heads");
    require_divisible("plan.tensor", plan.tensor, model.ffn_hidden, "feed-forward units");
  }

  /// `most`: chunks that so many layers fill, with the ends that count as layers.
  void check_stages(std::int64_t layers, std::int64_t most) const {
    fail_if(std::int64_t{plan.pipeline} * plan.interleave > most, "plan.pipeline",
            "{0} layers cannot fill {1} stages of {2} chunks", "pipeline x interleave of at most {3}", layers,
            plan.pipeline, plan.interleave, most);
  }

  /// Factors of a plan that are not known to some models.
  void refuse_factors(std::initializer_list<std::pair<const char*, int>> factors, std::string_view model) const {
    for (const auto& [key, value] : factors) {
      if (value > 1) fail(key, fmt::format("{} for a {}", value, model), "1, and more data");
    }
  }

  /// Each rank has whole heads; keys and values of fewer heads than ranks are repeated, each as often.
  void check_ulysses(const TransformerConfig& model) const {
    const std::int64_t keys = model.kv_heads / plan.tensor, heads = model.heads / plan.tensor;
    fail_if(heads % plan.context != 0, "plan.context", "Ulysses divides {0} heads over {1} ranks",
            "a divisor of {0}, or context_method: ring", heads, plan.context);
    fail_if(keys % plan.context != 0 && plan.context % keys != 0, "plan.context", "{} key–value heads over {} ranks",
            "a divisor or a multiple, or context_method: ring", keys, plan.context);
  }

  void check_transformer(const TransformerConfig& model) const {
    check_tensor(model);
    if (model.mamba.heads > 0) {
      require_divisible("plan.tensor", plan.tensor, model.mamba.heads, "heads of Mamba-2 layers");
    }
    require_divisible("plan.context", plan.context, model.sequence, "tokens of a sequence");
    if (plan.context_method == ContextMethod::ulysses) check_ulysses(model);
    check_stages(model.all_layers(), model.all_layers() + (plan.embedding_in_pipeline ? 2 : 0));
    if (model.decoder_layers > 0) {  // megatron/core/pipeline_parallel and models/T5 have none of these
      refuse_factors(
          {{"plan.context", plan.context}, {"plan.interleave", plan.interleave}, {"plan.expert", plan.expert}},
          "model with encoder and decoder");
    }
    if (plan.expert > 1 || plan.folded_experts) {
      fail_if(model.experts == 1, "plan.expert", "the model has no experts", "expert: 1, or a model with experts");
      require_divisible("plan.expert", std::int64_t{plan.expert} * (plan.folded_experts ? plan.tensor : 1),
                        model.experts, "experts");
      require_divisible("plan.expert", plan.expert, std::int64_t{plan.data} * plan.context, "ranks of data x context");
    }
  }

  void check_vision_language(const VisionLanguageConfig& model) const {
    refuse_factors({{"plan.context", plan.context}, {"plan.expert", plan.expert}}, "vision–language model");
    for (const TransformerConfig* part : {&model.vision, &model.language}) check_tensor(*part);
    const std::int64_t layers = model.vision.layers + model.language.layers;
    check_stages(layers, layers);
  }

  /// A packed sequence that a micro-batch does not fill would be mostly padding; more samples a pass are meant.
  void check_packing() const {
    if (!train->data || train->data->batching.kind != Batching::Kind::packing) return;
    const SampleMix mix = samples_of(*train->data, train->model);
    const double length =
        train->data->batching.length > 0 ? static_cast<double>(train->data->batching.length) : mix.limit;
    const double share = packed_share(mix, static_cast<std::int64_t>(length));
    const auto needed = static_cast<std::int64_t>(std::ceil(length * share / mix.tokens() - 1e-3));
    fail_if(train->micro_batch < needed, "workload.train.micro_batch",
            "{} samples of {:.0f} tokens do not fill one packed sequence of {:.0f}",
            "at least {3}, or a shorter packing length", train->micro_batch, mix.tokens(), length, needed);
  }

  /// Tensor, context and expert parallelism and sequence parallelism are defined for transformers.
  void check_network() const {
    refuse_factors({{"plan.tensor", plan.tensor}, {"plan.context", plan.context}, {"plan.expert", plan.expert}},
                   "network that is no transformer");
    fail_if(plan.sequence_parallel, "plan.sequence_parallel", "this network has no sequence",
            "false, or leave the key out");
  }

  /// Slow GPUs and jitter are known to training without parameter servers.
  void check_unequal_devices() const {
    const bool slow = std::ranges::any_of(cluster.faults, [](const Fault& fault) { return fault.gpu >= 0; });
    if (!slow && !cluster.jitter) return;
    const char* key = slow ? "cluster.faults" : "cluster.jitter";
    const char* what = slow ? "a slow GPU" : "jitter";
    fail_if(train == nullptr, key, "{} in a scenario that trains nothing", "workload: {{ train: … }}", what);
    fail_if(servers, key, "{} with parameter servers", "plan.sync.slow_workers and workload.train.compute_spread",
            what);
  }

  /// Nodes of several kinds are known to training by collectives, and to collectives.
  void check_groups() const {
    if (cluster.groups.empty()) return;
    fail_if(train == nullptr && !std::holds_alternative<CollectiveWorkload>(scenario.workload), "cluster.groups",
            "several kinds of nodes for a workload on one of them", "cluster.node, or train or collective as workload");
    fail_if(servers, "cluster.groups", "several kinds of nodes with parameter servers", "a collective as algorithm");
    fail_if(plan.offload.any(), "plan.offload", "offloading on several kinds of nodes", "none, or cluster.node");
  }

  /// Jobs that share a fabric train, without parameter servers.
  void check_jobs() const {
    if (scenario.jobs.empty()) return;
    fail_if(train == nullptr, "jobs", "other jobs with a workload that trains nothing", "workload: { train: … }");
    fail_if(cluster.jitter.has_value(), "cluster.jitter", "jitter with other jobs", "one of the two keys");
    const auto refuse_servers = [&](const Scenario& job) {
      fail_if(has_servers(job.plan.sync.algorithm), "jobs", "{} has parameter servers",
              "a collective as its plan.sync.algorithm", job.name);
    };
    refuse_servers(scenario);
    std::ranges::for_each(scenario.jobs, refuse_servers);
    fail_if(plan.placement.empty(), "jobs", "other jobs use all nodes", "a larger cluster");
  }
};

}  // namespace

void CheckedScenario::fail(std::string_view key, std::string got, std::string expected) const {
  throw ScenarioError(position_of(scenario, key), std::string(key), std::move(got), std::move(expected));
}

SourcePosition position_of(const Scenario& scenario, std::string_view key) {
  while (true) {
    if (const SourcePosition* found = scenario.where.find(key)) return *found;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string_view::npos) return scenario.where.document.where;
    key = key.substr(0, dot);
  }
}

void check_scenario(const Scenario& scenario) { PlanChecks(scenario).run(); }

}  // namespace foretrain
