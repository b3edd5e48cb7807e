// Lists of tasks.
#include "model/cost/launches.hpp"
#include "model/scenario/keys/device_operators.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/workload/training.hpp"

namespace foretrain::keys {

namespace {

// An entry is a task, or a loop over tasks.
constexpr Key task_keys[] = {
    {"id", text, "needed", "A name of its own, by which other tasks wait for it."},
    {"on", text, "needed", "gpu0, gpu0:stream1, gpu0:h2d, gpu0:d2h, gpu0:p2p, cpu, cpu0 or disk."},
    {"run", mapping(run) | text, "needed", "What it does: { kind: matmul, …, repeat: 50 }, or synchronize."},
    {"after", one_or_list(text), "nothing", "Tasks further up for which it waits."},
    {"enqueued_by", text, "nobody; calls of models cpu", "The host thread that launches it: cpu or cpu0."},
};
constexpr Variant task_variants[] = {{"loop", &loop}};

constexpr Key loop_keys[] = {
    {"loop", whole, "", "How often the tasks run, in turn."},
    {"tasks", list(mapping(task)), "needed with loop", "The tasks."},
};

constexpr std::string_view work_of_tasks[] = {"page_lock", "sleep", "forward", "forward_backward", "item", "print"};
constexpr auto work_words = joined(device_operator_words, work_of_tasks);
constexpr Key run_keys[] = {
    {"kind", words(work_words), "needed", "The work: an operator, a copy between memories, a call of a model, ….",
     "Or the work's name as a key: { matmul: { … } }."},
    {"repeat", whole, "1", "How often it is done."},
};
constexpr Variant further_work[] = {{"copy", &copy_task}, {"page_lock", &sized},
                                    {"sleep", &pause},    {"forward forward_backward", &call},
                                    {"item", &item},      {"print", &print}};
constexpr auto run_variants = joined(device_operators, further_work);

constexpr Key copy_task_keys[] = {
    {"from", text, "needed", "gpu0, cpu, cpu0 or disk."},
    {"to", text, "needed", "Another of them."},
    {"size", quantity("MB"), "needed", "Bytes."},
    {"pinned", flag, "true", "Whether host memory is page-locked."},
};
constexpr Key sized_keys[] = {
    {"size", quantity("MB"), "needed", "Bytes."},
};
constexpr Key pause_keys[] = {
    {"time", quantity("ms"), "needed", "How long nothing is done."},
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
constinit const Mapping run = {"work of a task", run_keys, "kind", run_variants};
constinit const Mapping copy_task = {"copy between memories", copy_task_keys};
constinit const Mapping sized = {"allocation", sized_keys};
constinit const Mapping pause = {"pause", pause_keys};
constinit const Mapping item = {"fetched number", item_keys};
constinit const Mapping print = {"fetched result", print_keys};
constinit const Mapping call = {"call of a model", call_keys};

}  // namespace foretrain::keys
