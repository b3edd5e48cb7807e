// GPUs, processors and what lies between a core and its memory.
#include "model/hardware/cpu.hpp"
#include "model/hardware/gpu.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"

namespace foretrain::keys {

namespace {

constexpr Value clocked_time = quantity("ns") | quantity("cycles");
constexpr Value clocked_bandwidth = quantity("GB/s") | quantity("B/cycle");

/// A row for each number format.
constexpr auto by_format(const Value& value, std::string_view meaning) {
  std::array<Key, precision_count> rows;
  for (std::size_t p = 0; p < rows.size(); ++p) rows[p] = {names_of<Precision>[p], value, "none", meaning};
  return rows;
}
constexpr auto rates_keys = by_format(quantity("TFLOP/s"), "Peak rate in this format.");

constexpr Key processor_keys[] = {
    member<&Processor::share>("Share of the core's time that the rank gets.", above_zero),
    member<&Processor::spread>("Standard deviation of core speeds, relative to the mean."),
    needed<&Processor::dispatch>("us", "Framework overhead per operator."),
    needed<&Processor::product_rate>("GFLOP/s", "fp32 GEMM rate, operands packed."),
    member<&Processor::packing_rate>("GB/s", "no limit", "Packing rate of GEMM operands and results."),
    needed<&Processor::convolution_rate>("GFLOP/s", "Convolutions in fp32, forward."),
    needed<&Processor::convolution_gradient_rate>("GFLOP/s", "Gradients of convolutions in fp32."),
    needed<&Processor::reorder_rate>("GB/s", "Tensors brought to the layout that convolutions want, and back."),
    needed<&Processor::norm_rate>("GB/s", "Norms and other sums."),
    needed<&Processor::norm_gradient_rate>("GB/s", "Gradients of norms."),
    needed<&Processor::transcendental_rate>("GB/s", "Exponentials: softmax, GELU, sigmoid."),
    needed<&Processor::pooling_rate>("GB/s", "Pooling."),
    needed<&Processor::random_rate>("GB/s", "Dropout: a random number for each element."),
    needed<&Processor::conversion_rate>("GB/s", "From fp32 to two bytes, divided by the number of ranks."),
    needed<&Processor::fresh_rate>("GB/s", "Write rate of newly allocated result memory."),
    needed<&Processor::transfer_rate>("GB/s", "TCP bandwidth per core."),
    member<&Processor::message>("us", "0 us", "CPU time per Gloo message."),
    member<&Processor::wake>("us", "0 us", "Wake-up time of a core that waits for a message."),
    member<&Processor::after_wait>("us", "0 us", "Extra compute time after waiting (cold caches)."),
    needed<&Processor::all_reduce>("us", "Fixed time per Gloo collective."),
    needed<&Processor::sum_rate>("GB/s", "Reduction rate of collectives."),
    needed<&Processor::narrow_sum_rate>("GB/s", "Reduction rate of 2-byte formats."),
    needed<&Processor::process>("MB", "Memory of the framework's process without tensors."),
};

constexpr std::string_view architecture_words[] = {"kepler", "pascal",    "volta", "turing", "ampere", "ada",
                                                   "hopper", "blackwell", "cdna2", "cdna3",  "cdna4",  "host"};
constexpr Key gpu_keys[] = {
    {"kind", text, "gpu", "Kind of file: gpu."},
    member<&Gpu::name>("Name of the GPU in results.", {.usual = "gpu"}),
    {"description", text, "", "One-line description for `foretrain hardware list`."},
    needed<&Gpu::architecture>("Its generation.", {.value = words(architecture_words)}),
    needed<&Gpu::compute_capability>("CUDA's number of the generation, such as 9.0.", above_zero),
    needed<&Gpu::sms>("Streaming multiprocessors.", {.range = {1, 100'000}}),
    needed<&Gpu::boost_clock>("GHz", "The highest clock."),
    {"vector_rate", mapping_of<rates_keys, "rates">, "needed",
     "Peak rate of CUDA cores at the boost clock; fp32 is required."},
    {"tensor_rate", mapping_of<rates_keys, "rates">, "no tensor cores",
     "Peak rate of tensor cores at the boost clock, without sparsity."},
    needed<&Gpu::memory>("GB", "Size of its memory."),
    needed<&Gpu::memory_bandwidth>("GB/s", "Memory bandwidth by the datasheet."),
    needed<&Gpu::memory_latency>("ns", "One dependent read from memory."),
    needed<&Gpu::l2_cache>("MB", "Size of the last cache."),
    needed<&Gpu::l2_bandwidth>("TB/s", "Bandwidth of the L2 cache."),
    needed<&Gpu::shared_memory_per_sm>("KiB", "Shared memory of a multiprocessor."),
    {"board_power", quantity("W"), "needed", "Power limit, which lowers clocks under load."},
    member<&Gpu::copy_engines>("Concurrent copies.", {.range = {1, 64}}),
    member<&Gpu::slot>("Widest PCIe link of its connector.", {.value = named(Catalogue::link), .usual = "not known"}),
    member<&Gpu::nvlink>("Link type to other GPUs.", {.value = named(Catalogue::link), .usual = "none"}),
    member<&Gpu::nvlinks>("Number of NVLinks.", {.range = {0, 64}}),
    member<&Gpu::bridged>("NVLink bridge between two PCIe cards."),
    member<&Gpu::peer_access>("Driver allows peer access over PCIe."),
    {"processor", mapping_of<processor_keys, "processor that trains">, "",
     "CPU that trains instead of a GPU: performance per core."},
    {"sources", by_name(mapping(source)), "needed in files", "Sources of the values: default, or by key."},
};

constexpr Key cpu_keys[] = {
    member<&Cpu::name>("Name of the CPU in results.", {.usual = "cpu"}),
    member<&Cpu::sockets>("Number of sockets.", {.range = {1, 64}}),
    needed<&Cpu::cores>("Physical cores, of all sockets together.", {.range = {1, 100'000}}),
    needed<&Cpu::clock>("GHz", "The clock with all cores busy."),
    member<&Cpu::core_clock>("GHz", "clock", "The clock of one busy core.", {.name = "boost_clock"}),
    needed<&Cpu::memory>("GiB", "Host memory, of all sockets together."),
    needed<&Cpu::memory_bandwidth>("GB/s", "Memory bandwidth of all sockets by the datasheet."),
    needed<&Cpu::fp32_rate>("TFLOP/s", "Operations in fp32, of all cores together."),
    {"hierarchy", named(Catalogue::processor, hierarchy), "not described",
     "Caches and memory as one core sees them: the name of a microarchitecture, or all keys.",
     "Needed by operators with on: cpu."},
};

constexpr Key cache_keys[] = {
    needed<&CacheLevel::size>("KiB", "Size per instance."),
    needed<&CacheLevel::ways>("Associativity.", {.range = {1, 1024}}),
    member<&CacheLevel::shared_by>("Cores that share an instance.", {.range = {1, 100'000}}),
    {"latency", clocked_time, "needed", "From address to value of a dependent load."},
    {"read", clocked_bandwidth, "needed", "Read bandwidth per core."},
    {"write", clocked_bandwidth, "needed", "Write bandwidth per core, with write-allocate and write-back."},
    {"shared_read", clocked_bandwidth, "as many times read", "Read bandwidth of an instance, all cores."},
    member<&CacheLevel::hashed>("Sets are chosen by an address hash."),
    member<&CacheLevel::victim>("Victim cache: holds lines evicted from the level above."),
    member<&CacheLevel::residence>("ms", "unlimited",
                                   "Residence time of a line if other virtual machines use the cache."),
};

constexpr Key caches_keys[] = {
    {"L1", mapping_of<cache_keys, "cache">, "needed", "The first cache, for data."},
    {"L2", mapping_of<cache_keys, "cache">, "none", "The second cache."},
    {"L3", mapping_of<cache_keys, "cache">, "none", "The third cache."},
};

constexpr Key tlb_keys[] = {
    needed<&Tlb::entries>("First level, small pages.", {.range = {1, 1'000'000}}),
    needed<&Tlb::huge_entries>("First level, huge pages.", {.range = {1, 1'000'000}}),
    needed<&Tlb::second_entries>("Second level, of both sizes.", {.range = {1, 1'000'000}}),
    {"second_latency", clocked_time, "needed", "Latency of a second-level hit."},
    member<&Tlb::walkers>("Page walks at the same time.", {.range = {1, 64}}),
};

constexpr Key memory_keys[] = {
    {"latency", clocked_time, "needed", "One dependent read from memory."},
    needed<&MemoryHierarchy::memory_efficiency>("Share of the datasheet's bandwidth that reading reaches.",
                                                above_zero.as("efficiency")),
    member<&MemoryHierarchy::memory_write_share>("Bandwidth of writing over that of reading.",
                                                 above_zero.as("write_share")),
    {"socket_bandwidth", quantity("GB/s"), "", "Memory bandwidth per socket, for detected machines."},
    {"remote_latency", clocked_time, "no other socket", "One dependent read from another socket's memory."},
    {"remote_bandwidth", clocked_bandwidth, "no other socket", "Read bandwidth per core from remote memory (NUMA)."},
};

constexpr Key hierarchy_keys[] = {
    {"kind", text, "", "Kind of file: processor."},
    {"description", text, "", "A line about the microarchitecture."},
    {"models", one_or_list(text), "", "Vendor, family and model in /proc/cpuinfo."},
    {"slot", named(Catalogue::link), "not known", "The widest PCIe link that it has."},
    {"caches", mapping_of<caches_keys, "caches">, "needed", "Its caches."},
    {"tlb", mapping_of<tlb_keys, "translation of addresses">, "needed", "Address translation (TLB)."},
    member<&MemoryHierarchy::line>("B", "64 B", "Size of a cache line."),
    member<&MemoryHierarchy::fetch>("B", "line", "Bytes fetched per cache miss."),
    needed<&MemoryHierarchy::line_fill_buffers>("Outstanding cache misses per core.", {.range = {1, 10'000}}),
    needed<&MemoryHierarchy::prefetched_lines>("Prefetched cache lines in flight during sequential reads.",
                                               {.range = {1, 10'000}}),
    member<&MemoryHierarchy::prefetch_stride>("KiB", "0", "The longest stride that the prefetcher follows.",
                                              may_be_zero),
    needed<&MemoryHierarchy::loads_per_cycle>("Loads that a core starts each cycle.", above_zero),
    {"vector", quantity("B"), "needed", "Width of a vector register."},
    {"memory", mapping_of<memory_keys, "memory of a processor">, "needed", "The memory behind the caches."},
    member<&MemoryHierarchy::virtualised>("Virtual machine: nested page walks."),
    member<&MemoryHierarchy::small_page>("KiB", "4 KiB", "Size of a small page."),
    member<&MemoryHierarchy::huge_page>("MiB", "2 MiB", "Size of a huge page."),
    {"sources", by_name(mapping(source)), "assumptions", "Sources of the values: default, or by key."},
};

constexpr Key matrix_library_keys[] = {
    {"kind", text, "", "Kind of file: matrix_library."},
    needed<&MatrixLibrary::kernel_share>("Share of the peak that the innermost loop reaches.", above_zero),
    needed<&MatrixLibrary::tile_cycles>("Fixed cycles per register tile.", above_zero),
    needed<&MatrixLibrary::call>("us", "One call: checking arguments, taking buffers."),
    needed<&MatrixLibrary::join>("us", "Waking other threads and waiting for the last."),
    needed<&MatrixLibrary::small_product>("Largest number of multiply-adds without packed operands.", above_zero),
    needed<&MatrixLibrary::small_vector>("B", "Narrowest vectors with unpacked kernels."),
    {"sources", by_name(mapping(source)), "needed", "Sources of the values: default, or by key."},
};

constexpr auto operations_keys = by_format(number, "Operations a clock in this format.");

constexpr Key architecture_keys[] = {
    {"compute_capability", number, "needed", "Lowest compute capability of the row."},
    {"architecture", text, "needed", "The generation's word."},
    {"vector", mapping_of<operations_keys, "operations a clock">, "none",
     "Operations of a multiprocessor's CUDA cores a clock."},
    {"tensor", mapping_of<operations_keys, "operations a clock">, "none",
     "Operations of a multiprocessor's tensor cores a clock."},
    {"geforce", mapping_of<operations_keys, "operations a clock">, "tensor",
     "The same of boards that are sold as GeForce."},
    {"memory_latency", quantity("ns"), "needed", "One dependent read from memory."},
    {"l2_bytes", number, "needed", "L2 bytes per clock and SM."},
    {"source", mapping(source), "needed", "Source of the values."},
};

constexpr Key architectures_file_keys[] = {
    {"kind", text, "", "Kind of file: architectures."},
    {"architectures", list(mapping_of<architecture_keys, "architecture">), "needed",
     "Compute capabilities, the lowest first."},
};

}  // namespace

constinit const Mapping gpu = {"GPU", gpu_keys};
constinit const Mapping cpu = {"processors", cpu_keys};
constinit const Mapping hierarchy = {"memory hierarchy", hierarchy_keys};
constinit const Mapping matrix_library = {"GEMM library", matrix_library_keys};
constinit const Mapping architectures_file = {"file of architectures", architectures_file_keys};

}  // namespace foretrain::keys
