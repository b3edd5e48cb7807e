// Operators stated by their shapes: on a GPU, on a processor, or on a disk, alone and in lists of tasks.

#include "model/base/work.hpp"
#include "model/cost/launches.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/host_operators.hpp"
#include "model/workload/operator_alone.hpp"
#include "model/workload/stated_operators.hpp"
#include "model/workload/training.hpp"

namespace foretrain::keys {

namespace {

constexpr Key placed_keys[] = {
    {"on", one_of<"gpu", "cpu">, "gpu; cpu for what only processors have", "Device: gpu or cpu."},
    {"repeat", whole, "1", "Repetitions."},
};

constexpr Key alone_keys[] = {
    member<&OperatorConditions::clock>("Clock: sustained under the power limit, or boost for a burst of milliseconds."),
    member<&OperatorConditions::launch>("Kernel launch: CUDA graph, or one by one in a stream."),
};
constexpr Key operand_keys[] = {
    member<&OperatorConditions::cast>("Cast A from bf16 first, as linear layers do.",
                                      {.together = "precision: fp8, mxfp8 or nvfp4"}),
};

constexpr Value a_precision = word<Precision>;
constexpr Value a_pass = one_of<"forward", "backward">;

constexpr IntegerRange any_size{1, 1'000'000'000}, size_on_host{1, 1'000'000};
constexpr Key of_any_size{.range = any_size}, bytes{.value = quantity("B")};
constexpr Key matmul_keys[] = {
    needed<&Matmul::m>("Rows of A and of the result.", {.title = "rows of A", .range = any_size}),
    needed<&Matmul::n>("Columns of B and of the result.", {.title = "columns of B", .range = any_size}),
    needed<&Matmul::k>("Columns of A, rows of B.", {.title = "columns of A, rows of B", .range = any_size}),
    member<&Matmul::batch>("Batch of GEMMs.", of_any_size),
    member<&Matmul::accumulate>("Accumulate into the existing result."),
    member<&Matmul::accumulate_fp32>("Accumulate into an fp32 result."),
    member<&Matmul::transpose_a>("A is stored as [k, m] (transposed)."),
    member<&Matmul::transpose_b>("B is stored as [n, k] (transposed)."),
    member<&Matmul::padded>("Pad rows to 16 bytes."),
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr std::array processor_formats = {Precision::fp32, Precision::fp64};
constexpr Key cpu_matmul_keys[] = {
    needed<&CpuMatmul::m>("Rows of A and of the result.", {.title = "rows of A", .range = size_on_host}),
    needed<&CpuMatmul::n>("Columns of B and of the result.", {.title = "columns of B", .range = size_on_host}),
    needed<&CpuMatmul::k>("Columns of A, rows of B.", {.title = "columns of A, rows of B", .range = size_on_host}),
    member<&CpuMatmul::precision>("The format of the operands.", {.value = word_among<processor_formats>}),
    member<&CpuMatmul::threads>("Cores that share the GEMM.", {.usual = "all cores", .together = "on: cpu"}),
};

constexpr Value height_and_width = whole | list(whole);
constexpr Key convolution_keys[] = {
    needed<&Convolution::n>("Images.", {.name = "batch", .range = any_size}),
    needed<&Convolution::c>("Channels of the input.", {.name = "channels", .range = any_size}),
    needed<&Convolution::h>("Height of the input.", {.name = "height", .range = any_size}),
    needed<&Convolution::w>("Width of the input.", {.name = "width", .range = any_size}),
    needed<&Convolution::k>("Channels of the result.", {.name = "filters", .range = any_size}),
    Key{"kernel", height_and_width, "needed", "Side of a filter, or [height, width]."}.in({1, 10'000}),
    member<&Convolution::stride>("Pixels from one window to the next.", {.usual = "1", .range = {1, 10'000}}),
    Key{"pad", height_and_width, "0", "Pixels of zeros around the input, or [height, width]."}.in({0, 10'000}),
    member<&Convolution::groups>("Channel groups of a grouped convolution.", {.usual = "1", .range = any_size}),
    member<&Convolution::pass>("The convolution itself, or one of its gradients.", {.usual = "forward"}),
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr IntegerRange any_length{1, 100'000'000};
constexpr Key attention_keys[] = {
    needed<&Attention::batch>("Sequences.", of_any_size),
    needed<&Attention::heads>("Heads.", of_any_size),
    member<&Attention::kv_heads>("Heads of keys and values: a divisor of heads.", of_any_size.or_else("heads")),
    Key{"sequence", whole, "needed", "Queries of a sequence.", "Instead of lengths."}.in(any_size),
    Key{"key_sequence", whole, "sequence", "Keys of a sequence.", "Instead of lengths."}.in(any_size),
    Key{"lengths", one_or_list(whole) | mapping(lengths), "", "Lengths of sequences that are packed into one.",
        "Instead of sequence."}
        .in(any_length),
    needed<&Attention::head_dim>("Width of a head.", of_any_size),
    member<&Attention::causal>("Causal mask."),
    member<&Attention::window>("Keys that a query attends to.", {.usual = "all keys", .range = any_size}),
    member<&Attention::density>("Share of the blocks that are computed.", above_zero),
    member<&Attention::kind>("The kernels.", {.name = "attention"}),
    member<&Attention::native>("Native FlashAttention library kernels.", {.together = "attention: flash"}),
    member<&Attention::cached>("Apply rotary embedding and write a KV cache first, as inference engines do.",
                               {.name = "cache",
                                .usual = "true for causal forward passes by flash",
                                .together = "attention: flash or flash_3"}),
    member<&Attention::backward>("Backward pass."),
    member<&Attention::dropout>("Dropout.", {.together = "attention: standard"}),
    member<&Attention::fused_softmax>("Fused mask and softmax.", {.together = "attention: standard"}),
    member<&Attention::splits>(
        "Key splits that are computed separately.",
        {.usual = "as many as fill the GPU", .together = "attention: flash_1", .range = {1, 1000}}),
    {"precision", a_precision, "fp32", "The format of the operands."},
};

constexpr Key lengths_keys[] = {
    {"distribution", one_of<"lognormal">, "needed", "Distribution of lengths."},
    Key{"count", whole, "needed", "Number of sequences."}.in({1, 100'000}),
    Key{"mean", number, "needed", "The mean length."}.with(Zero::refused),
    {"spread", number, "needed", "Standard deviation, in tokens."},
    Key{"shortest", whole, "1", "No sequence is shorter."}.in(any_length),
    Key{"longest", whole, "unlimited", "No sequence is longer."}.in(any_length),
};

constexpr IntegerRange any_count{1, 1'000'000'000'000}, some_operands{0, 1000};
constexpr Key elementwise_keys[] = {
    needed<&ElementwiseShape::elements>("Elements of an operand.", {.range = any_count}),
    member<&ElementwiseShape::inputs>("Operands that are read.", {.range = some_operands}),
    member<&ElementwiseShape::outputs>("Results that are written.", {.range = some_operands}),
    member<&ElementwiseShape::flops_per_element>("Operations for each element."),
    member<&ElementwiseShape::precision>("The format of the operands."),
};

constexpr Key copy_keys[] = {
    {"size", quantity("MB"), "needed", "Bytes copied within GPU memory."},
};

/// Of a shape: whether it is the gradient, and the format of the operands.
template <typename Shape>
constexpr Key pass_of = member<&Shape::backward>("The operator itself, or its gradient.",
                                                 {.name = "pass", .value = a_pass});
template <typename Shape>
constexpr Key format_of = member<&Shape::precision>("The format of the operands.");

constexpr Key rows_keys[] = {
    needed<&RowsShape::rows>("Rows: tokens, say.", of_any_size),
    needed<&RowsShape::columns>("Elements of a row.", of_any_size),
    pass_of<RowsShape>,
    format_of<RowsShape>,
};

constexpr Key batch_norm_keys[] = {
    needed<&BatchNormShape::batch>("Images.", of_any_size),
    needed<&BatchNormShape::channels>("Channels.", of_any_size),
    needed<&BatchNormShape::height>("Height of a channel.", of_any_size),
    needed<&BatchNormShape::width>("Width of a channel.", of_any_size),
    pass_of<BatchNormShape>,
    format_of<BatchNormShape>,
};

constexpr Key pooling_keys[] = {
    needed<&PoolingShape::batch>("Images.", of_any_size),
    needed<&PoolingShape::channels>("Channels.", of_any_size),
    needed<&PoolingShape::height>("Height of the input.", of_any_size),
    needed<&PoolingShape::width>("Width of the input.", of_any_size),
    needed<&PoolingShape::kernel>("Side of a window.", {.range = {1, 10'000}}),
    member<&PoolingShape::stride>("Pixels from one window to the next.", {.usual = "kernel", .range = {1, 10'000}}),
    member<&PoolingShape::pad>("Pixels around the input.", {.range = {0, 10'000}}),
    member<&PoolingShape::maximum>("Pooling function.", {.name = "function", .value = one_of<"average", "max">}),
    pass_of<PoolingShape>,
    format_of<PoolingShape>,
};

constexpr Key embedding_keys[] = {
    needed<&EmbeddingShape::tokens>("Rows that are looked up.", of_any_size),
    needed<&EmbeddingShape::width>("Elements of a row.", of_any_size),
    needed<&EmbeddingShape::vocabulary>("Rows of the table.", of_any_size),
    pass_of<EmbeddingShape>,
    format_of<EmbeddingShape>,
};

constexpr std::array update_rules = {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::adamw};
constexpr IntegerRange some_tensors{1, 10'000'000};
constexpr Key optimizer_keys[] = {
    needed<&UpdateShape::parameters>("Parameters that are updated.", {.range = any_count}),
    member<&UpdateShape::algorithm>("The optimizer.", {.value = word_among<update_rules>}),
    member<&UpdateShape::tensors>("Tensors that the parameters are in.", {.range = some_tensors}),
    member<&UpdateShape::fused>("Fused optimizer: one kernel updates all tensors."),
    member<&UpdateShape::precision>("The format of a second copy of the weights; fp32: none."),
};

constexpr Key gradient_clipping_keys[] = {
    needed<&UpdateShape::parameters>("Parameters whose gradients are clipped.", {.range = any_count}),
    member<&UpdateShape::tensors>("Tensors that they are in.", {.range = some_tensors}),
    member<&UpdateShape::fused>("Fused kernels over all tensors."),
    member<&UpdateShape::precision>("The format of the gradients."),
};

constexpr Key memory_access_keys[] = {
    member<&MemoryAccess::pattern>("Access pattern of neighbouring threads."),
    needed<&MemoryAccess::working_set>("MB", "Memory that is read."),
    member<&MemoryAccess::element>("Size of one read.", bytes.or_else("4 B")),
    {"stride", quantity("B"), "needed of strided", "From one read to the next.", "pattern: strided"},
    Key{"reads", whole, "once through the working set", "Number of reads."}.in({1, 1'000'000'000'000'000}),
};

constexpr Key memory_walk_keys[] = {
    needed<&MemoryWalk::working_set>("MiB", "Memory that is touched, of all threads together."),
    member<&MemoryWalk::pattern>("Access pattern."),
    member<&MemoryWalk::access>("Operation."),
    member<&MemoryWalk::direction>("Direction of the walk.", {.together = "pattern: sequential or strided"}),
    member<&MemoryWalk::element>("Size of one access.", bytes.or_else("the widest vector; else 8 B")),
    member<&MemoryWalk::stride>("From one access to the next.",
                                {.value = quantity("B"), .usual = "64 B", .together = "pattern: strided"}),
    member<&MemoryWalk::offset>("Offset of the first access in a cache line.",
                                bytes.or_else("0 B").with(Zero::allowed)),
    member<&MemoryWalk::burst>("Contiguous bytes per access.",
                               {.value = quantity("B"), .usual = "64 B", .together = "pattern: random"}),
    member<&MemoryWalk::threads>("Cores that walk, each over its part."),
    member<&MemoryWalk::passes>("Passes over the working set.", above_zero),
    member<&MemoryWalk::huge_pages>("Small or huge pages.", {.name = "pages", .value = one_of<"small", "huge">}),
    member<&MemoryWalk::remote>("Memory of the own socket, or of another.",
                                {.name = "memory", .value = one_of<"local", "remote">}),
};

constexpr Key gpu_chase_keys[] = {
    {"working_set", quantity("MiB"), "needed", "GPU memory of the pointer chase.", "on: gpu"},
    {"pattern", word<WalkPattern>, "pointer_chase", "Nothing else on a GPU.", "on: gpu"},
};

// An entry is a task, or a loop over tasks.
constexpr Key task_keys[] = {
    {"id", text, "needed", "Unique name, for `after` of other tasks."},
    {"on", text, "needed", "gpu0, gpu0:stream1, gpu0:h2d, gpu0:d2h, gpu0:p2p, cpu, cpu0 or disk."},
    {"run", mapping(run) | text, "needed", "Operation of the task: { kind: matmul, …, repeat: 50 }, or synchronize."},
    {"after", one_or_list(text), "nothing", "Earlier tasks that it waits for."},
    {"enqueued_by", text, "none; for model calls cpu", "CPU thread that launches it: cpu or cpu0."},
};
constexpr Variant task_variants[] = {{"loop", &loop}};

constexpr Key loop_keys[] = {
    Key{"loop", whole, "", "Repetitions of the task list."}.in({1, 10'000'000}),
    {"tasks", list(mapping(task)), "needed with loop", "The tasks."},
};

constexpr Key copy_task_keys[] = {
    needed<&CopyWork::from>("gpu0, cpu, cpu0 or disk."),
    needed<&CopyWork::to>("Another of them."),
    needed<&CopyWork::size>("MB", "Bytes.", may_be_zero),
    member<&CopyWork::pinned>("Pinned CPU memory."),
};
constexpr Key sized_keys[] = {
    Key{"size", quantity("MB"), "needed", "Bytes."}.with(Zero::allowed),
};
constexpr Key pause_keys[] = {
    Key{"time", quantity("ms"), "needed", "Idle time."}.with(Zero::allowed),
};
constexpr Key item_keys[] = {
    {"from", text, "needed", "The GPU, or one of its streams: gpu0:stream1."},
};
constexpr Key print_keys[] = {
    {"from", text, "needed", "The GPU, or one of its streams: gpu0:stream1."},
    Key{"size", quantity("MB"), "needed", "Size of the result."}.with(Zero::allowed),
};

constexpr Key call_keys[] = {
    {"model", named(Catalogue::model, model), "needed", "The model."},
    Key{"batch", whole, "1", "Samples."}.in(any_size),
    {"precision", word_among<training_precisions>, "fp32", "Number format of GEMMs."},
    {"attention", word<AttentionKind>, "flash; standard on old GPUs", "Attention kernels."},
    {"execution", word<ExecutionMode>, "plan.execution",
     "How kernels are launched: one by one, compiled, or as CUDA graphs."},
};

constexpr std::string_view device_operator_words[] = {
    "matmul",    "convolution",   "attention",  "elementwise",       "reduction",
    "copy",      "batch_norm",    "layer_norm", "softmax",           "pooling",
    "embedding", "cross_entropy", "optimizer",  "gradient_clipping", "memory_access"};
constexpr Variant device_operators[] = {
    {"matmul", &mapping_with<matmul_keys, "GEMM">},
    {"convolution", &mapping_with<convolution_keys, "convolution">},
    {"attention", &mapping_with<attention_keys, "attention">},
    {"elementwise reduction", &mapping_with<elementwise_keys, "elementwise operator or reduction">},
    {"batch_norm", &mapping_with<batch_norm_keys, "batch norm">},
    {"layer_norm softmax cross_entropy", &mapping_with<rows_keys, "operator on rows">},
    {"pooling", &mapping_with<pooling_keys, "pooling">},
    {"embedding", &mapping_with<embedding_keys, "embedding">},
    {"optimizer", &mapping_with<optimizer_keys, "optimizer">},
    {"gradient_clipping", &mapping_with<gradient_clipping_keys, "gradient clipping">},
    {"memory_access", &mapping_with<memory_access_keys, "reads on a GPU">}};

/// One table behind another.
template <typename Row, std::size_t first_size, std::size_t second_size>
constexpr std::array<Row, first_size + second_size> joined(const Row (&first)[first_size],
                                                           const Row (&second)[second_size]) {
  std::array<Row, first_size + second_size> all{};
  std::ranges::copy(second, std::ranges::copy(first, all.begin()).out);
  return all;
}

constexpr std::string_view host_operator_words[] = {"memory_walk", "disk_read", "disk_write", "data_loader"};
constexpr auto operation_words = joined(device_operator_words, host_operator_words);
constexpr Key operation_keys[] = {
    {"kind", words(operation_words), "needed", "Kind of operator."},
};
constexpr std::string_view on_devices =
    "matmul convolution attention elementwise reduction copy batch_norm layer_norm softmax pooling embedding "
    "cross_entropy optimizer gradient_clipping memory_access memory_walk";
constexpr Variant further_operations[] = {{"matmul", &cpu_matmul},
                                          {"matmul", &operand},
                                          {"copy", &mapping_with<copy_keys, "copy within a GPU">},
                                          {"memory_walk", &memory_walk},
                                          {"memory_walk", &gpu_chase},
                                          {"disk_read disk_write", &disk_requests},
                                          {"data_loader", &loader_alone},
                                          {"data_loader", &loader},
                                          {on_devices, &placed},
                                          {on_devices.substr(0, on_devices.rfind(' ')), &alone}};
constexpr auto operation_variants = joined(device_operators, further_operations);

constexpr std::string_view work_of_tasks[] = {"page_lock", "sleep", "forward", "forward_backward", "item", "print"};
constexpr auto work_words = joined(device_operator_words, work_of_tasks);
constexpr Key run_keys[] = {
    {"kind", words(work_words), "needed", "The work: an operator, a copy between memories, a call of a model, ….",
     "Or the work's name as a key: { matmul: { … } }."},
    {"repeat", whole, "1", "Repetitions."},
};
constexpr Variant further_work[] = {{"copy", &mapping_with<copy_task_keys, "copy between memories">},
                                    {"page_lock", &mapping_with<sized_keys, "allocation">},
                                    {"sleep", &mapping_with<pause_keys, "pause">},
                                    {"forward forward_backward", &mapping_with<call_keys, "call of a model">},
                                    {"item", &mapping_with<item_keys, "fetched number">},
                                    {"print", &mapping_with<print_keys, "fetched result">}};
constexpr auto run_variants = joined(device_operators, further_work);

}  // namespace

constinit const Mapping operation = {"operator", operation_keys, "kind", operation_variants};
constinit const Mapping placed = {"operator on a device", placed_keys};
constinit const Mapping alone = {"operator by itself", alone_keys};
constinit const Mapping operand = {"operand of a GEMM", operand_keys};
constinit const Mapping cpu_matmul = {"GEMM on a CPU", cpu_matmul_keys};
constinit const Mapping lengths = {"lengths of packed sequences", lengths_keys};
constinit const Mapping memory_walk = {"walk over memory", memory_walk_keys};
constinit const Mapping gpu_chase = {"pointer chase on a GPU", gpu_chase_keys};
constinit const Mapping task = {"task", task_keys, "loop", task_variants};
constinit const Mapping loop = {"loop over tasks", loop_keys};
constinit const Mapping run = {"work of a task", run_keys, "kind", run_variants};

}  // namespace foretrain::keys
