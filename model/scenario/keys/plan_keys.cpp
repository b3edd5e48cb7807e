// Plans: how a training is spread over GPUs, and how its gradients are synchronised.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/base/text.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/training.hpp"

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

/// How many gradients are synchronised at once: a size, or the name of a rule of scenarios/buckets.yaml.
void parse_bucket(Sync& sync, std::string_view text) {
  sync.bucket_rule = text.find_first_of("0123456789") == std::string_view::npos ? text : "";
  if (sync.bucket_rule.empty()) sync.bucket = parse_quantity<Bytes>(text);
  if (!(sync.bucket > Bytes(0.0))) throw UnitError("zero is impossible here", "a value above zero");
}

/// Every kind of compression as it is written, with a number for example: "none, fp16, …, top_k(1 %)".
std::string compressions() {
  std::vector<std::string> written;
  for (const std::string_view word : names_of<Compression::Kind>) {
    const Compression::Number number = Compression::number_of(*value_of<Compression::Kind>(word));
    const std::string_view example = number == Compression::Number::rank    ? "(4)"
                                     : number == Compression::Number::share ? "(1 %)"
                                                                            : "";
    written.push_back(fmt::format("{}{}", word, example));
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

void parse_slow_factor(Sync::SlowWorkers& slow, std::string_view text) {
  slow.factor = parse_number(text);
  if (slow.factor >= 1.0 && slow.factor <= 1000.0) return;
  throw UnitError(fmt::format("{} times the compute time of the others", slow.factor), "from 1 to 1000");
}

// `auto` is searched for before a scenario is read (planning/auto_plan.hpp).
constexpr Value factor_of_gpus = whole | one_of<"auto">;
constexpr IntegerRange factor{1, 1'000'000};
constexpr auto execution = member<&Plan::execution, everywhere>("How kernels are launched.");
constexpr Key plan_keys[] = {
    member<&Plan::data>("Replicas of the model, each with a part of the batch.",
                        {.value = factor_of_gpus,
                         .usual = "what tensor, pipeline and context leave",
                         .together = "data x tensor x pipeline x context is the number of GPUs.",
                         .title = "workers",
                         .range = factor}),
    member<&Plan::tensor>("GPUs that share the matrices of every layer.",
                          {.value = factor_of_gpus, .title = "tensor-parallel GPUs", .range = factor}),
    member<&Plan::pipeline>("Stages into which the layers are divided, one after the other.",
                            {.value = factor_of_gpus, .title = "pipeline stages", .range = factor}),
    member<&Plan::interleave>("Chunks of layers that a stage has, which shortens the pipeline's bubble.",
                              {.together = "With pipeline above 1.", .range = factor}),
    member<&Plan::context>("GPUs that share every sequence.",
                           {.value = factor_of_gpus, .title = "context-parallel GPUs", .range = factor}),
    member<&Plan::context_method, to_context_ranks, one_context_rank>(
        "Communication of context parallelism: keys and values on a ring, gathered first, or all-to-alls (Ulysses).",
        {.usual = "the framework's, or ring", .together = "With context above 1."}),
    member<&Plan::expert>("GPUs over which a layer's experts are divided.", {.value = factor_of_gpus,
                                                                             .together = "A model with experts.",
                                                                             .title = "expert-parallel GPUs",
                                                                             .range = factor}),
    with<no_experts>({"expert_tensor", whole, "tensor; 1 where experts are small",
                      "GPUs that share the matrices of an expert: 1, or as many as tensor."}),
    member<&Plan::expert_dispatch, to_experts>(
        "How tokens reach experts: every copy by itself, once to each node, or so over the sender's own rail.",
        {.usual = "the trainer's, or forwarded", .together = "A model with experts."}),
    member<&Plan::expert_overlap, to_experts>(
        "Whether tokens travel behind the kernels of another micro-batch or chunk.",
        {.together = "A model with experts."}),
    member<&Plan::schedule>("In which order a stage takes its micro-batches.",
                            {.usual = "1f1b; interleaved with interleave", .together = "With pipeline above 1."}),
    member<&Plan::pipeline_messages, to_pipelines, one_stage>(
        "Whether a stage goes on while what it has sent is on its way, or waits until it has arrived.",
        {.together = "With pipeline above 1."}),
    member<&Plan::embedding_in_pipeline, one_stage>(
        "Whether embedding and loss count as a layer each when stages are cut."),
    member<&Plan::sequence_parallel, whole_sequence>("Whether tensor ranks divide the sequence between their products.",
                                                     {.together = "With tensor above 1."}),
    member<&Plan::tensor_overlap, to_tensor_ranks>(
        "Whether gathers and scatters of tensor ranks run behind products, in chunks.",
        {.together = "With sequence_parallel."}),
    more_of<Plan>(member<&Plan::zero, everywhere>(
        "What is divided over replicas: 1 optimizer states, 2 and gradients, 3 and weights (FSDP).",
        {.value = factor_of_gpus | mapping(zero), .range = {0, 3}})),
    member<&Plan::reshard_after_forward>("Whether weights are given back after the forward pass and gathered again.",
                                         {.usual = "true; false with a pipeline", .together = "zero: 3"}),
    parsed_by<parse_offload>(
        {"offload", one_or_list(offloaded), "none", "What is kept in host memory between its uses."}),
    member<&Plan::offload_to_disks, nothing_offloaded>(
        "Where offloaded weights and states lie: in the host's memory, or on its disks (NVMe).",
        {.name = "offload_to", .value = one_of<"memory", "disks">, .together = "With offload."}),
    member<&Plan::pinned_offload, everywhere, nothing_offloaded>(
        "Whether host memory of offloaded weights, gradients and states is page-locked.",
        {.together = "With offload."}),
    member<&Plan::host_threads, everywhere, nothing_offloaded>(
        "Threads of each process for updates on the host; 0: its share of the cores.",
        {.together = "With offload.", .range = {0, 10'000}}),
    member<&Plan::update_group, everywhere>(
        "Parameters of a rank that are updated at a time, their gradients widened to fp32 for it; 0: they are not.",
        {.zero = Zero::allowed}),
    member<&Plan::gathered_parameters, everywhere, nothing_gathered>(
        "Parameters that stay gathered, buckets of gradients included; 0: two layers'.",
        {.together = "zero: 3", .zero = Zero::allowed}),
    share<&Plan::headroom, "headroom", "memory">(
        "6 %",
        "Share of a GPU's memory that stays free: a plan that needs more than the rest does not count as one that "
        "fits."),
    part<&Plan::sync>(sync,
                      {.usual = "all-reduce by the fastest algorithm", .meaning = "How gradients are synchronised."}),
    execution,
    member<&Plan::graphed_parts, to_experts, not_eager>(
        "Which parts of a layer eager execution launches as one CUDA graph each; experts follow by themselves.",
        {.together = "A model with experts, execution eager."}),
    member<&Plan::single_process, everywhere>("A Python process for each GPU, or one for all of a machine.",
                                              {.name = "processes", .value = one_of<"per_gpu", "single">}),
    with<one_dimension>({"order", text, "tensor-context-expert-data-pipeline",
                         "Which dimension runs over neighbouring ranks: the fastest first, joined by -."}),
    member<&Plan::split, nodes_alike>("How a step's samples are divided among replicas on unequal machines.",
                                      {.usual = "equal", .together = "With cluster.groups."}),
    with<one_stage>({"stage_layers", one_of<"by_speed"> | list(whole), "as many each",
                     "Layers of each stage, or as many as suit the speed of its GPUs.",
                     "With pipeline above 1, interleave 1."}),
    {"placement", one_of<"packed", "scattered"> | one_or_list(text), "packed",
     "The machines in the order of ranks: packed, scattered over a fabric's leaves, or a list such as [0..7, 12]."},
    {"trainer", named(Catalogue::trainer), "well-tuned",
     "The framework whose settings apply to keys that are left out: a name from `foretrain trainers list`, or a file."},
};

constexpr Key collective_plan_keys[] = {
    part<&Plan::sync>(sync, {.usual = "the fastest algorithm", .meaning = "How the collective is carried out."}),
};
constexpr Key execution_plan_keys[] = {execution};

constexpr Key zero_keys[] = {
    needed<&Plan::zero>("As plan.zero: what is divided.", {.name = "stage", .range = {0, 3}}),
    member<&Plan::shard>("Replicas over which it is divided, as often as there are such groups (HSDP).",
                         {.usual = "all replicas", .range = factor}),
    member<&Plan::zero_gradients, to_divided_gradients>(
        "Whether each micro-batch's gradients are scattered, or kept whole until the last "
        "one's are.",
        {.name = "gradients", .together = "stage: 2"}),
    member<&Plan::zero_by, to_divided_states>(
        "Whether a rank is sent its part of the summed gradients, or all of them.",
        {.name = "by", .together = "stage: 1, or 2 with gradients: kept"}),
};

constexpr Key sync_keys[] = {
    member<&Sync::algorithm, everywhere, one_replica>(
        "How gradients are summed; auto: the fastest of those that apply."),
    member<&Sync::levels>("Group sizes from the inside out, such as [8, 4].",
                          {.value = one_or_list(whole),
                           .usual = "a machine's ranks, then machines",
                           .together = "Algorithms in levels.",
                           .range = factor}),
    member<&Sync::servers>("How many parameter servers there are.", {.together = with_servers, .range = {1, 100'000}}),
    member<&Sync::placement>("Where parameter servers run.", {.together = with_servers}),
    parsed_by<parse_consistency, to_servers, collective_alone>(
        {"consistency", text, "synchronous", "synchronous, asynchronous or bounded(4).", with_servers}),
    parsed_by<parse_bucket, everywhere, collective_alone, one_replica, key_by_key, layer_by_layer>(
        {"bucket", named(Catalogue::bucket_rule) | quantity("MB"), "auto",
         "Gradients that are sent together: a size, or a rule of scenarios/buckets.yaml (auto, whole, a trainer's).",
         "", "gradient bucket"}),
    member<&Sync::first_bucket, everywhere, collective_alone, one_replica, key_by_key, layer_by_layer>(
        "The first bucket to become ready, where its size is another.", {.value = quantity("MB"), .usual = "bucket"}),
    member<&Sync::bucketing, everywhere, collective_alone, one_replica, key_by_key, layer_by_layer>(
        "Whether buckets end with layers or with tensors."),
    member<&Sync::overlap, everywhere, collective_alone, one_replica>(
        "Whether gradients are sent while others are computed."),
    member<&Sync::every_micro_batch, everywhere, collective_alone, one_replica, scatters_always>(
        "Whether gradients are sent after each micro-batch, not after the last alone."),
    member<&Sync::copied, everywhere, collective_alone, one_replica, key_by_key>(
        "Whether gradients are copied into buckets that have memory of their own."),
    member<&Sync::accumulation, everywhere, collective_alone, one_micro_batch>(
        "How gradients of micro-batches are added up: in the GEMMs (fused), by kernels of their "
        "own (added), or after clipping each micro-batch's (clipped)."),
    member<&Sync::summed_apart, everywhere, collective_alone, adds_its_part>(
        "Whether micro-batches are added up in fp32 beside the gradients of a pass, which stay."),
    member<&Sync::gradient_precision, everywhere, collective_alone>(
        "The format in which gradients are sent.",
        {.value = word_among<gradient_precisions>, .usual = "the trainer's, else fp32"}),
    member<&Sync::parameter_precision>("The format in which ZeRO gathers weights, and workers pull them.",
                                       {.value = word_among<gradient_precisions>, .usual = "that of the weights"}),
    member<&Sync::gather, to_updated_parts, collective_alone, one_replica, no_updated_parts>(
        "How updated weights come back: all-gathers in the gradients' buckets or one; broadcasts by "
        "owners of tensors.",
        {.together = "zero: 1 or 2"}),
    member<&Sync::gather_overlap, to_updated_parts, collective_alone, one_replica, no_updated_parts>(
        "Whether updated weights come back beside the next step's forward passes, not behind the update.",
        {.together = "zero: 1 or 2"}),
    parsed_by<parse_compression, one_replica>(
        {"compression", text, "none",
         "none, fp16, …, powersgd(4), top_k(1 %): gradients made smaller before they are sent."}),
    parsed_by<parse_error_feedback>({"error_feedback", flag, "where compression needs it",
                                     "Whether what compression loses is added to the next step's gradients.",
                                     "With compression."}),
    member<&Sync::assignment, to_servers, collective_alone>("How gradients are dealt out to servers.",
                                                            {.together = with_servers}),
    member<&Sync::split, to_servers, collective_alone>(
        "The size above which a gradient is cut into pieces.",
        {.value = quantity("MB"), .usual = "4 MB", .together = with_servers}),
    member<&Sync::priority, to_servers, collective_alone>("Which gradient a server takes first.",
                                                          {.together = with_servers}),
    member<&Sync::barrier, to_servers, collective_alone>(
        "Whether no weight is pulled before all gradients are applied.", {.together = with_servers}),
    member<&Sync::local_reduce, to_servers, collective_alone>("Whether a machine's GPUs add up first and push once.",
                                                              {.together = with_servers}),
    part<&Sync::slow_workers, collective_alone>(
        slow_workers,
        {.usual = "none", .meaning = "Workers that compute slower than others.", .together = with_servers}),
};

constexpr Key slow_workers_keys[] = {
    needed<&Sync::SlowWorkers::count>("How many are slow.", {.range = {0, 1'000'000}}),
    parsed_by<parse_slow_factor>({"factor", number, "needed", "Their compute time over that of the others."}),
};

constexpr Key buckets_file_keys[] = {
    {"kind", text, "", "What the file describes: buckets."},
    {"rules", by_name(mapping(bucket_rule)), "needed", "Rules for how large a bucket is, by name."},
};

constexpr Key bucket_rule_keys[] = {
    {"size", quantity("MiB"), "none", "A bucket's size; of this and the next two, the greatest holds."},
    {"elements", number, "none", "The same as a number of gradients."},
    {"elements_per_rank", number, "none", "The same for each replica."},
    {"first_bucket", quantity("MiB"), "as the others", "The first bucket to become ready."},
    {"whole", word<BucketsWhole>, "never", "When all gradients are sent at once."},
    {"source", text, "needed", "Where the rule comes from; not read."},
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
constinit const Mapping zero = {"ZeRO", zero_keys};
constinit const Mapping sync = {"synchronisation", sync_keys};
constinit const Mapping slow_workers = {"slow workers", slow_workers_keys};
constinit const Mapping buckets_file = {"file of rules for buckets", buckets_file_keys};
constinit const Mapping bucket_rule = {"rule for buckets", bucket_rule_keys};

}  // namespace foretrain::keys
