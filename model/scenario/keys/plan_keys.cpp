// Plans: how a training is spread over GPUs, and how its gradients are synchronised.

#include <iterator>

#include "model/base/text.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Value offloaded = one_of<"none", "optimizer", "parameters", "activations">;
void parse_offload(Plan& plan, std::string_view text) {
  const std::size_t word = parse_word(text, offloaded.all[0].words);
  plan.offload.optimizer |= word == 1;
  plan.offload.parameters |= word == 2;
  plan.offload.activations |= word == 3;
}

void parse_consistency(Sync& sync, std::string_view text) {
  using enum Sync::Consistency;
  const auto [word, number] = parse_word_with_number(text, 0);  // bounded(0) is synchronous
  const auto kind = value_of<Sync::Consistency>(word);
  if (kind && number && *kind != bounded) {
    throw UnitError(fmt::format("{} has no bound on staleness", word),
                    fmt::format("{}, or bounded({})", word, *kind == synchronous ? 0 : *number));
  }
  if (!kind || number.has_value() != (*kind == bounded)) {
    throw UnitError(fmt::format("unknown value \"{}\"", text), "synchronous, asynchronous or bounded(4)");
  }
  sync.consistency = *kind;
  sync.staleness = number.value_or(0);
}

/// Gradient bucket: a size, or the name of a rule of scenarios/buckets.yaml.
void parse_bucket(Sync& sync, std::string_view text) {
  sync.bucket_rule = text.find_first_of("0123456789") == std::string_view::npos ? text : "";
  if (sync.bucket_rule.empty()) sync.bucket = parse_quantity<Bytes>(text);
  if (!(sync.bucket > Bytes(0.0))) throw UnitError("zero is impossible here", "a value above zero");
}

/// Every kind of compression as it is written, with a number for example: "none, fp16, …, top_k(1 %)".
std::string compressions() {
  std::vector<std::string> written;
  for (const std::string_view word : names_of<Compression::Kind>) {
    using enum Compression::Number;
    const Compression::Number number = Compression::number_of(*value_of<Compression::Kind>(word));
    written.push_back(std::string(word) + (number == rank ? "(4)" : number == share ? "(1 %)" : ""));
  }
  return or_list(written, written.size());
}

/// "top_k(0.01)" or "top_k(1 %)": the share of the gradients that is sent.
double parse_sent_share(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::string wanted = fmt::format(
      "a share of the gradients above 0 and up to 1, for example {0}(0.01) or {0}(1 %)", text.substr(0, open));
  if (open == std::string_view::npos || text.back() != ')') {
    throw UnitError(fmt::format("\"{}\" does not say how many gradients are sent", text), wanted);
  }
  double share = 0.0;
  try {
    share = parse_share(trim(text.substr(open + 1, text.size() - open - 2)));
  } catch (const UnitError& error) {
    throw UnitError(error.got(), wanted);
  }
  if (share > 0.0 && share <= 1.0) return share;
  throw UnitError(fmt::format("a share of {} of the gradients", share), wanted);
}

void parse_compression(Sync& sync, std::string_view text) {
  Compression& compression = sync.compression;
  const auto kind = value_of<Compression::Kind>(text.substr(0, text.find('(')));
  const Compression::Number wanted = kind ? Compression::number_of(*kind) : Compression::Number::nothing;
  if (wanted == Compression::Number::share) {
    compression.share = parse_sent_share(text);
  } else {
    const std::optional<int> number = parse_word_with_number(text, 1).number;
    if (!kind || number.has_value() != (wanted == Compression::Number::rank)) {
      throw UnitError(fmt::format("unknown value \"{}\"", text), compressions());
    }
    compression.rank = number.value_or(0);
  }
  compression.kind = *kind;
  compression.error_feedback = compression.needs_whole_gradient();  // they lose too much without
}

void parse_error_feedback(Sync& sync, std::string_view text) {
  sync.compression.error_feedback = parse_flag(text);
  if (sync.compression.kind != Compression::Kind::none) return;
  throw UnitError("error feedback without compression",
                  fmt::format("compression: {}, or leave the key out", compressions().substr(sizeof("none,"))));
}

constexpr IntegerRange factor{1, 1'000'000};
constexpr Key zero_keys[] = {
    needed<&Plan::zero>("ZeRO stage, as plan.zero.", {.name = "stage", .range = {0, 3}}),
    member<&Plan::shard>("Data-parallel ranks per sharding group; groups are replicas (HSDP).",
                         {.usual = "all data-parallel ranks", .range = factor}),
    member<&Plan::zero_gradients, to_divided_gradients>(
        "ZeRO-2 gradients: reduce-scatter after each micro-batch, or after the last one.",
        {.name = "gradients", .together = "stage: 2"}),
    member<&Plan::zero_by, to_divided_states>("Gradient reduction: reduce-scatter, or all-reduce.",
                                              {.name = "by", .together = "stage: 1, or 2 with gradients: kept"}),
};

