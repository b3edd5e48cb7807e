// Workloads: a training, its data, or a collective alone.
#include "model/collectives/operation.hpp"
#include "model/cost/storage.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/data_loader.hpp"
#include "model/workload/model.hpp"

namespace foretrain::keys {

namespace {

void parse_fusion(TrainerCode& code, std::string_view text) {
  if (text != "none") code.fusions.add(static_cast<Fusion>(parse_word(text, names_of<Fusion>)));
}

void parse_loss(TrainerCode& code, std::string_view text) {
  const auto [word, parts] = parse_word_with_number(text, 1);
  const bool chunked = word == name(Loss::Kind::chunked);
  if (chunked != parts.has_value()) {
    throw UnitError(chunked ? "no number of chunks" : std::string(word) + " takes no number",
                    "eager, fused, chunked(8) or fused_linear");
  }
  code.loss = {static_cast<Loss::Kind>(parse_word(word, names_of<Loss::Kind>)), parts.value_or(1)};
}

/// "2 of 8", or "all".
void parse_recomputed(TrainWorkload& train, std::string_view text) {
  constexpr std::int64_t most = 100'000;
  train.recompute_layers = {};
  if (text == "all") return;
  const std::size_t of = text.find(" of ");
  if (of == std::string_view::npos)
    throw UnitError(fmt::format("\"{}\"", text), "n of m layers, such as 2 of 8, or all");
  const std::int64_t all = parse_integer(text.substr(of + 4), 1, most);
  train.recompute_layers = {static_cast<int>(parse_integer(text.substr(0, of), 0, all)), static_cast<int>(all)};
}

template <auto pointer>
void put_length(LengthDistribution& lengths, std::string_view text) {
  lengths.*pointer = parse_length(text);
}

/// "80 %" or 0.8.
void put_spread(LengthDistribution& lengths, std::string_view text) {
  constexpr double widest = 5.0;
  lengths.spread = parse_share(text);
  if (lengths.spread > widest) {
    throw UnitError(fmt::format("a spread of {}", text), "0 to 500 % of the mean, such as 80 %");
  }
}

constexpr std::string_view auto_words[] = {"auto"};  // searched for before a scenario is read

constexpr Key dataset_keys[] = {
    member<&Dataset::samples>("Number of samples.",
                              {.value = whole, .usual = "more than fit in memory", .range = {1, 1'000'000'000'000}}),
    needed<&Dataset::sample>("KB", "Stored sample size."),
    member<&Dataset::layout>("One file per sample, or archives of many."),
    member<&Dataset::order>("Read order of samples."),
    member<&Dataset::mapped>("Read files by mmap (page faults)."),
};

constexpr Key a_time = may_be_zero.of(quantity("ms"));
constexpr Key with_dataset{.together = "With dataset."};
constexpr Key loader_keys[] = {
    needed<&DataLoader::workers>("Loader workers per training process; 0: in the training process.",
                                 {.title = "loading processes", .range = {0, 10'000}}),
    member<&DataLoader::prefetch>("Prefetched batches per worker.", {.range = {1, 10'000}}),
    member<&DataLoader::cores>("CPU cores shared by the workers of one training process.",
                               {.usual = "the node's cores, divided", .range = {1, 100'000}}),
    member<&DataLoader::per_sample>("CPU time of a worker per sample.",
                                    a_time.or_else("its parts").beside("Instead of read to collate.")),
    member<&DataLoader::per_batch>("Unit of these times: sample or batch.",
                                   {.name = "per", .value = one_of<"sample", "batch">}),
    member<&LoaderStages::read>("Time waiting for storage.", a_time.beside("Instead of dataset.")),
    member<&LoaderStages::decode>("Time to decode.", a_time),
    member<&LoaderStages::preprocess>("Time to preprocess.", a_time),
    member<&LoaderStages::augment>("Time to augment.", a_time),
    member<&LoaderStages::collate>("Time to collate samples into a batch.", a_time),
    {"dataset", mapping_of<dataset_keys, "data set">, "", "Dataset read from storage.", "Instead of read."},
    {"storage", named(Catalogue::storage, storage), "the node's", "Storage of the dataset.", "With dataset."},
    member<&DataLoader::warm>("Page cache at the start: cold or warm.",
                              with_dataset.as("epoch").of(one_of<"cold", "warm">)),
    member<&DataLoader::keeps_decoded>("Cache decoded samples in memory.",
                                       {.name = "keep_decoded", .together = "With dataset and decoded."}),
    member<&DataLoader::decoded>("Sample size copied to the GPU.", {.value = quantity("KB"), .usual = "as stored"}),
    member<&DataLoader::decodes_on_device>(
        "Device that decodes.",
        {.name = "decode_on", .value = one_of<"cpu", "gpu">, .together = "gpu: with device_decode."}),
    member<&DataLoader::device_decode>("Decode time on the GPU.", a_time.beside("decode_on: gpu")),
    member<&DataLoader::transfer>("Time to copy a batch to the GPU.", a_time.or_else("from decoded")),
    member<&DataLoader::pinned>("Copy batches from pinned memory."),
    member<&DataLoader::non_blocking>("Copy asynchronously, during the previous step.", {.together = "With pinned."}),
    member<&DataLoader::persistent>("Keep workers across epochs."),
    share<&DataLoader::spread, "spread", "mean">("0", "Standard deviation of a sample's time over its mean."),
};

constexpr Key recipe_keys[] = {
    member<&QuantisationRecipe::scaling>("Scaling of fp8 operands (Transformer Engine recipe).", {.together = "fp8"}),
    member<&QuantisationRecipe::experts_alone>("Linear layers that are cast: all, or experts alone.",
                                               {.name = "layers", .value = one_of<"all", "experts">}),
    member<&QuantisationRecipe::first_bf16_layers>("First layers kept in bf16.", {.range = {0, 100'000}}),
    member<&QuantisationRecipe::last_bf16_layers>("Last layers kept in bf16.", {.range = {0, 100'000}}),
};

constexpr Key precision_keys[] = {
    {"preset", word_among<training_precisions>, "the format beside it", "Number format of GEMMs."},
    {"fp8", mapping_of<recipe_keys, "recipe of casting">, "", "FP8 recipe."},
    {"mxfp8", mapping_of<recipe_keys, "recipe of casting">, "", "MXFP8 recipe."},
    {"nvfp4", mapping_of<recipe_keys, "recipe of casting">, "", "NVFP4 recipe."},
};

constexpr Key batching_keys[] = {
    needed<&Batching::kind>("Batching of samples of different lengths."),
    member<&Batching::buckets>("Number of length ranges (buckets).",
                               {.together = "kind: bucketing", .range = {1, 1000}}),
    member<&Batching::length>("Length of packed sequences.",
                              {.usual = "the model's sequence", .together = "kind: packing", .range = {1, 10'000'000}}),
};

constexpr Key fixed_keys[] = {
    parsed_by<put_length<&LengthDistribution::value>>({"value", number, "needed", "The one length."}),
};
constexpr Key uniform_keys[] = {
    parsed_by<put_length<&LengthDistribution::from>>({"from", number, "needed", "The shortest length."}),
    parsed_by<put_length<&LengthDistribution::to>>({"to", number, "needed", "The longest length."}),
};
constexpr Key lognormal_keys[] = {
    parsed_by<put_length<&LengthDistribution::mean>>({"mean", number, "needed", "The mean length."}),
    parsed_by<put_spread>({"spread", quantity("%") | number, "needed", "Standard deviation over the mean."}),
};
constexpr Key histogram_keys[] = {
    {"values", list(number), "needed", "Lengths."},
    {"weights", list(number), "needed", "Relative frequency of each length."},
};
constexpr Key distribution_keys[] = {
    needed<&LengthDistribution::kind>("Distribution of lengths.", {.name = "distribution"}),
};
constexpr Variant distribution_variants[] = {{"fixed", &mapping_with<fixed_keys, "one length">},
                                             {"uniform", &mapping_with<uniform_keys, "uniform lengths">},
                                             {"lognormal", &mapping_with<lognormal_keys, "lognormal lengths">},
                                             {"histogram", &mapping_with<histogram_keys, "histogram of lengths">}};
constexpr Mapping distribution = {"distribution of lengths", distribution_keys, "distribution", distribution_variants};

constexpr Value lengths_of_samples = number | mapping(distribution);
constexpr Key data_keys[] = {
    {"images", lengths_of_samples, "1", "Images of a sample.", "Vision–language models."},
    {"text", lengths_of_samples, "needed", "Tokens of text of a sample."},
    {"batching", word<Batching::Kind> | mapping_of<batching_keys, "batching">, "padding",
     "Batching of samples of different lengths."},
};

constexpr Key lora_keys[] = {
    Key{"rank", whole, "needed", "Rank of the adapters."}.in({1, 1'000'000}),
    {"targets", one_or_list(one_of<"attention", "ffn", "qkv">), "qkv", "The matrices that have adapters."},
};

constexpr Key quantisation_keys[] = {
    member<&FrozenWeights::weights>("Storage format of frozen weights; each GEMM dequantises them to 16 bits."),
    member<&FrozenWeights::doubly>("Double quantisation: scales in 8 bits.", {.name = "double"}),
};

constexpr Key checkpoint_keys[] = {
    Key{"every", whole | words(auto_words), "needed", "Checkpoint interval in steps; auto: best goodput."}.in(
        {1, 1'000'000'000}),
    member<&Checkpoint::mode>("Checkpoint mode."),
    {"storage", named(Catalogue::storage, storage) | one_of<"node">, "object-store",
     "Checkpoint storage; node: local disks, lost with the node."},
};

constexpr Key if_fused{.usual = "true; false with unfused kernels"},
    if_unfused{.usual = "false; true with unfused kernels"};
constexpr Key time = may_be_zero.of(quantity("us"));
constexpr Key train_keys[] = {
    {"model", named(Catalogue::model, model), "needed", "Model."},
    member<&TrainWorkload::global_batch>("Global batch: samples per step.",
                                         {.usual = "micro_batch x plan.data",
                                          .together = "A multiple of micro_batch x plan.data.",
                                          .title = "samples of a step",
                                          .range = {1, 1'000'000'000}}),
    Key{"global_batch_per_gpu", number, "", "Global batch divided by the number of GPUs.", "Instead of global_batch."}
        .with(Zero::refused),
    member<&TrainWorkload::micro_batch>("Micro-batch: samples per data-parallel rank and pass.",
                                        {.value = whole | words(auto_words), .range = {1, 1'000'000'000}}),
    {"precision", word_among<training_precisions> | mapping_of<precision_keys, "GEMM format">, "bf16",
     "Number format of GEMMs."},
    {"fp8", mapping_of<recipe_keys, "recipe of casting">, "", "FP8 recipe.", "precision: fp8"},
    {"mxfp8", mapping_of<recipe_keys, "recipe of casting">, "", "MXFP8 recipe.", "precision: mxfp8"},
    {"nvfp4", mapping_of<recipe_keys, "recipe of casting">, "", "NVFP4 recipe.", "precision: nvfp4"},
    member<&TrainWorkload::optimizer>("Optimizer, which determines the size of optimizer states."),
    member<&TrainWorkload::state_precision, eight_bits>("Number format of optimizer states.",
                                                        {.value = word_among<gradient_precisions>}),
    member<&TrainWorkload::recompute>("Activation recomputation (activation checkpointing).",
                                      {.value = word<Recompute> | words(auto_words)}),
    parsed_by<parse_recomputed, not_recomputed_whole>({"recompute_layers", text, "all",
                                                       "Layers to recompute: n of every m in a row, such as 2 of 8.",
                                                       "recompute: full"}),
    member<&TrainWorkload::attention>("Attention kernels.", {.usual = "flash; standard on old GPUs and for t5"}),
    member<&TrainerCode::kernels, to_transformers_on_gpus>(
        "Fusion of small operators; without a framework, of norms only.",
        {.usual = "fused; unfused on processors", .together = "Transformers."}),
    parsed_by<parse_fusion, to_plain_kernels, all_fused>(
        {"fusions",
         one_or_list(one_of<"none", "norm", "softmax", "activation", "bias_dropout_add", "rotary", "cross_entropy",
                            "optimizer">),
         "none",
         "Operators that run as one kernel with kernels: unfused; norm: batch norm with activation and residual sum.",
         "kernels: unfused, or networks of layers"}),
    member<&TrainerCode::memory_format, to_networks>(
        "Memory layout of images: nchw, or nhwc (PyTorch channels_last), which tensor cores read directly.",
        {.together = "Networks of layers."}),
    member<&TrainerCode::fused_qkv, to_transformers, one_projection>(
        "Compute QKV in one GEMM, and both halves of a gated feed-forward layer in one.",
        if_fused.beside("Transformers.")),
    member<&TrainerCode::native_attention, to_transformers, no_native_kernels>(
        "Use the attention kernel of the GPU generation (FlashAttention-3, cuDNN) instead of FlashAttention-2.",
        if_fused.beside("attention: flash")),
    member<&TrainerCode::cache_cast_weights, everywhere, used_in_fp32>(
        "Cast fp32 weights in each pass; false: the optimizer writes a 16-bit copy.", if_unfused),
    member<&TrainerCode::fused_optimizer, everywhere, servers_update_weights>(
        "Fused optimizer: one kernel updates many tensors.", if_fused),
    member<&TrainerCode::fp32_states, to_short_weights, states_decided>(
        "Keep optimizer states in fp32 without fp32 master weights; false: states and gradients have the weights' "
        "format.",
        {.together = "master_weights: false"}),
    member<&TrainerCode::fp32_adapters, to_adapters, no_adapters>(
        "Keep LoRA adapters, their gradients and states in fp32.", {.together = "lora"}),
    member<&TrainerCode::clip_gradients, everywhere, servers_update_weights>(
        "Clip gradients by their global norm.", {.usual = "true; false with sgd and momentum"}),
    member<&TrainerCode::context_sharding, to_transformers, no_causal_pieces>(
        "Sharding of a causal sequence over context-parallel ranks.",
        {.usual = "zigzag; contiguous with unfused kernels", .together = "plan.context above 1."}),
    member<&TrainerCode::fp8_all_gather, to_transformers, no_fp8_gathers>(
        "All-gather operands of fp8 GEMMs in fp8 (tensor parallelism).", if_fused.beside("plan.sequence_parallel")),
    member<&TrainerCode::keep_gathered_inputs, to_transformers, no_gathers>(
        "Keep gathered inputs for the backward pass; false: gather them again.",
        if_unfused.beside("plan.sequence_parallel")),
    member<&TrainerCode::shifted_logits, to_transformers, no_shifted_copies>(
        "Copy the logits without the last token for the loss, and return fp32 logits.", {.together = "loss: eager"}),
    member<&TrainerCode::gather_logits, to_transformers, one_tensor_rank>(
        "All-gather logits for the loss; false: vocabulary-parallel cross-entropy.",
        {.usual = "false", .together = "plan.tensor above 1."}),
    member<&TrainerCode::inplace_cross_entropy, to_transformers, no_loss_copies>(
        "Compute softmax and gradient of cross-entropy in place, in one fp32 copy of the logits.",
        {.usual = "false", .together = "loss: eager"}),
    member<&TrainerCode::deterministic>(
        "Deterministic algorithms: eager code fills results first, sums have a fixed order.",
        {.together = "PyTorch: torch.use_deterministic_algorithms."}),
    member<&TrainWorkload::master_weights, to_short_weights, servers_hold, fp32_weights>(
        "Keep fp32 master weights of 2-byte weights.", {.usual = "true for 2-byte weights"}),
    member<&TrainWorkload::recompute_early_stop, everywhere, nothing_recomputed>(
        "Stop recomputation at the last missing activation; false: recompute the whole layer."),
    parsed_by<parse_loss, to_transformers>(
        {"loss", word<Loss::Kind> | text, "eager",
         "Cross-entropy kernels: eager (fp32 copies of logits), fused, chunked(8), fused_linear."}),
    {"samples", text, "", "Training length, such as 15 trillion tokens or 90 epochs of 1281167 images.",
     "Adds the time to train."},
    {"loader", mapping(loader), "no data stall", "Data loading from storage to the GPU."},
    share<&TrainWorkload::compute_spread, "spread", "mean">(
        "0", "Standard deviation of a rank's compute time over steps, relative to the mean."),
    {"data", mapping_of<data_keys, "data">, "all samples of the model's sequence length",
     "Distribution of sample lengths.", "Models with a sequence."},
    {"freeze", one_or_list(one_of<"vision", "projector", "language", "embedding", "blocks", "head">), "nothing",
     "Frozen parts of the model."},
    {"lora", mapping_of<lora_keys, "adapters">, "none", "LoRA adapters, trained instead of the weights."},
    {"quantisation", mapping_of<quantisation_keys, "quantised weights">, "none",
     "QLoRA: frozen weights of blocks in 4 or 8 bits.", "With lora."},
    {"checkpoint", mapping_of<checkpoint_keys, "checkpoint">, "none", "Checkpoint interval and storage."},
    {"recovery", mapping(recovery), "from scenarios/hardware/failures.yaml", "Failure detection and restart times.",
     "With cluster.failures."},
    member<&TrainWorkload::layer_overhead, everywhere>("Time lost per block of layers and micro-batch.", time),
    member<&TrainWorkload::layer_dispatch, everywhere>(
        "CPU time of the framework per block of layers, micro-batch and pass, besides kernel launches.", time),
    member<&TrainWorkload::module_dispatch, everywhere>(
        "CPU time of the framework per module with weights, micro-batch and pass: FSDP or ZeRO-3 hooks.", time),
    member<&TrainWorkload::p2p_dispatch_overhead, to_pipelines, one_stage, one_tensor_rank>(
        "CPU time per further tensor-parallel rank and block pass, for pipelines across nodes.",
        time.beside("With pipeline and tensor above 1.")),
    member<&TrainWorkload::message_overhead, to_pipelines, one_stage>(
        "CPU time per pipeline P2P message besides its transfer: shape exchange.",
        time.beside("With pipeline above 1.")),
    member<&TrainWorkload::kernel_slowdown, everywhere>(
        "Kernel time relative to tuned libraries (cuBLAS, cuDNN, FlashAttention).", above_zero),
    member<&TrainWorkload::memory_stretch, everywhere>(
        "Time of memory-bound kernels relative to a copy of the same bytes.", above_zero),
    member<&TrainWorkload::logged_memory, everywhere>(
        "Quantity that measured memory states: highest GPU peak, or memory reserved by rank 0's allocator."),
    member<&TrainWorkload::reserved_memory, everywhere>("GPU memory of the framework besides tensors and buffers.",
                                                        may_be_zero.of(quantity("GiB"))),
    member<&TrainWorkload::activation_stretch, everywhere>(
        "Activation memory of a block relative to what its backward pass reads.", above_zero),
    member<&TrainWorkload::fragmentation, to_transformers>(
        "Unusable free blocks of the caching allocator, relative to temporary tensors.", may_be_zero),
    member<&TrainWorkload::pending_stream_buffers, to_transformers, one_tensor_rank>(
        "Hidden states whose memory waits for collectives (record_stream), as the CPU runs ahead.",
        may_be_zero.beside("With tensor above 1.")),
};

constexpr Key collective_keys[] = {
    {"operation", word<CollectiveOperation>, "needed", "Operation."},
    Key{"size", quantity("MB"), "needed", "Message size per rank.", "", "message"}.with(Zero::allowed),
    {"ranks", whole, "all GPUs", "Number of ranks: the first GPUs of the cluster.", "", "workers"},
    {"groups", whole, "1", "Number of groups, each with its own collective."},
    {"layout", word<RankGrouping>, "blocked", "Groups of consecutive ranks (blocked), or strided."},
    member<&Sync::algorithm>("Algorithm of the collective.", {.usual = "plan.sync.algorithm"}),
    member<&Sync::levels>("Group sizes of hierarchical algorithms, innermost first.",
                          {.value = one_or_list(whole), .usual = "plan.sync.levels", .range = {1, 1'000'000}}),
    member<&Sync::servers>("Number of parameter servers.", {.usual = "plan.sync.servers", .range = {1, 100'000}}),
    member<&Sync::placement>("Placement of parameter servers.", {.usual = "plan.sync.placement"}),
};

constexpr Key workload_keys[] = {
    {"train", mapping(train), "", "Training step.", "Exactly one key of workload."},
    {"collective", mapping_of<collective_keys, "collective">, "", "One collective.", "Exactly one key of workload."},
    {"operator", mapping(operation), "", "One operator, on a GPU, CPU or disk.", "Exactly one key of workload."},
    {"tasks", list(mapping(task)), "", "Tasks with dependencies.", "Exactly one key of workload."},
};

constexpr Key loader_alone_keys[] = {
    Key{"batch", whole, "needed", "Samples per batch."}.in({1, 1'000'000'000}),
};

constexpr Key disk_request_keys[] = {
    member<&DiskPattern::order>("Sequential or random requests."),
    member<&DiskPattern::block>("Request size.", {.value = quantity("KiB"), .usual = "4 KiB"}),
    member<&DiskPattern::queue_depth>("Queue depth.", {.value = whole, .range = {1, 1'000'000}}),
    member<&DiskPattern::streams>("Sequential readers, each with its own read-ahead.",
                                  {.value = whole, .together = "order: sequential", .range = {1, 1'000'000}}),
    member<&DiskPattern::zone>("Disk zone: 0 outermost track, 1 innermost."),
    member<&DiskPattern::direct>("Direct I/O, which bypasses the page cache.", {.usual = "true"}),
    {"size", quantity("GB"), "block", "Total size of all requests."},
    {"storage", named(Catalogue::storage, storage), "the node's", "Storage."},
};

}  // namespace

constinit const Mapping workload = {"workload", workload_keys};
constinit const Mapping train = {"training", train_keys};
constinit const Mapping loader = {"loader", loader_keys};
constinit const Mapping loader_alone = {"batch of a loader", loader_alone_keys};
constinit const Mapping disk_requests = {"requests to storage", disk_request_keys};

}  // namespace foretrain::keys
