// GPUs, processors and what lies between a core and its memory.
#include "model/scenario/keys/keys.hpp"

namespace foretrain::keys {

namespace {

constexpr Value clocked_time = quantity("ns") | quantity("cycles");
constexpr Value clocked_bandwidth = quantity("GB/s") | quantity("B/cycle");

constexpr std::string_view architecture_words[] = {"kepler", "pascal",    "volta", "turing", "ampere", "ada",
                                                   "hopper", "blackwell", "cdna2", "cdna3",  "cdna4",  "host"};
constexpr Key gpu_keys[] = {
    {"kind", text, "gpu", "What a file describes: gpu."},
    {"name", text, "gpu", "What results call the GPU."},
    {"description", text, "", "A line about the GPU for people who list hardware."},
    {"architecture", words(architecture_words), "needed", "Its generation."},
    {"compute_capability", number, "needed", "CUDA's number of the generation, such as 9.0."},
    {"sms", whole, "needed", "Streaming multiprocessors."},
    {"boost_clock", quantity("GHz"), "needed", "The highest clock."},
    {"vector_rate", mapping(rates), "needed", "What CUDA cores compute at the boost clock; fp32 is needed."},
    {"tensor_rate", mapping(rates), "no tensor cores",
     "What tensor cores compute at the boost clock, without sparsity."},
    {"memory", quantity("GB"), "needed", "Size of its memory."},
    {"memory_bandwidth", quantity("GB/s"), "needed", "Of its memory, as the datasheet states it."},
    {"memory_latency", quantity("ns"), "needed", "One dependent read from memory."},
    {"l2_cache", quantity("MB"), "needed", "Size of the last cache."},
    {"l2_bandwidth", quantity("TB/s"), "needed", "What the last cache carries."},
    {"shared_memory_per_sm", quantity("KiB"), "needed", "Shared memory of a multiprocessor."},
    {"board_power", quantity("W"), "needed", "The power limit, by which clocks fall under load."},
    {"copy_engines", whole, "2", "Copies that run at the same time."},
    {"slot", named(Catalogue::link), "not known", "The widest PCIe link of its connector."},
    {"nvlink", named(Catalogue::link), "none", "The kind of its links to other GPUs."},
    {"nvlinks", whole, "0", "How many such links it has."},
    {"bridged", flag, "false", "Whether these links join two cards by a bridge, not the GPUs of a board."},
    {"peer_access", flag, "true", "Whether the vendor's driver lets such GPUs read each other's memory over PCIe."},
    {"processor", mapping(processor), "", "Of a processor that trains in a GPU's place: what one core reaches."},
    {"sources", by_name(mapping(source)), "needed in files", "Where the figures come from: default, or by key."},
};

constexpr Value a_rate = quantity("TFLOP/s");
constexpr Key rates_keys[] = {
    {"fp64", a_rate, "none", "Operations in fp64 a second."},
    {"fp32", a_rate, "none", "Operations in fp32 a second."},
    {"tf32", a_rate, "none", "Operations in tf32 a second."},
    {"fp16", a_rate, "none", "Operations in fp16 a second."},
    {"bf16", a_rate, "none", "Operations in bf16 a second."},
    {"fp8", a_rate, "none", "Operations in fp8 a second."},
    {"int8", a_rate, "none", "Operations in int8 a second."},
    {"int4", a_rate, "none", "Operations in int4 a second."},
    {"mxfp8", a_rate, "none", "Operations in mxfp8 a second."},
    {"nvfp4", a_rate, "none", "Operations in nvfp4 a second."},
};

constexpr Key processor_keys[] = {
    {"share", number, "1", "Share of the core's time that the rank gets."},
    {"spread", number, "0", "By how much such cores differ in speed at a moment: standard deviation over mean."},
    {"dispatch", quantity("us"), "needed", "Into one operator of the framework and out of it."},
    {"product_rate", quantity("GFLOP/s"), "needed", "Matrix products in fp32, once their operands are packed."},
    {"packing_rate", quantity("GB/s"), "no limit",
     "Operands and results of products, packed and unpacked beside that."},
    {"convolution_rate", quantity("GFLOP/s"), "needed", "Convolutions in fp32, forward."},
    {"convolution_gradient_rate", quantity("GFLOP/s"), "needed", "Gradients of convolutions in fp32."},
    {"reorder_rate", quantity("GB/s"), "needed", "Tensors brought to the layout that convolutions want, and back."},
    {"norm_rate", quantity("GB/s"), "needed", "Norms and other sums."},
    {"norm_gradient_rate", quantity("GB/s"), "needed", "Gradients of norms."},
    {"transcendental_rate", quantity("GB/s"), "needed", "Exponentials: softmax, GELU, sigmoid."},
    {"pooling_rate", quantity("GB/s"), "needed", "Pooling."},
    {"random_rate", quantity("GB/s"), "needed", "Dropout: a random number for each element."},
    {"conversion_rate", quantity("GB/s"), "needed", "From fp32 to two bytes, divided by the number of ranks."},
    {"fresh_rate", quantity("GB/s"), "needed", "Results whose memory the system is asked for every time."},
    {"transfer_rate", quantity("GB/s"), "needed", "What the core sends or receives through TCP."},
    {"message", quantity("us"), "0 us", "Of the core's time, for each message that Gloo sends or receives."},
    {"wake", quantity("us"), "0 us", "Until a core that waits for a message notices that it has come."},
    {"after_wait", quantity("us"), "0 us",
     "By how much longer a core computes that has waited for others (cold caches)."},
    {"all_reduce", quantity("us"), "needed", "What one of Gloo's collectives takes beside its bytes and messages."},
    {"sum_rate", quantity("GB/s"), "needed", "What a collective receives, adds up and copies."},
    {"narrow_sum_rate", quantity("GB/s"), "needed", "The same of numbers of two bytes."},
    {"process", quantity("MB"), "needed", "Memory of the framework's process without tensors."},
};

constexpr Key cpu_keys[] = {
    {"name", text, "cpu", "What results call the processors."},
    {"sockets", whole, "1", "How many processors there are."},
    {"cores", whole, "needed", "Physical cores, of all sockets together."},
    {"clock", quantity("GHz"), "needed", "The clock with all cores busy."},
    {"boost_clock", quantity("GHz"), "clock", "The clock of one busy core."},
    {"memory", quantity("GiB"), "needed", "Host memory, of all sockets together."},
    {"memory_bandwidth", quantity("GB/s"), "needed", "Of all sockets together, as the datasheet states it."},
    {"fp32_rate", quantity("TFLOP/s"), "needed", "Operations in fp32, of all cores together."},
    {"hierarchy", named(Catalogue::processor, hierarchy), "not described",
     "Caches and memory as one core sees them: the name of a microarchitecture, or all keys.",
     "Needed by operators with on: cpu."},
};

constexpr Key hierarchy_keys[] = {
    {"kind", text, "", "What a file describes: processor."},
    {"description", text, "", "A line about the microarchitecture."},
    {"models", one_or_list(text), "", "Vendor, family and model of /proc/cpuinfo by which it is recognised."},
    {"slot", named(Catalogue::link), "not known", "The widest PCIe link that it has."},
    {"caches", mapping(caches), "needed", "Its caches."},
    {"tlb", mapping(tlb), "needed", "Its translation of addresses."},
    {"line", quantity("B"), "64 B", "Size of a cache line."},
    {"fetch", quantity("B"), "line", "What a miss brings from memory at once."},
    {"line_fill_buffers", whole, "needed", "Misses that a core has under way."},
    {"prefetched_lines", whole, "needed", "Lines under way while a core reads on and on."},
    {"prefetch_stride", quantity("KiB"), "0", "The longest stride that the prefetcher follows."},
    {"loads_per_cycle", number, "needed", "Loads that a core starts each cycle."},
    {"vector", quantity("B"), "needed", "Width of a vector register."},
    {"memory", mapping(memory), "needed", "The memory behind the caches."},
    {"virtualised", flag, "false", "Whether page walks go through a second table, as in virtual machines."},
    {"small_page", quantity("KiB"), "4 KiB", "Size of a small page."},
    {"huge_page", quantity("MiB"), "2 MiB", "Size of a huge page."},
    {"sources", by_name(mapping(source)), "assumptions", "Where the figures come from: default, or by key."},
};

constexpr Key caches_keys[] = {
    {"L1", mapping(cache), "needed", "The first cache, for data."},
    {"L2", mapping(cache), "none", "The second cache."},
    {"L3", mapping(cache), "none", "The third cache."},
};

constexpr Key cache_keys[] = {
    {"size", quantity("KiB"), "needed", "Of one instance, all of its cores together."},
    {"ways", whole, "needed", "Associativity."},
    {"shared_by", whole, "1", "Cores that share an instance."},
    {"latency", clocked_time, "needed", "From address to value of a dependent load."},
    {"read", clocked_bandwidth, "needed", "What one core reads."},
    {"write", clocked_bandwidth, "needed", "What one core writes, fetching lines and casting them out included."},
    {"shared_read", clocked_bandwidth, "as many times read", "What all cores of an instance read together."},
    {"hashed", flag, "false", "Whether a hash of the address chooses the set, so that strides do not matter."},
    {"victim", flag, "false", "Whether it holds what falls out of the level above, beside that."},
    {"residence", quantity("ms"), "unlimited", "How long it keeps a line where other virtual machines fill it, too."},
};

constexpr Key tlb_keys[] = {
    {"entries", whole, "needed", "First level, small pages."},
    {"huge_entries", whole, "needed", "First level, huge pages."},
    {"second_entries", whole, "needed", "Second level, of both sizes."},
    {"second_latency", clocked_time, "needed", "What a hit in the second level adds."},
    {"walkers", whole, "1", "Page walks at the same time."},
};

constexpr Key memory_keys[] = {
    {"latency", clocked_time, "needed", "One dependent read from memory."},
    {"efficiency", number, "needed", "Share of the datasheet's bandwidth that reading reaches."},
    {"write_share", number, "0.5", "Bandwidth of writing over that of reading."},
    {"socket_bandwidth", quantity("GB/s"), "", "What one socket's memory carries, for machines that are detected."},
    {"remote_latency", clocked_time, "no other socket", "One dependent read from another socket's memory."},
    {"remote_bandwidth", clocked_bandwidth, "no other socket", "What one core reads from another socket's memory."},
};

constexpr Key matrix_library_keys[] = {
    {"kind", text, "", "What the file describes: matrix_library."},
    {"kernel_share", number, "needed", "Share of the peak that the innermost loop reaches."},
    {"tile_cycles", number, "needed", "Cycles that a tile of registers takes beside its products."},
    {"call", quantity("us"), "needed", "One call: checking arguments, taking buffers."},
    {"join", quantity("us"), "needed", "Waking other threads and waiting for the last."},
    {"small_product", number, "needed", "Multiply-adds up to which operands are not packed."},
    {"small_vector", quantity("B"), "needed", "The narrowest vectors whose kernels have such a way."},
    {"sources", by_name(mapping(source)), "needed", "Where the figures come from: default, or by key."},
};

constexpr Key architectures_file_keys[] = {
    {"kind", text, "", "What the file describes: architectures."},
    {"architectures", list(mapping(architecture)), "needed", "Compute capabilities, the lowest first."},
};

constexpr Value per_clock = number;
constexpr Key operations_keys[] = {
    {"fp64", per_clock, "none", "Operations in fp64 a clock."},
    {"fp32", per_clock, "none", "Operations in fp32 a clock."},
    {"tf32", per_clock, "none", "Operations in tf32 a clock."},
    {"fp16", per_clock, "none", "Operations in fp16 a clock."},
    {"bf16", per_clock, "none", "Operations in bf16 a clock."},
    {"fp8", per_clock, "none", "Operations in fp8 a clock."},
    {"int8", per_clock, "none", "Operations in int8 a clock."},
    {"int4", per_clock, "none", "Operations in int4 a clock."},
    {"mxfp8", per_clock, "none", "Operations in mxfp8 a clock."},
    {"nvfp4", per_clock, "none", "Operations in nvfp4 a clock."},
};

constexpr Key architecture_keys[] = {
    {"compute_capability", number, "needed", "The lowest number of which the row tells."},
    {"architecture", text, "needed", "The generation's word."},
    {"vector", mapping(operations), "none", "Operations of a multiprocessor's CUDA cores a clock."},
    {"tensor", mapping(operations), "none", "Operations of a multiprocessor's tensor cores a clock."},
    {"geforce", mapping(operations), "tensor", "The same of boards that are sold as GeForce."},
    {"memory_latency", quantity("ns"), "needed", "One dependent read from memory."},
    {"l2_bytes", number, "needed", "Bytes that the last cache delivers a clock to a multiprocessor."},
    {"source", mapping(source), "needed", "Where the figures come from."},
};

}  // namespace

constinit const Mapping gpu = {"GPU", gpu_keys};
constinit const Mapping rates = {"rates", rates_keys};
constinit const Mapping operations = {"operations a clock", operations_keys};
constinit const Mapping processor = {"processor that trains", processor_keys};
constinit const Mapping cpu = {"processors", cpu_keys};
constinit const Mapping hierarchy = {"memory hierarchy", hierarchy_keys};
constinit const Mapping caches = {"caches", caches_keys};
constinit const Mapping cache = {"cache", cache_keys};
constinit const Mapping tlb = {"translation of addresses", tlb_keys};
constinit const Mapping memory = {"memory of a processor", memory_keys};
constinit const Mapping matrix_library = {"library of matrix products", matrix_library_keys};
constinit const Mapping architectures_file = {"file of architectures", architectures_file_keys};
constinit const Mapping architecture = {"architecture", architecture_keys};

}  // namespace foretrain::keys