// `auto` is searched for before a scenario is read (planning/plan_search.hpp).
constexpr Value factor_of_gpus = whole | one_of<"auto">;
constexpr Key with_pipeline{.together = "With pipeline above 1."}, for_experts{.together = "A model with experts."},
    with_offload{.together = "With offload."};
constexpr auto execution =
    member<&Plan::execution, everywhere>("How kernels are launched: one by one, compiled, or as CUDA graphs.");
constexpr Key plan_keys[] = {
    member<&Plan::data>("Data-parallel ranks.",
                        {.value = factor_of_gpus,
                         .usual = "what tensor, pipeline and context leave",
                         .together = "data x tensor x pipeline x context is the number of GPUs.",
                         .title = "workers",
                         .range = factor}),
    member<&Plan::tensor>("Tensor-parallel ranks: each holds a part of every layer's matrices.",
                          {.value = factor_of_gpus, .title = "tensor-parallel GPUs", .range = factor}),
    member<&Plan::pipeline>("Pipeline stages, each with consecutive layers.",
                            {.value = factor_of_gpus, .title = "pipeline stages", .range = factor}),
    member<&Plan::interleave>("Model chunks per stage (virtual pipeline stages), which shorten the pipeline bubble.",
                              with_pipeline.in(factor)),
    member<&Plan::context>("Context-parallel ranks: each holds a part of every sequence.",
                           {.value = factor_of_gpus, .title = "context-parallel GPUs", .range = factor}),
    member<&Plan::context_method, to_context_ranks, one_context_rank>(
        "Communication of context parallelism: ring attention, all-gather, or all-to-all (Ulysses).",
        {.usual = "the framework's, or ring", .together = "With context above 1."}),
    member<&Plan::expert>("Expert-parallel ranks: each holds a part of every layer's experts.",
                          {.value = factor_of_gpus,
                           .together = "A model with experts.",
                           .title = "expert-parallel GPUs",
                           .range = factor}),
    with<no_experts>(Key{"expert_tensor", whole, "tensor; 1 for small experts",
                         "Tensor-parallel ranks of an expert: 1, or as many as tensor."}
                         .in(factor)),
    member<&Plan::expert_dispatch, to_experts>(
        "Expert all-to-all: one copy per expert, or one per node (deduplicated, forwarded).",
        for_experts.or_else("the framework's, or forwarded")),
    member<&Plan::expert_comm_overlap, to_experts>(
        "Overlap the expert all-to-all with compute of another micro-batch or chunk.", for_experts),
    member<&Plan::schedule>("Pipeline schedule.", with_pipeline.or_else("1f1b; interleaved with interleave")),
    member<&Plan::pipeline_messages, to_pipelines, one_stage>(
        "Pipeline P2P: a stage computes on while it sends (asynchronous), or waits (blocking).", with_pipeline),
    member<&Plan::embedding_in_pipeline, one_stage>(
        "Count embedding and loss as one layer each when stages are balanced."),
    member<&Plan::sequence_parallel, whole_sequence>(
        "Sequence parallelism: tensor-parallel ranks split norms and dropout along the sequence.",
        {.together = "With tensor above 1."}),
    member<&Plan::tensor_overlap, to_tensor_ranks>(
        "Overlap tensor-parallel all-gather and reduce-scatter with GEMMs, in chunks.",
        {.together = "With sequence_parallel."}),
    more_of<Plan>(member<&Plan::zero, everywhere>(
        "ZeRO stage: data-parallel ranks shard optimizer states (1), also gradients (2), also weights (3, FSDP).",
        {.value = factor_of_gpus | mapping_of<zero_keys, "ZeRO">, .range = {0, 3}})),
    member<&Plan::reshard_after_forward>(
        "Free gathered weights after the forward pass, and gather them again for the backward pass.",
        {.usual = "true; false with a pipeline", .together = "zero: 3"}),
    parsed_by<parse_offload>(
        {"offload", one_or_list(offloaded), "none", "Offload to CPU memory: optimizer, parameters, activations."}),
    member<&Plan::offload_to_disks, nothing_offloaded>("Target of the offload: CPU memory, or NVMe (disks).",
                                                       with_offload.as("offload_to").of(one_of<"memory", "disks">)),
    member<&Plan::pinned_offload, everywhere, nothing_offloaded>(
        "Pin the CPU memory of offloaded weights, gradients and optimizer states.", with_offload),
    member<&Plan::host_threads, everywhere, nothing_offloaded>(
        "CPU threads per process for the offloaded optimizer; 0: its share of the cores.",
        with_offload.in({0, 10'000})),
    member<&Plan::update_group, everywhere>(
        "Parameters per optimizer sub-group, whose gradients are cast to fp32 for the update; 0: no cast.",
        may_be_zero),
    member<&Plan::gathered_parameters, everywhere, nothing_gathered>(
        "Limit on gathered parameters, gradient buckets included; 0: two layers.",
        {.together = "zero: 3", .zero = Zero::allowed}),
    share<&Plan::headroom, "headroom", "memory">("6 %",
                                                 "Share of GPU memory to keep free: plans that need more do not fit."),
    part<&Plan::sync>(sync,
                      {.usual = "all-reduce, algorithm by NCCL's choice", .meaning = "Gradient synchronisation."}),
    execution,
    member<&Plan::graphed_parts, to_experts, not_eager>(
        "Layer parts that eager execution launches as one CUDA graph each (Megatron-Core: partial CUDA graphs).",
        {.together = "A model with experts, execution eager."}),
    member<&Plan::single_process, everywhere>("One Python process per GPU, or one per node.",
                                              {.name = "processes", .value = one_of<"per_gpu", "single">}),
    with<one_dimension>({"order", text, "tensor-context-expert-data-pipeline",
                         "Rank order: parallel dimensions, fastest-varying first, joined by -."}),
    member<&Plan::split, nodes_alike>("Samples per data-parallel rank on unequal nodes: equal, by speed, or best.",
                                      {.usual = "equal", .together = "With cluster.groups."}),
    with<one_stage>(Key{"stage_layers", one_of<"by_speed"> | list(whole), "as many each",
                        "Layers per pipeline stage, or by the speed of its GPUs.",
                        "With pipeline above 1, interleave 1."}
                        .in({0, 100'000})),
    {"placement", one_of<"packed", "scattered"> | one_or_list(text), "packed",
     "Nodes in rank order: packed, scattered over leaf switches, or a list such as [0..7, 12]."},
    {"framework", named(Catalogue::trainer), "tuned",
     "Framework whose settings apply to missing keys: a name from `foretrain frameworks list`, or a settings profile."},
};

void parse_slow_factor(Sync::SlowWorkers& slow, std::string_view text) {
  slow.factor = parse_number(text);
  if (slow.factor >= 1.0 && slow.factor <= 1000.0) return;
  throw UnitError(fmt::format("{} times the compute time of the others", slow.factor), "from 1 to 1000");
}

constexpr Key collective_plan_keys[] = {
    part<&Plan::sync>(sync, {.usual = "NCCL's choice", .meaning = "Algorithm of the collective."}),
};
constexpr Key execution_plan_keys[] = {execution};

constexpr Key slow_workers_keys[] = {
    needed<&Sync::SlowWorkers::count>("Number of slow workers.", {.range = {0, 1'000'000}}),
    parsed_by<parse_slow_factor>({"factor", number, "needed", "Compute time relative to other workers."}),
};

constexpr Key sync_keys[] = {
    member<&Sync::algorithm, everywhere, one_replica>(
        "Algorithm of the gradient all-reduce; auto: NCCL's choice (without NCCL: the fastest)."),
    member<&Sync::levels>("Group sizes of hierarchical algorithms, innermost first, such as [8, 4].",
                          {.value = one_or_list(whole),
                           .usual = "ranks of a node, then nodes",
                           .together = "Hierarchical algorithms.",
                           .range = factor}),
    member<&Sync::servers>("Number of parameter servers.", {.together = with_servers, .range = {1, 100'000}}),
    member<&Sync::placement>("Placement of parameter servers.", {.together = with_servers}),
    parsed_by<parse_consistency, to_servers, collective_alone>(
        {"consistency", text, "synchronous",
         "Parameter server updates: synchronous, asynchronous or bounded(4) (stale by at most 4 steps).",
         with_servers}),
    parsed_by<parse_bucket, everywhere, collective_alone, one_replica, key_by_key, layer_by_layer>(
        {"bucket", named(Catalogue::bucket_rule) | quantity("MB"), "auto",
         "Gradient bucket: a size, or a rule of scenarios/buckets.yaml (auto, whole, a framework's).", "",
         "gradient bucket"}),
    member<&Sync::first_bucket, everywhere, collective_alone, one_replica, key_by_key, layer_by_layer>(
        "Size of the first bucket, if different.", {.value = quantity("MB"), .usual = "bucket"}),
    member<&Sync::bucketing, everywhere, collective_alone, one_replica, key_by_key, layer_by_layer>(
        "Boundaries of buckets: layers or tensors."),
    member<&Sync::overlap, everywhere, collective_alone, one_replica>(
        "Overlap gradient reduction with the backward pass."),
    member<&Sync::sync_each_micro_batch, everywhere, collective_alone, one_replica, scatters_always>(
        "Reduce gradients after each micro-batch, not only after the last one."),
    member<&Sync::separate_bucket_buffers, everywhere, collective_alone, one_replica, key_by_key>(
        "Copy gradients into separate bucket buffers."),
    member<&Sync::accumulation, everywhere, collective_alone, one_micro_batch>(
        "Gradient accumulation over micro-batches: in the weight-gradient GEMM, by own kernels, or clipped per "
        "micro-batch."),
    member<&Sync::fp32_accumulation, everywhere, collective_alone, adds_its_part>(
        "Accumulate micro-batches in a separate fp32 buffer, and keep the gradients of each pass."),
    member<&Sync::gradient_precision, everywhere, collective_alone>(
        "Number format of gradient reduction.",
        {.value = word_among<gradient_precisions>, .usual = "the framework's, else fp32"}),
    member<&Sync::parameter_precision>(
        "Number format of the weight all-gather (ZeRO), or of weights pulled from servers.",
        {.value = word_among<gradient_precisions>, .usual = "that of the weights"}),
    member<&Sync::gather, to_updated_parts, collective_alone, one_replica, no_updated_parts>(
        "ZeRO-1/2 weight update: all-gather per gradient bucket or at once, or broadcasts by owners.",
        {.together = "zero: 1 or 2"}),
    member<&Sync::gather_overlap, to_updated_parts, collective_alone, one_replica, no_updated_parts>(
        "Overlap the weight all-gather with the next forward pass.", {.together = "zero: 1 or 2"}),
    parsed_by<parse_compression, one_replica>(
        {"compression", text, "none", "Gradient compression: none, fp16, …, powersgd(4), top_k(1 %)."}),
    parsed_by<parse_error_feedback>({"error_feedback", flag, "if the compression needs it",
                                     "Error feedback: add the compression error to the next step's gradients.",
                                     "With compression."}),
    member<&Sync::assignment, to_servers, collective_alone>("Assignment of gradients to parameter servers.",
                                                            {.together = with_servers}),
    member<&Sync::split, to_servers, collective_alone>(
        "Largest gradient slice; larger gradients are split over servers.",
        {.value = quantity("MB"), .usual = "4 MB", .together = with_servers}),
    member<&Sync::priority, to_servers, collective_alone>("Order in which a server processes gradients.",
                                                          {.together = with_servers}),
    member<&Sync::barrier, to_servers, collective_alone>("Pull weights only after all gradients are applied.",
                                                         {.together = with_servers}),
    member<&Sync::local_reduce, to_servers, collective_alone>(
        "Sum gradients of a node's GPUs first, and push once per node.", {.together = with_servers}),
    part<&Sync::slow_workers, collective_alone>(
        mapping_with<slow_workers_keys, "slow workers">,
        {.usual = "none", .meaning = "Slow workers (stragglers).", .together = with_servers}),
};

constexpr Key bucket_rule_keys[] = {
    {"size", quantity("MiB"), "none", "Bucket size; the largest of this and the next two applies."},
    {"elements", number, "none", "Bucket size in gradients."},
    {"elements_per_rank", number, "none", "Bucket size in gradients per data-parallel rank."},
    {"first_bucket", quantity("MiB"), "as the others", "Size of the first bucket."},
    {"whole", word<BucketsWhole>, "never", "When all gradients form one bucket."},
    {"source", text, "needed", "Source of the rule; not read."},
};

constexpr Key buckets_file_keys[] = {
    {"kind", text, "", "Kind of file: buckets."},
    {"rules", by_name(mapping_of<bucket_rule_keys, "rule for buckets">), "needed", "Bucket size rules, by name."},
};

}  // namespace

bool is_server_key(std::string_view key) {
  const auto* const row = std::ranges::find(sync_keys, key.substr(0, key.find('.')), &Key::name);
  return row != std::end(sync_keys) && row->together == with_servers;
}

bool has_no_servers(std::string_view word) {
  const auto algorithm = value_of<SyncAlgorithm>(word);
  return algorithm && !has_servers(*algorithm);
}

constinit const Mapping plan = {"plan", plan_keys};
constinit const Mapping collective_plan = {"plan of a collective", collective_plan_keys};
constinit const Mapping execution_plan = {"plan of operators and tasks", execution_plan_keys};
constinit const Mapping sync = {"synchronisation", sync_keys};
constinit const Mapping buckets_file = {"file of rules for buckets", buckets_file_keys};

}  // namespace foretrain::keys
