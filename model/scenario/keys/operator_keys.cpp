// Operators stated by their shapes: on a GPU, on a processor, or on a disk.
#include "model/scenario/keys/keys.hpp"
#include "model/workload/host_operators.hpp"
#include "model/workload/operator.hpp"

namespace foretrain::keys {

namespace {

constexpr std::string_view operation_words[] = {
    "matmul",        "convolution", "attention", "elementwise", "reduction",     "copy",      "batch_norm",
    "layer_norm",    "softmax",     "pooling",   "embedding",   "cross_entropy", "optimizer", "gradient_clipping",
    "memory_access", "memory_walk", "disk_read", "disk_write",  "data_loader"};
constexpr Key operation_keys[] = {
    {"kind", words(operation_words), "needed", "What the operator does."},
};
constexpr Variant operation_variants[] = {
    {"matmul convolution attention elementwise reduction copy batch_norm layer_norm softmax pooling embedding "
     "cross_entropy optimizer gradient_clipping memory_access memory_walk",
     &placed},
    {"matmul", &matmul},
    {"matmul", &cpu_matmul},
    {"convolution", &convolution},
    {"attention", &attention},
    {"elementwise reduction", &elementwise},
    {"copy", &copy},
    {"batch_norm", &batch_norm},
    {"layer_norm softmax cross_entropy", &rows},
    {"pooling", &pooling},
    {"embedding", &embedding},
    {"optimizer", &optimizer},
    {"gradient_clipping", &gradient_clipping},
    {"memory_access", &memory_access},
    {"memory_walk", &memory_walk},
    {"memory_walk", &gpu_chase},
    {"disk_read disk_write", &disk_requests},
    {"data_loader", &loader_alone},
    {"data_loader", &loader}};

constexpr std::string_view place_words[] = {"gpu", "cpu"};
constexpr Key placed_keys[] = {
    {"on", words(place_words), "gpu; cpu for what only processors have", "Where the operator runs."},
    {"repeat", whole, "1", "How often it runs."},
};

constexpr Value a_precision = word<Precision>;
constexpr std::string_view pass_words[] = {"forward", "backward"};
constexpr Value a_pass = words(pass_words);

constexpr Key matmul_keys[] = {
    {"m", whole, "needed", "Rows of A and of the result.", "", "rows of A"},
    {"n", whole, "needed", "Columns of B and of the result.", "", "columns of B"},
    {"k", whole, "needed", "Columns of A, rows of B.", "", "columns of A, rows of B"},
    {"batch", whole, "1", "Products side by side."},
    {"accumulate", flag, "false", "Whether the result is added to what was there."},
    {"accumulate_fp32", flag, "false", "The same, to a result in fp32."},
    {"transpose_a", flag, "false", "Whether A is stored as [k, m]."},
    {"transpose_b", flag, "false", "Whether B is stored as [n, k]."},
    {"padded", flag, "false", "Whether rows are padded to 16 bytes."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr std::array processor_formats = {Precision::fp32, Precision::fp64};
constexpr Key cpu_matmul_keys[] = {
    {"m", whole, "needed", "Rows of A and of the result.", "", "rows of A"},
    {"n", whole, "needed", "Columns of B and of the result.", "", "columns of B"},
    {"k", whole, "needed", "Columns of A, rows of B.", "", "columns of A, rows of B"},
    {"precision", word_among<processor_formats>, "fp32", "The format of the operands."},
    {"threads", whole, "all cores", "Cores that share the product.", "on: cpu"},
};

constexpr Value height_and_width = whole | list(whole);
constexpr Key convolution_keys[] = {
    {"batch", whole, "needed", "Images."},
    {"channels", whole, "needed", "Channels of the input."},
    {"height", whole, "needed", "Height of the input."},
    {"width", whole, "needed", "Width of the input."},
    {"filters", whole, "needed", "Channels of the result."},
    {"kernel", height_and_width, "needed", "Side of a filter, or [height, width]."},
    {"stride", whole, "1", "Pixels from one window to the next."},
    {"pad", height_and_width, "0", "Pixels of zeros around the input, or [height, width]."},
    {"groups", whole, "1", "Groups of channels that are convolved apart."},
    {"pass", word<ConvolutionPass>, "forward", "The convolution itself, or one of its gradients."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr Key attention_keys[] = {
    {"batch", whole, "needed", "Sequences."},
    {"heads", whole, "needed", "Heads."},
    {"kv_heads", whole, "heads", "Heads of keys and values: a divisor of heads."},
    {"sequence", whole, "needed", "Queries of a sequence.", "Instead of lengths."},
    {"key_sequence", whole, "sequence", "Keys of a sequence.", "Instead of lengths."},
    {"lengths", one_or_list(whole) | mapping(lengths), "", "Lengths of sequences that are packed into one.",
     "Instead of sequence."},
    {"head_dim", whole, "needed", "Width of a head."},
    {"causal", flag, "false", "Whether a query attends to earlier keys alone."},
    {"window", whole, "all keys", "Keys that a query attends to."},
    {"density", number, "1", "Share of the blocks that are computed."},
    {"attention", word<AttentionKind>, "flash", "The kernels."},
    {"native", flag, "true", "Whether flash attention is that of the library itself.", "attention: flash"},
    {"backward", flag, "false", "Whether gradients are computed."},
    {"dropout", flag, "false", "Whether dropout runs.", "attention: standard"},
    {"fused_softmax", flag, "false", "Whether mask and softmax are one kernel.", "attention: standard"},
    {"splits", whole, "as many as fill the GPU", "Parts of the keys that are computed apart.", "attention: flash_1"},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

enum class LengthsDistribution { uniform, normal, lognormal, exponential };  // of scenario/lengths_reader.cpp
constexpr Key lengths_keys[] = {
    {"distribution", word<LengthsDistribution>, "needed", "How lengths are distributed."},
    {"count", whole, "needed", "How many sequences there are."},
    {"mean", number, "needed, but of uniform", "The mean length.", "Not of uniform."},
    {"spread", number, "needed of normal and lognormal", "Standard deviation, in tokens."},
    {"shortest", whole, "1", "No sequence is shorter."},
    {"longest", whole, "unlimited; needed of uniform", "No sequence is longer."},
};

constexpr Key elementwise_keys[] = {
    {"elements", whole, "needed", "Elements of an operand."},
    {"inputs", whole, "1", "Operands that are read."},
    {"outputs", whole, "1", "Results that are written."},
    {"flops_per_element", number, "1", "Operations for each element."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr Key copy_keys[] = {
    {"size", quantity("MB"), "needed", "Bytes that are read and written within GPU memory."},
};

constexpr Key rows_keys[] = {
    {"rows", whole, "needed", "Rows: tokens, say."},
    {"columns", whole, "needed", "Elements of a row."},
    {"pass", a_pass, "forward", "The operator itself, or its gradient."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr Key batch_norm_keys[] = {
    {"batch", whole, "needed", "Images."},
    {"channels", whole, "needed", "Channels."},
    {"height", whole, "needed", "Height of a channel."},
    {"width", whole, "needed", "Width of a channel."},
    {"pass", a_pass, "forward", "The operator itself, or its gradient."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr std::string_view pooling_words[] = {"average", "max"};
constexpr Key pooling_keys[] = {
    {"batch", whole, "needed", "Images."},
    {"channels", whole, "needed", "Channels."},
    {"height", whole, "needed", "Height of the input."},
    {"width", whole, "needed", "Width of the input."},
    {"kernel", whole, "needed", "Side of a window."},
    {"stride", whole, "kernel", "Pixels from one window to the next."},
    {"pad", whole, "0", "Pixels around the input."},
    {"function", words(pooling_words), "max", "What is taken of a window."},
    {"pass", a_pass, "forward", "The operator itself, or its gradient."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr Key embedding_keys[] = {
    {"tokens", whole, "needed", "Rows that are looked up."},
    {"width", whole, "needed", "Elements of a row."},
    {"vocabulary", whole, "needed", "Rows of the table."},
    {"pass", a_pass, "forward", "The operator itself, or its gradient."},
    {"precision", a_precision, "fp32", "The format of the operands."},
};

enum class UpdateRule { sgd, momentum, adam, adamw };  // of scenario/update_streaming_operators.cpp
constexpr Key optimizer_keys[] = {
    {"parameters", whole, "needed", "Parameters that are updated."},
    {"algorithm", word<UpdateRule>, "adamw", "The optimizer."},
    {"tensors", whole, "1", "Tensors that the parameters are in."},
    {"fused", flag, "true", "Whether one kernel updates all tensors."},
    {"precision", a_precision, "fp32", "The format of a second copy of the weights; fp32: none."},
};

constexpr Key gradient_clipping_keys[] = {
    {"parameters", whole, "needed", "Parameters whose gradients are clipped."},
    {"tensors", whole, "1", "Tensors that they are in."},
    {"fused", flag, "true", "Whether kernels go over all tensors."},
    {"precision", a_precision, "fp32", "The format of the gradients."},
};

constexpr Key memory_access_keys[] = {
    {"pattern", word<AccessPattern>, "sequential", "How neighbouring threads' reads lie."},
    {"working_set", quantity("MB"), "needed", "Memory that is read."},
    {"element", quantity("B"), "4 B", "Size of one read."},
    {"stride", quantity("B"), "needed of strided", "From one read to the next.", "pattern: strided"},
    {"reads", whole, "once through the working set", "How many reads there are."},
};

constexpr std::string_view page_words[] = {"small", "huge"};
constexpr std::string_view socket_words[] = {"local", "remote"};
constexpr Key memory_walk_keys[] = {
    {"working_set", quantity("MiB"), "needed", "Memory that is touched, of all threads together."},
    {"pattern", word<WalkPattern>, "sequential", "In which order."},
    {"access", word<WalkAccess>, "read", "What is done."},
    {"direction", word<WalkDirection>, "forward", "From which end.", "pattern: sequential or strided"},
    {"element", quantity("B"), "the widest vector; else 8 B", "Size of one access."},
    {"stride", quantity("B"), "64 B", "From one access to the next.", "pattern: strided"},
    {"offset", quantity("B"), "0 B", "Of the first access from the beginning of a line."},
    {"burst", quantity("B"), "64 B", "How much in a row at each place.", "pattern: random"},
    {"threads", whole, "1", "Cores that walk, each over its part."},
    {"passes", number, "1", "How often over the working set."},
    {"pages", words(page_words), "small", "Small or huge pages."},
    {"memory", words(socket_words), "local", "Memory of the own socket, or of another."},
};

constexpr Key gpu_chase_keys[] = {
    {"working_set", quantity("MiB"), "needed", "Memory of the GPU in which pointers are followed.", "on: gpu"},
    {"pattern", word<WalkPattern>, "pointer_chase", "Nothing else on a GPU.", "on: gpu"},
};

}  // namespace

constinit const Mapping operation = {"operator", operation_keys, "kind", operation_variants};
constinit const Mapping placed = {"operator on a device", placed_keys};
constinit const Mapping matmul = {"matrix product", matmul_keys};
constinit const Mapping cpu_matmul = {"matrix product on a processor", cpu_matmul_keys};
constinit const Mapping convolution = {"convolution", convolution_keys};
constinit const Mapping attention = {"attention", attention_keys};
constinit const Mapping lengths = {"lengths of packed sequences", lengths_keys};
constinit const Mapping elementwise = {"elementwise operator or reduction", elementwise_keys};
constinit const Mapping copy = {"copy within a GPU", copy_keys};
constinit const Mapping rows = {"operator on rows", rows_keys};
constinit const Mapping batch_norm = {"batch norm", batch_norm_keys};
constinit const Mapping pooling = {"pooling", pooling_keys};
constinit const Mapping embedding = {"embedding", embedding_keys};
constinit const Mapping optimizer = {"optimizer", optimizer_keys};
constinit const Mapping gradient_clipping = {"gradient clipping", gradient_clipping_keys};
constinit const Mapping memory_access = {"reads on a GPU", memory_access_keys};
constinit const Mapping memory_walk = {"walk over memory", memory_walk_keys};
constinit const Mapping gpu_chase = {"pointer chase on a GPU", gpu_chase_keys};

}  // namespace foretrain::keys
