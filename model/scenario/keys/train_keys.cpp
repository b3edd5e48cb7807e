// Workloads: a training, its data, or a collective alone.
#include "model/collectives/operation.hpp"
#include "model/cost/storage.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/keys/conditions.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/data_loader.hpp"
#include "model/workload/model.hpp"
#include "model/workload/training.hpp"

namespace foretrain::keys {

namespace {

void parse_fusion(TrainerCode& code, std::string_view text) {
  if (text != "none") code.fusions.add(static_cast<Fusion>(parse_word(text, names_of<Fusion>)));
}

void parse_loss(TrainerCode& code, std::string_view text) {
  const auto [word, parts] = parse_word_with_number(text, 1);
  const bool chunked = word == name(Loss::Kind::chunked);
  if (chunked != parts.has_value()) {
    throw UnitError(chunked ? "chunked into how many parts?" : std::string(word) + " has no parts to count",
                    "eager, fused, chunked(8) or fused_linear");
  }
  code.loss = {static_cast<Loss::Kind>(parse_word(word, names_of<Loss::Kind>)), parts.value_or(1)};
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

constexpr Key workload_keys[] = {
    {"train", mapping(train), "", "A training: what one step takes.", "Exactly one key of workload."},
    {"collective", mapping(collective), "", "A collective operation alone.", "Exactly one key of workload."},
    {"operator", mapping(operation), "", "One operator alone, on a GPU, a processor or a disk.",
     "Exactly one key of workload."},
    {"tasks", list(mapping(task)), "", "A list of tasks with what each waits for.", "Exactly one key of workload."},
};

constexpr std::string_view auto_words[] = {"auto"};  // searched for before a scenario is read
constexpr Key train_keys[] = {
    {"model", named(Catalogue::model, model), "needed", "What is trained."},
    member<&TrainWorkload::global_batch>("Samples of a step, of all GPUs together.",
                                         {.usual = "micro_batch x plan.data",
                                          .together = "A multiple of micro_batch x plan.data.",
                                          .title = "samples of a step",
                                          .range = {1, 1'000'000'000}}),
    {"global_batch_per_gpu", number, "", "The same divided by the number of GPUs.", "Instead of global_batch."},
    member<&TrainWorkload::micro_batch>("Samples that a replica passes through the model at a time.",
                                        {.value = whole | words(auto_words), .range = {1, 1'000'000'000}}),
    {"precision", word_among<training_precisions> | mapping(precision), "bf16", "The format of products."},
    {"fp8", mapping(recipe), "", "How operands are cast to fp8.", "precision: fp8"},
    {"mxfp8", mapping(recipe), "", "Which layers are not cast to mxfp8.", "precision: mxfp8"},
    {"nvfp4", mapping(recipe), "", "Which layers are not cast to nvfp4.", "precision: nvfp4"},
    member<&TrainWorkload::optimizer>("The optimizer, which decides how much memory its states take."),
    member<&TrainWorkload::recompute>("What is computed again in the backward pass instead of being kept.",
                                      {.value = word<Recompute> | words(auto_words)}),
    member<&TrainWorkload::attention>("The attention kernels.", {.usual = "flash; standard on old GPUs and for t5"}),
    member<&TrainerCode::kernels, to_transformers_on_gpus>(
        "Whether small operators are fused; where no trainer is named: norms.",
        {.usual = "fused; plain on processors", .together = "Transformers."}),
    parsed_by<parse_fusion, to_plain_kernels, all_fused>(
        {"fusions",
         one_or_list(one_of<"none", "norm", "softmax", "activation", "bias_dropout_add", "rotary", "cross_entropy",
                            "optimizer">),
         "none",
         "What one kernel does where kernels are plain; norm: of images, batch norm with the activation and the "
         "residual sum behind it.",
         "kernels: plain, or networks of layers"}),
    member<&TrainerCode::memory_format, to_networks>(
        "How images lie in memory: each channel by itself, or a pixel's channels side by side (channels_last), as "
        "tensor cores read them.",
        {.together = "Networks of layers."}),
    member<&TrainerCode::joined_projections, to_transformers, one_projection>(
        "Whether one product makes queries, keys and values, and one both halves of a gated layer.",
        {.usual = "true; false with plain kernels", .together = "Transformers."}),
    member<&TrainerCode::native_attention, to_transformers, no_native_kernels>(
        "Whether flash attention runs as the GPU's generation has it, or as FlashAttention-2.",
        {.usual = "true; false with plain kernels", .together = "attention: flash"}),
    member<&TrainerCode::cast_weights, everywhere, used_in_fp32>(
        "Whether weights are cast from fp32 in each pass, or the update writes a short copy.",
        {.usual = "false; true with plain kernels"}),
    member<&TrainerCode::fused_optimizer, everywhere, servers_update_weights>(
        "Whether one kernel updates a layer's tensors, or several each of them.",
        {.usual = "true; false with plain kernels"}),
    member<&TrainerCode::fp32_states, to_short_weights, states_decided>(
        "Whether the optimizer's states are fp32 where weights are shorter and have no fp32 copy; else these and the "
        "gradients are as the weights.",
        {.together = "master_weights: false"}),
    member<&TrainerCode::fp32_adapters, to_adapters, no_adapters>(
        "Whether adapters, their gradients and states are fp32 beside shorter frozen weights.", {.together = "lora"}),
    member<&TrainerCode::clip_gradients, everywhere, servers_update_weights>(
        "Whether the norm of all gradients is limited before the update.",
        {.usual = "true; false with sgd and momentum"}),
    member<&TrainerCode::context_pieces, to_transformers, no_causal_pieces>(
        "How context ranks share a causal sequence.",
        {.usual = "balanced; in_order with plain kernels", .together = "plan.context above 1."}),
    member<&TrainerCode::narrow_gathers, to_transformers, no_fp8_gathers>(
        "Whether tensor ranks gather the operands of fp8 products as fp8.",
        {.usual = "true; false with plain kernels", .together = "plan.sequence_parallel"}),
    member<&TrainerCode::keep_gathered, to_transformers, no_gathers>(
        "Whether inputs that tensor ranks gathered are kept whole, or gathered again.",
        {.usual = "false; true with plain kernels", .together = "plan.sequence_parallel"}),
    member<&TrainerCode::shifted_logits, to_transformers, no_shifted_copies>(
        "Whether the loss reads a copy of the logits without the last token's, and widens them for its caller.",
        {.together = "loss: eager"}),
    member<&TrainerCode::gather_logits, to_transformers, one_tensor_rank>(
        "Whether tensor ranks gather whole rows of logits for the loss, or each keeps its columns.",
        {.usual = "false", .together = "plan.tensor above 1."}),
    member<&TrainerCode::loss_in_place, to_transformers, no_loss_copies>(
        "Whether cross-entropy in fp32 writes the softmax over the one copy it makes of the logits, and their gradient "
        "over that, as sharded losses do.",
        {.usual = "false", .together = "loss: eager"}),
    member<&TrainWorkload::master_weights, to_short_weights, servers_hold, fp32_weights>(
        "Whether an fp32 copy of 2-byte weights is kept beside the states.", {.usual = "true for 2-byte weights"}),
    member<&TrainWorkload::recompute_early_stop, everywhere, nothing_recomputed>(
        "Whether recomputation ends as soon as all that was not kept is back, instead of with the layer."),
    parsed_by<parse_loss, to_transformers>(
        {"loss", word<Loss::Kind> | text, "eager",
         "Whether cross-entropy makes fp32 copies of the logits, and whether they are all there at a "
         "time: eager, fused, chunked(8), fused_linear."}),
    {"samples", text, "", "The whole training, such as 15 trillion tokens or 90 epochs of 1281167 images.",
     "Results then say how long it takes."},
    {"loader", mapping(loader), "data are there when needed", "How samples come from storage to the GPU."},
    share<&TrainWorkload::compute_spread, "spread", "mean">(
        "0", "How much a worker's compute time varies from step to step, as a share of its mean."),
    {"data", mapping(data), "every sample as long as the model's sequence", "How samples differ in length.",
     "Models with a sequence."},
    {"freeze", one_or_list(one_of<"vision", "projector", "language", "embedding", "blocks", "head">), "nothing",
     "Parts of the model that are not trained."},
    {"lora", mapping(lora), "none", "Adapters that are trained in the place of weights."},
    {"quantisation", mapping(quantisation), "none", "QLoRA: frozen matrices of blocks that are stored in 4 or 8 bits.",
     "With lora."},
    {"checkpoint", mapping(checkpoint), "none", "How often, and to where, the training's state is written."},
    {"recovery", mapping(recovery), "as scenarios/hardware/failures.yaml says",
     "How failures are noticed and what a restart takes.", "With cluster.failures."},
    member<&TrainWorkload::layer_overhead, everywhere>(
        "What the trainer loses at each block of layers of each micro-batch.",
        {.value = quantity("us"), .zero = Zero::allowed}),
    member<&TrainWorkload::layer_dispatch, everywhere>(
        "What the trainer's code takes on the host for each block of layers, "
        "micro-batch and direction, beside kernels.",
        {.value = quantity("us"), .zero = Zero::allowed}),
    member<&TrainWorkload::module_dispatch, everywhere>(
        "What the framework's code takes on the host for each module that holds "
        "weights, micro-batch and direction, such "
        "as hooks that gather and release them.",
        {.value = quantity("us"), .zero = Zero::allowed}),
    member<&TrainWorkload::peer_dispatch, to_pipelines, one_stage, one_tensor_rank>(
        "What the host takes for each other tensor rank at a block's pass, in pipelines across machines.",
        {.value = quantity("us"), .together = "With pipeline and tensor above 1.", .zero = Zero::allowed}),
    member<&TrainWorkload::message_overhead, to_pipelines, one_stage>(
        "What a message between stages takes beside its transfer, there or back: hosts that agree on what comes.",
        {.value = quantity("us"), .together = "With pipeline above 1.", .zero = Zero::allowed}),
    member<&TrainWorkload::kernel_slowdown, everywhere>(
        "How many times as long kernels take as those of libraries that are tuned for the GPU.",
        {.zero = Zero::refused}),
    member<&TrainWorkload::memory_stretch, everywhere>(
        "How many times as long memory-bound kernels take as well-written ones that move the same.",
        {.zero = Zero::refused}),
    member<&TrainWorkload::logged_memory, everywhere>(
        "What measured memory is: the peak of the GPU with most, or what the first rank's framework has reserved."),
    member<&TrainWorkload::reserved_memory, everywhere>(
        "What the trainer holds in GPU memory beyond tensors and buffers.",
        {.value = quantity("GiB"), .zero = Zero::allowed}),
    member<&TrainWorkload::activation_stretch, everywhere>(
        "How many times as much the code keeps of a block for its backward pass as operators read again: copies.",
        {.zero = Zero::refused}),
    member<&TrainWorkload::fragmentation, to_transformers>(
        "Free blocks that the allocator keeps and no tensor fits into, as a share of the tensors that come and go.",
        {.zero = Zero::allowed}),
    member<&TrainWorkload::waiting_tensors, to_transformers, one_tensor_rank>(
        "Whole hidden states that tensor ranks have freed but not back, as the host is far ahead of its GPU: the "
        "allocator waits for the collectives that use them.",
        {.together = "With tensor above 1.", .zero = Zero::allowed}),
};

constexpr Key precision_keys[] = {
    {"preset", word_among<training_precisions>, "the format beside it", "The format of products."},
    {"fp8", mapping(recipe), "", "How operands are cast to fp8."},
    {"mxfp8", mapping(recipe), "", "Which layers are not cast to mxfp8."},
    {"nvfp4", mapping(recipe), "", "Which layers are not cast to nvfp4."},
};

constexpr Key recipe_keys[] = {
    member<&QuantisationRecipe::scaling>("Where the scales of fp8 operands come from.", {.together = "fp8"}),
    member<&QuantisationRecipe::first_bf16_layers>("Layers at the beginning that stay in bf16.",
                                                   {.range = {0, 100'000}}),
    member<&QuantisationRecipe::last_bf16_layers>("Layers at the end that stay in bf16.", {.range = {0, 100'000}}),
};

constexpr Value lengths_of_samples = number | mapping(distribution);
constexpr Key data_keys[] = {
    {"images", lengths_of_samples, "1", "Images of a sample.", "Vision–language models."},
    {"text", lengths_of_samples, "needed", "Tokens of text of a sample."},
    {"batching", word<Batching::Kind> | mapping(batching), "padding", "How samples of different lengths share a pass."},
};

constexpr Key distribution_keys[] = {
    needed<&LengthDistribution::kind>("How lengths are distributed.", {.name = "distribution"}),
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
    {"weights", list(number), "needed", "How often each of them occurs, in any unit."},
};
constexpr Variant distribution_variants[] = {
    {"fixed", &fixed}, {"uniform", &uniform}, {"lognormal", &lognormal}, {"histogram", &histogram}};

constexpr Key batching_keys[] = {
    needed<&Batching::kind>("How samples of different lengths share a pass."),
    member<&Batching::buckets>("Ranges of length, one of which a step's samples come from.",
                               {.together = "kind: bucketing", .range = {1, 1000}}),
    member<&Batching::length>("Length of the sequences into which samples are packed.",
                              {.usual = "the model's sequence", .together = "kind: packing", .range = {1, 10'000'000}}),
};

constexpr Key lora_keys[] = {
    {"rank", whole, "needed", "Rank of the adapters."},
    {"targets", one_or_list(one_of<"attention", "ffn", "qkv">), "qkv", "The matrices that have adapters."},
};

constexpr Key quantisation_keys[] = {
    member<&FrozenWeights::weights>("What they are stored as; each product makes 16-bit numbers of them again."),
    member<&FrozenWeights::doubly>("Whether the scales are stored in 8 bits, too.", {.name = "double"}),
};

constexpr Key collective_keys[] = {
    {"operation", word<CollectiveOperation>, "needed", "What is done."},
    {"size", quantity("MB"), "needed", "Bytes that every rank has.", "", "message"},
    {"ranks", whole, "all GPUs", "How many GPUs take part, the first ones of the cluster.", "", "workers"},
    {"groups", whole, "1", "Groups into which they are divided, each with an operation of its own."},
    {"layout", word<RankGrouping>, "blocked", "Whether groups are consecutive ranks or every so many."},
    member<&Sync::algorithm>("How it is carried out.", {.usual = "plan.sync.algorithm"}),
    member<&Sync::levels>("Group sizes from the inside out.",
                          {.value = one_or_list(whole), .usual = "plan.sync.levels", .range = {1, 1'000'000}}),
    member<&Sync::servers>("How many parameter servers there are.",
                           {.usual = "plan.sync.servers", .range = {1, 100'000}}),
    member<&Sync::placement>("Where parameter servers run.", {.usual = "plan.sync.placement"}),
};

constexpr Key checkpoint_keys[] = {
    {"every", whole | words(auto_words), "needed",
     "Steps from one checkpoint to the next; auto: the best, by failures."},
    member<&Checkpoint::mode>("Whether the training waits until it is written."),
    {"storage", named(Catalogue::storage, storage) | one_of<"node">, "object-store",
     "Where it is written; node: the machine's own disks, lost with it."},
};

constexpr Value a_time = quantity("ms");
constexpr Key loader_keys[] = {
    needed<&DataLoader::workers>("Processes that load for one training process; 0: it loads itself.",
                                 {.title = "loading processes", .range = {0, 10'000}}),
    member<&DataLoader::prefetch>("Batches that each worker may be ahead.", {.range = {1, 10'000}}),
    member<&DataLoader::cores>("Cores that the workers of one training process share.",
                               {.usual = "the node's, divided", .range = {1, 100'000}}),
    member<&DataLoader::per_sample>(
        "All that a worker does for a sample.",
        {.value = a_time, .usual = "its parts", .together = "Instead of read to collate.", .zero = Zero::allowed}),
    member<&DataLoader::per_batch>("Whether these times are those of a sample or of a batch.",
                                   {.name = "per", .value = one_of<"sample", "batch">}),
    member<&LoaderStages::read>("Waiting for storage.",
                                {.value = a_time, .together = "Instead of dataset.", .zero = Zero::allowed}),
    member<&LoaderStages::decode>("Decoding.", {.value = a_time, .zero = Zero::allowed}),
    member<&LoaderStages::preprocess>("Preprocessing.", {.value = a_time, .zero = Zero::allowed}),
    member<&LoaderStages::augment>("Augmentation.", {.value = a_time, .zero = Zero::allowed}),
    member<&LoaderStages::collate>("Putting samples together to a batch.", {.value = a_time, .zero = Zero::allowed}),
    {"dataset", mapping(dataset), "", "What is read from storage.", "Instead of read."},
    {"storage", named(Catalogue::storage, storage), "the node's", "Where the data set lies.", "With dataset."},
    member<&DataLoader::warm>("Whether what fits is in the page cache already.",
                              {.name = "epoch", .value = one_of<"cold", "warm">, .together = "With dataset."}),
    member<&DataLoader::keeps_decoded>("Whether decoded samples stay in memory.",
                                       {.name = "keep_decoded", .together = "With dataset and decoded."}),
    member<&DataLoader::decoded>("Size of a sample as it is copied to the GPU.",
                                 {.value = quantity("KB"), .usual = "as stored"}),
    member<&DataLoader::decodes_on_device>(
        "Who decodes.", {.name = "decode_on", .value = one_of<"cpu", "gpu">, .together = "gpu: with device_decode."}),
    member<&DataLoader::device_decode>("What decoding takes on the GPU.",
                                       {.value = a_time, .together = "decode_on: gpu", .zero = Zero::allowed}),
    member<&DataLoader::transfer>("The copy of a batch to the GPU.",
                                  {.value = a_time, .usual = "from decoded", .zero = Zero::allowed}),
    member<&DataLoader::pinned>("Whether copies leave page-locked memory."),
    member<&DataLoader::non_blocking>("Whether copies run beside the step before.", {.together = "With pinned."}),
    member<&DataLoader::persistent>("Whether workers live on from epoch to epoch."),
    share<&DataLoader::spread, "spread", "mean">("0", "Standard deviation of a sample's time over its mean."),
};

constexpr Key dataset_keys[] = {
    member<&Dataset::samples>("How many samples there are.",
                              {.value = whole, .usual = "more than fit in memory", .range = {1, 1'000'000'000'000}}),
    needed<&Dataset::sample>("KB", "Size of a sample as it is stored."),
    member<&Dataset::layout>("A file for each sample, or archives of many."),
    member<&Dataset::order>("In which order samples are read."),
    member<&Dataset::mapped>("Whether files are mapped into memory and read by page faults."),
};

constexpr Key loader_alone_keys[] = {
    {"batch", whole, "needed", "Samples of one batch."},
};

constexpr Key disk_request_keys[] = {
    member<&DiskPattern::order>("Whether requests follow each other on the disk."),
    member<&DiskPattern::block>("Size of one request.", {.value = quantity("KiB"), .usual = "4 KiB"}),
    member<&DiskPattern::queue_depth>("Requests that are under way all the time.",
                                      {.value = whole, .range = {1, 1'000'000}}),
    member<&DiskPattern::streams>("Readers of different places, each with its own read-ahead.",
                                  {.value = whole, .together = "order: sequential", .range = {1, 1'000'000}}),
    member<&DiskPattern::zone>("Where on a disk: 0 the outermost track, 1 the innermost."),
    member<&DiskPattern::direct>("Whether requests go past the page cache.", {.usual = "true"}),
    {"size", quantity("GB"), "block", "All requests together."},
    {"storage", named(Catalogue::storage, storage), "the node's", "What the requests go to."},
};

}  // namespace

constinit const Mapping workload = {"workload", workload_keys};
constinit const Mapping train = {"training", train_keys};
constinit const Mapping precision = {"format of products", precision_keys};
constinit const Mapping recipe = {"recipe of casting", recipe_keys};
constinit const Mapping data = {"data", data_keys};
constinit const Mapping distribution = {"distribution of lengths", distribution_keys, "distribution",
                                        distribution_variants};
constinit const Mapping fixed = {"one length", fixed_keys};
constinit const Mapping uniform = {"uniform lengths", uniform_keys};
constinit const Mapping lognormal = {"lognormal lengths", lognormal_keys};
constinit const Mapping histogram = {"histogram of lengths", histogram_keys};
constinit const Mapping batching = {"batching", batching_keys};
constinit const Mapping lora = {"adapters", lora_keys};
constinit const Mapping quantisation = {"quantised weights", quantisation_keys};
constinit const Mapping collective = {"collective", collective_keys};
constinit const Mapping checkpoint = {"checkpoint", checkpoint_keys};
constinit const Mapping loader = {"loader", loader_keys};
constinit const Mapping dataset = {"data set", dataset_keys};
constinit const Mapping loader_alone = {"batch of a loader", loader_alone_keys};
constinit const Mapping disk_requests = {"requests to storage", disk_request_keys};

}  // namespace foretrain::keys
