// Lists of tasks.
#include "model/cost/launches.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/workload/training.hpp"

namespace foretrain::keys {

namespace {

// An entry is a task, or a loop over tasks.
constexpr Key task_keys[] = {
    {"id", text, "needed", "A name of its own, by which other tasks wait for it."},
    {"on", text, "needed", "gpu0, gpu0:stream1, gpu0:h2d, gpu0:d2h, gpu0:p2p, cpu, cpu0 or disk."},
    {"run", mapping(run) | text, "needed", "What it does: { matmul: { … }, repeat: 50 }, or synchronize."},
    {"after", one_or_list(text), "nothing", "Tasks further up for which it waits."},
    {"enqueued_by", text, "nobody; calls of models cpu", "The host thread that launches it: cpu or cpu0."},
};
constexpr Variant task_variants[] = {{"loop", &loop}};

constexpr Key loop_keys[] = {
    {"loop", whole, "", "How often the tasks run, in turn."},
    {"tasks", list(mapping(task)), "needed with loop", "The tasks."},
};

constexpr Key run_keys[] = {
    {"matmul", mapping(matmul), "", "A matrix product."},
    {"convolution", mapping(convolution), "", "A convolution."},
    {"attention", mapping(attention), "", "Attention."},
    {"elementwise", mapping(elementwise), "", "An elementwise operator."},
    {"reduction", mapping(elementwise), "", "A reduction."},
    {"copy", mapping(copy_task), "", "A copy between two memories."},
    {"batch_norm", mapping(batch_norm), "", "A batch norm."},
    {"layer_norm", mapping(rows), "", "A layer norm."},
    {"softmax", mapping(rows), "", "Softmax over each row."},
    {"pooling", mapping(pooling), "", "Pooling."},
    {"embedding", mapping(embedding), "", "Rows of a table looked up."},
    {"cross_entropy", mapping(rows), "", "Softmax and loss of each row."},
    {"optimizer", mapping(optimizer), "", "One update of parameters."},
    {"gradient_clipping", mapping(gradient_clipping), "", "The norm of all gradients, then their scaling."},
    {"memory_access", mapping(memory_access), "", "Reads that probe a GPU's memory."},
    {"page_lock", mapping(sized), "", "Page-locked host memory is allocated."},
    {"sleep", quantity("ms"), "", "Nothing for a while."},
    {"forward", mapping(call), "", "A model's forward pass for one batch."},
    {"forward_backward", mapping(call), "", "A model's forward and backward pass for one batch."},
    {"item", mapping(item), "", "One number from a GPU, waited for."},
    {"print", mapping(print), "", "A result from a GPU, waited for and formatted."},
    {"repeat", whole, "1", "How often the work is done."},
};

constexpr Key copy_task_keys[] = {
    {"from", text, "needed", "gpu0, cpu, cpu0 or disk."},
    {"to", text, "needed", "Another of them."},
    {"size", quantity("MB"), "needed", "Bytes."},
    {"pinned", flag, "true", "Whether host memory is page-locked."},
};
constexpr Key sized_keys[] = {
    {"size", quantity("MB"), "needed", "Bytes."},
};
constexpr Key item_keys[] = {
    {"from", text, "needed", "The GPU, or one of its streams: gpu0:stream1."},
};
constexpr Key print_keys[] = {
    {"from", text, "needed", "The GPU, or one of its streams: gpu0:stream1."},
    {"size", quantity("MB"), "needed", "Bytes of the result."},
};

constexpr Key call_keys[] = {
    {"model", named(Catalogue::model, model), "needed", "The model."},
    {"batch", whole, "1", "Samples."},
    {"precision", word_among<training_precisions>, "fp32", "The format of products."},
    {"attention", word<AttentionKind>, "flash; standard on old GPUs", "The attention kernels."},
    {"execution", word<ExecutionMode>, "plan.execution", "How kernels are launched."},
};

}  // namespace

constinit const Mapping task = {"task", task_keys, "loop", task_variants};
constinit const Mapping loop = {"loop over tasks", loop_keys};
constinit const Mapping run = {"work of a task", run_keys};
constinit const Mapping copy_task = {"copy between memories", copy_task_keys};
constinit const Mapping sized = {"allocation", sized_keys};
constinit const Mapping item = {"fetched number", item_keys};
constinit const Mapping print = {"fetched result", print_keys};
constinit const Mapping call = {"call of a model", call_keys};

}  // namespace foretrain::keys
