// GPUs, processors and what lies between a core and its memory.
#include "model/hardware/cpu.hpp"
#include "model/hardware/gpu.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

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
    needed<&Gpu::compute_capability>("CUDA's number of the generation, such as 9.0.", {.zero = Zero::refused}),
    needed<&Gpu::sms>("Streaming multiprocessors.", {.range = {1, 100'000}}),
    needed<&Gpu::boost_clock>("GHz", "The highest clock."),
    {"vector_rate", mapping(rates), "needed", "What CUDA cores compute at the boost clock; fp32 is needed."},
    {"tensor_rate", mapping(rates), "no tensor cores",
     "What tensor cores compute at the boost clock, without sparsity."},
    needed<&Gpu::memory>("GB", "Size of its memory."),
    needed<&Gpu::memory_bandwidth>("GB/s", "Of its memory, as the datasheet states it."),
    needed<&Gpu::memory_latency>("ns", "One dependent read from memory."),
    needed<&Gpu::l2_cache>("MB", "Size of the last cache."),
    needed<&Gpu::l2_bandwidth>("TB/s", "What the last cache carries."),
    needed<&Gpu::shared_memory_per_sm>("KiB", "Shared memory of a multiprocessor."),
    {"board_power", quantity("W"), "needed", "The power limit, by which clocks fall under load."},
    member<&Gpu::copy_engines>("Copies that run at the same time.", {.range = {1, 64}}),
    {"slot", named(Catalogue::link), "not known", "The widest PCIe link of its connector."},
    {"nvlink", named(Catalogue::link), "none", "The kind of its links to other GPUs."},
    member<&Gpu::nvlinks>("How many such links it has.", {.range = {0, 64}}),
    member<&Gpu::bridged>("Whether these links join two cards by a bridge, not the GPUs of a board."),
    member<&Gpu::peer_access>("Whether the vendor's driver lets such GPUs read each other's memory over PCIe."),
    {"processor", mapping(processor), "", "Of a processor that trains in a GPU's place: what one core reaches."},
    {"sources", by_name(mapping(source)), "needed in files", "Where the figures come from: default, or by key."},
};

/// A row for each number format.
constexpr auto by_format(const Value& value, std::string_view meaning) {
  std::array<Key, precision_count> rows;
  for (std::size_t p = 0; p < rows.size(); ++p) rows[p] = {names_of<Precision>[p], value, "none", meaning};
  return rows;
}
constexpr auto rates_keys = by_format(quantity("TFLOP/s"), "Operations a second in this format.");

constexpr Key processor_keys[] = {
    member<&Processor::share>("Share of the core's time that the rank gets.", {.zero = Zero::refused}),
    member<&Processor::spread>("By how much such cores differ in speed at a moment: standard deviation over mean."),
    needed<&Processor::dispatch>("us", "Into one operator of the framework and out of it."),
    needed<&Processor::product_rate>("GFLOP/s", "Matrix products in fp32, once their operands are packed."),
    member<&Processor::packing_rate>("GB/s", "no limit",
                                     "Operands and results of products, packed and unpacked beside that."),
    needed<&Processor::convolution_rate>("GFLOP/s", "Convolutions in fp32, forward."),
    needed<&Processor::convolution_gradient_rate>("GFLOP/s", "Gradients of convolutions in fp32."),
    needed<&Processor::reorder_rate>("GB/s", "Tensors brought to the layout that convolutions want, and back."),
    needed<&Processor::norm_rate>("GB/s", "Norms and other sums."),
    needed<&Processor::norm_gradient_rate>("GB/s", "Gradients of norms."),
    needed<&Processor::transcendental_rate>("GB/s", "Exponentials: softmax, GELU, sigmoid."),
    needed<&Processor::pooling_rate>("GB/s", "Pooling."),
    needed<&Processor::random_rate>("GB/s", "Dropout: a random number for each element."),
    needed<&Processor::conversion_rate>("GB/s", "From fp32 to two bytes, divided by the number of ranks."),
    needed<&Processor::fresh_rate>("GB/s", "Results whose memory the system is asked for every time."),
    needed<&Processor::transfer_rate>("GB/s", "What the core sends or receives through TCP."),
    member<&Processor::message>("us", "0 us", "Of the core's time, for each message that Gloo sends or receives."),
    member<&Processor::wake>("us", "0 us", "Until a core that waits for a message notices that it has come."),
    member<&Processor::after_wait>("us", "0 us",
                                   "By how much longer a core computes that has waited for others (cold caches)."),
    needed<&Processor::all_reduce>("us", "What one of Gloo's collectives takes beside its bytes and messages."),
    needed<&Processor::sum_rate>("GB/s", "What a collective receives, adds up and copies."),
    needed<&Processor::narrow_sum_rate>("GB/s", "The same of numbers of two bytes."),
    needed<&Processor::process>("MB", "Memory of the framework's process without tensors."),
};

constexpr Key cpu_keys[] = {
    {"name", text, "cpu", "What results call the processors."},
    member<&Cpu::sockets>("How many processors there are.", {.range = {1, 64}}),
    needed<&Cpu::cores>("Physical cores, of all sockets together.", {.range = {1, 100'000}}),
    needed<&Cpu::clock>("GHz", "The clock with all cores busy."),
    member<&Cpu::core_clock>("GHz", "clock", "The clock of one busy core.", {.name = "boost_clock"}),
    needed<&Cpu::memory>("GiB", "Host memory, of all sockets together."),
    needed<&Cpu::memory_bandwidth>("GB/s", "Of all sockets together, as the datasheet states it."),
    needed<&Cpu::fp32_rate>("TFLOP/s", "Operations in fp32, of all cores together."),
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
    member<&MemoryHierarchy::line>("B", "64 B", "Size of a cache line."),
    member<&MemoryHierarchy::fetch>("B", "line", "What a miss brings from memory at once."),
    needed<&MemoryHierarchy::line_fill_buffers>("Misses that a core has under way.", {.range = {1, 10'000}}),
    needed<&MemoryHierarchy::prefetched_lines>("Lines under way while a core reads on and on.", {.range = {1, 10'000}}),
    member<&MemoryHierarchy::prefetch_stride>("KiB", "0", "The longest stride that the prefetcher follows.",
                                              {.zero = Zero::allowed}),
    needed<&MemoryHierarchy::loads_per_cycle>("Loads that a core starts each cycle.", {.zero = Zero::refused}),
    {"vector", quantity("B"), "needed", "Width of a vector register."},
    {"memory", mapping(memory), "needed", "The memory behind the caches."},
    member<&MemoryHierarchy::virtualised>("Whether page walks go through a second table, as in virtual machines."),
    member<&MemoryHierarchy::small_page>("KiB", "4 KiB", "Size of a small page."),
    member<&MemoryHierarchy::huge_page>("MiB", "2 MiB", "Size of a huge page."),
    {"sources", by_name(mapping(source)), "assumptions", "Where the figures come from: default, or by key."},
};

constexpr Key caches_keys[] = {
    {"L1", mapping(cache), "needed", "The first cache, for data."},
    {"L2", mapping(cache), "none", "The second cache."},
    {"L3", mapping(cache), "none", "The third cache."},
};

constexpr Key cache_keys[] = {
    needed<&CacheLevel::size>("KiB", "Of one instance, all of its cores together."),
    needed<&CacheLevel::ways>("Associativity.", {.range = {1, 1024}}),
    member<&CacheLevel::shared_by>("Cores that share an instance.", {.range = {1, 100'000}}),
    {"latency", clocked_time, "needed", "From address to value of a dependent load."},
    {"read", clocked_bandwidth, "needed", "What one core reads."},
    {"write", clocked_bandwidth, "needed", "What one core writes, fetching lines and casting them out included."},
    {"shared_read", clocked_bandwidth, "as many times read", "What all cores of an instance read together."},
    member<&CacheLevel::hashed>("Whether a hash of the address chooses the set, so that strides do not matter."),
    member<&CacheLevel::victim>("Whether it holds what falls out of the level above, beside that."),
    member<&CacheLevel::residence>("ms", "unlimited",
                                   "How long it keeps a line where other virtual machines fill it, too."),
};

constexpr Key tlb_keys[] = {
    needed<&Tlb::entries>("First level, small pages.", {.range = {1, 1'000'000}}),
    needed<&Tlb::huge_entries>("First level, huge pages.", {.range = {1, 1'000'000}}),
    needed<&Tlb::second_entries>("Second level, of both sizes.", {.range = {1, 1'000'000}}),
    {"second_latency", clocked_time, "needed", "What a hit in the second level adds."},
    member<&Tlb::walkers>("Page walks at the same time.", {.range = {1, 64}}),
};

constexpr Key memory_keys[] = {
    {"latency", clocked_time, "needed", "One dependent read from memory."},
    needed<&MemoryHierarchy::memory_efficiency>("Share of the datasheet's bandwidth that reading reaches.",
                                                {.name = "efficiency", .zero = Zero::refused}),
    member<&MemoryHierarchy::memory_write_share>("Bandwidth of writing over that of reading.",
                                                 {.name = "write_share", .zero = Zero::refused}),
    {"socket_bandwidth", quantity("GB/s"), "", "What one socket's memory carries, for machines that are detected."},
    {"remote_latency", clocked_time, "no other socket", "One dependent read from another socket's memory."},
    {"remote_bandwidth", clocked_bandwidth, "no other socket", "What one core reads from another socket's memory."},
};

constexpr Key matrix_library_keys[] = {
    {"kind", text, "", "What the file describes: matrix_library."},
    needed<&MatrixLibrary::kernel_share>("Share of the peak that the innermost loop reaches.", {.zero = Zero::refused}),
    needed<&MatrixLibrary::tile_cycles>("Cycles that a tile of registers takes beside its products.",
                                        {.zero = Zero::refused}),
    needed<&MatrixLibrary::call>("us", "One call: checking arguments, taking buffers."),
    needed<&MatrixLibrary::join>("us", "Waking other threads and waiting for the last."),
    needed<&MatrixLibrary::small_product>("Multiply-adds up to which operands are not packed.",
                                          {.zero = Zero::refused}),
    needed<&MatrixLibrary::small_vector>("B", "The narrowest vectors whose kernels have such a way."),
    {"sources", by_name(mapping(source)), "needed", "Where the figures come from: default, or by key."},
};

constexpr Key architectures_file_keys[] = {
    {"kind", text, "", "What the file describes: architectures."},
    {"architectures", list(mapping(architecture)), "needed", "Compute capabilities, the lowest first."},
};

constexpr auto operations_keys = by_format(number, "Operations a clock in this format.");

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
