// The constants of the cost models that no datasheet states: measured or fitted, each with its source. They live in
// scenarios/calibrations/*.yaml; a struct per cost model names them here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/error.hpp"
#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"

namespace foretrain {

/// A family of chips of one process, from its first compute capability on.
struct ChipGeneration {
  std::string_view name;
  double compute_capability;
  double process_nm;  ///< the foundry's name of the process (datasheets, architecture whitepapers)
};
/// Generations whose energy per operation is known, oldest first. A chip belongs to the last one that is not newer than
/// itself, so that one newer than all is priced like the newest.
inline constexpr std::array<ChipGeneration, 9> chip_generations = {{{"kepler", 3.0, 28.0},
                                                                    {"pascal", 6.0, 16.0},
                                                                    {"volta", 7.0, 12.0},
                                                                    {"turing", 7.5, 12.0},
                                                                    {"ampere", 8.0, 7.0},
                                                                    {"ampere_8nm", 8.6, 8.0},
                                                                    {"ada", 8.9, 4.0},
                                                                    {"hopper", 9.0, 4.0},
                                                                    {"blackwell", 10.0, 4.0}}};

/// Watts per TFLOP/s (picojoules per operation) at the boost clock's voltage.
struct GenerationPower {
  double vector_watts = 0.0;  ///< CUDA cores, fp32
  double tensor_watts = 0.0;  ///< tensor cores, 2-byte operands
};

/// Clocks under load (cost/power.cpp).
struct PowerConstants {
  double static_share = 0.0;   ///< share of the board's power that leakage, memory and fans take
  double voltage_floor = 0.0;  ///< voltage at zero clock over voltage at the boost clock
  double operand_share = 0.0;  ///< share of an operation's energy that goes with the operands' width
  std::array<GenerationPower, chip_generations.size()> generation{};
};

/// Matrix products (cost/gemm.cpp). Every efficiency is a share of a datasheet figure.
struct MatmulConstants {
  double vector_efficiency = 0.0;  ///< main loop on CUDA cores
  /// Elements: on tensor cores a tile of a × b runs at 1 / (1 + loss · (1/a + 1/b)) of the peak.
  double tile_loss = 0.0;
  double tile_latencies = 0.0;  ///< prologue and epilogue of a tile, in memory latencies
  double exposed_share = 0.0;   ///< share of the shorter of compute and traffic that the longer does not hide
  double fixed_us = 0.0;        ///< kernel start and drain, microseconds
  /// Traffic of an operand in which k is contiguous, over the same of one in which m or n is: short pieces of many
  /// rows.
  double strided_traffic = 1.0;
};

/// Convolutions (cost/convolution.cpp), relative to the matrix product of the same shape.
struct ConvolutionConstants {
  double tensor_efficiency = 0.0;
  double vector_efficiency = 0.0;  ///< integer and fp32 units apart (Volta and later)
  /// CUDA-core instructions for each element that is put into a tile, where address arithmetic takes turns with fp32
  /// (before Volta).
  double address_instructions = 0.0;
  double transform_efficiency = 0.0;  ///< of the products and transforms of Winograd's and Fourier's algorithms
};

/// Attention (cost/attention_time.cpp).
struct AttentionConstants {
  double exposed_share = 0.0;             ///< share of shared-memory and L2 traffic that matrix products do not hide
  double softmax_instructions = 0.0;      ///< CUDA-core instructions per score beside its exponential
  double exponentials_per_clock = 0.0;    ///< of one multiprocessor
  double shared_bytes_per_clock = 0.0;    ///< of one multiprocessor
  double warp_mma_share = 0.0;            ///< of the tensor-core peak without warp-group instructions (Hopper on)
  double flash_3_hidden_softmax = 0.0;    ///< share of the softmax that FlashAttention-3 hides behind products
  double memory_efficient_share = 0.0;    ///< speed of the memory-efficient kernels over flash
  double block_start_keys = 0.0;          ///< start and end of one thread block, as further keys that it visits
  double unfused_softmax_slowdown = 0.0;  ///< frameworks' own softmax over one fused with scaling and mask
  double mask_passes = 0.0;               ///< adding a mask to the scores, as passes over them
};

/// Memory-bound operators (cost/streaming.cpp).
struct StreamingConstants {
  double bandwidth_efficiency = 0.0;  ///< of the datasheet bandwidth, large contiguous traffic
  double reduction_efficiency = 0.0;  ///< norms and softmax, relative to the same traffic of an elementwise kernel
  double gather_efficiency = 0.0;     ///< rows looked up or scattered, relative to the same
  double l2_share = 0.0;              ///< share of the L2 that still holds what the previous kernel wrote
  double kernel_us = 0.0;             ///< start and drain of one kernel, microseconds
};

/// The memory hierarchy of a GPU (cost/memory_access.cpp). Latencies are those of one dependent load.
struct AccessConstants {
  double l1_cycles = 0.0;           ///< hit in the L1, shared with the scratchpad
  double l2_cycles = 0.0;           ///< hit in the L2
  double l1_bytes_per_cycle = 0.0;  ///< of one multiprocessor
};

/// The host's side of a step (cost/host.cpp).
struct HostConstants {
  double dispatch_us = 0.0;  ///< eager framework, host time per kernel
  double compiled_dispatch_us = 0.0;
  double graph_launch_us = 0.0;       ///< a whole CUDA graph
  double launch_latency_us = 0.0;     ///< submission to start on an idle device
  double graph_node_saving_us = 0.0;  ///< device, per kernel: what a graph's next node starts earlier than a launch
  double queue_launches = 0.0;        ///< launches that a stream takes before the host has to wait
  double synchronize_us = 0.0;        ///< from the device's end to the host thread that waits for it
  double print_us = 0.0;              ///< formatting a tensor that has arrived in host memory
  double step_us = 0.0;               ///< once per optimizer step: Python loop, gradient clipping, logging
  double pageable_copy_gbps = 0.0;    ///< staging copies of pageable memory, GB/s
  double page_lock_gbps = 0.0;        ///< allocating page-locked memory, GB/s
};

/// NCCL-like collectives (collectives/automatic.cpp). Steps are hops of a ring or levels of a tree; a protocol's share
/// is that of the bandwidth which the Simple protocol reaches for large messages.
struct CollectiveConstants {
  double nvlink_efficiency = 0.0;        ///< Simple, of the NVLink bandwidth, where the link type states no own figure
  double pcie_efficiency = 0.0;          ///< Simple, of the PCIe bandwidth
  double network_efficiency = 0.0;       ///< Simple, of the cards' payload bandwidth
  double nvls_efficiency = 0.0;          ///< in-switch reductions, of the NVLink bandwidth
  double tree_efficiency = 0.0;          ///< trees between nodes, relative to rings
  double low_latency_share = 0.0;        ///< LL on Hopper and newer
  double early_low_latency_share = 0.0;  ///< LL before Hopper
  double ll128_share = 0.0;
  double launch_us = 0.0;        ///< once per call, Hopper and newer
  double early_launch_us = 0.0;  ///< once per call, the hardware and software before Hopper
  double nvls_us = 0.0;          ///< once per in-switch reduction
  double ll_step_us = 0.0;
  double ll128_step_us = 0.0;
  double simple_step_us = 0.0;
  double pcie_step_factor = 0.0;    ///< a step over PCIe takes this many times one over NVLink
  double network_ll_step_us = 0.0;  ///< a step between nodes
  double network_ll128_step_us = 0.0;
  double network_simple_step_us = 0.0;
  double peer_us = 0.0;             ///< all-to-all and send-receive: setting up one peer
  double peer_channel_gbps = 0.0;   ///< send-receive: what one channel carries, GB/s
  double local_copy_traffic = 0.0;  ///< memory traffic of a rank's own part that no link hides, per byte
  double overlap_slowdown = 0.0;    ///< compute slowed while a collective runs beside it (share of its time)
};

/// Worker processes that load data (cost/loader.cpp).
struct LoaderConstants {
  double copy_gbps = 0.0;        ///< one thread reads what is in the page cache, GB/s
  double open_us = 0.0;          ///< opening, asking for the size of and closing a file, processor time
  double page_fault_us = 0.0;    ///< one fault of a mapping, which maps `fault_kib` that are in memory
  double fault_kib = 0.0;        ///< kernel's fault-around
  double hand_over_us = 0.0;     ///< a batch goes from a worker to the training process, on the worker
  double hand_over_gbps = 0.0;   ///< writing a batch into shared memory, GB/s
  double worker_mib = 0.0;       ///< memory of a worker process beside its batches
  double worker_start_ms = 0.0;  ///< starting one worker, one after the other
  double cache_share = 0.0;      ///< share of the free memory that the page cache may fill
  /// Cores with more workers than one take turns: share of their time that goes with switching.
  double switch_share = 0.0;
};

/// Memory that frameworks take beyond tensors (plan/stage_memory.cpp).
struct MemoryConstants {
  double context_mib = 0.0;       ///< CUDA context, kernels, workspaces of libraries
  double communicator_mib = 0.0;  ///< buffers of one NCCL communicator's channels
  double fragmentation = 0.0;     ///< free blocks that no tensor fits into, share of the tensors that come and go
};

/// A training step as a whole (graph/layer_cost.cpp).
struct StepConstants {
  /// Kernels of a step over the same kernels repeated alone: other layers' data in the caches, gaps between kernels,
  /// clocks that hold for hours.
  double kernel_stretch = 1.0;
};

/// How far predictions are off: share of the predicted time within which four of five measured cases lie.
struct UncertaintyConstants {
  double train = 0.0;
  double collective = 0.0;
  double kernel = 0.0;  ///< operators and task lists
};

/// Natural logarithms of a product's sizes.
struct LogSizes {
  double batch = 0.0, m = 0.0, n = 0.0, k = 0.0;
};

/// A matrix product that was measured (cost/measured_matmul.cpp).
struct MeasuredMatmul {
  std::string gpu;  ///< catalogue name
  Precision precision = Precision::fp32;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  Seconds time;
  bool transpose_a = false, transpose_b = false;
  double log_residual = 0.0;  ///< ln(measured / model); known once the GPU is, as what follows
  LogSizes log_sizes;
  SourcePosition where;  ///< of its time
};

/// How well a machine's own measurements determine the constants that were fitted to them.
struct FittedUncertainty {
  std::vector<std::string> names;               ///< rows of calibration_rows()
  std::vector<std::vector<double>> covariance;  ///< of these, in their units
  /// Standard deviation of ln(measured / predicted), by family of operators ("matmul", "streaming", …) and
  /// "collective".
  std::map<std::string, double> spread;
};

/// The machine that a calibration was fitted on (calibration files of `foretrain calibrate`).
struct CalibratedGpu {
  std::string name;  ///< of the catalogue, or of the machine's own description
  double compute_capability = 0.0;
  std::string base;                      ///< the calibration whose constants the fitted ones replace
  std::string file;                      ///< where it was read
  Seconds memory_latency;                ///< zero: not measured
  BytesPerSecond l2_bandwidth;           ///< zero: not measured
  std::vector<std::string> fitted = {};  ///< names of the constants that replace those of the base
};

struct Calibration {
  std::string name;
  PowerConstants power;
  MatmulConstants matmul;
  ConvolutionConstants convolution;
  AttentionConstants attention;
  StreamingConstants streaming;
  AccessConstants access;
  HostConstants host;
  CollectiveConstants collective;
  LoaderConstants loader;
  MemoryConstants memory;
  StepConstants step;
  UncertaintyConstants uncertainty;
  std::vector<Constant> constants;  ///< what was loaded, with sources
  std::vector<MeasuredMatmul> measured_matmuls;
  std::optional<CalibratedGpu> calibrated;
  std::optional<FittedUncertainty> fitted;
  std::vector<std::string> warnings;  ///< what a user should know of its use
};

/// One constant of the table: where its value goes, and what is sensible.
struct ConstantRow {
  std::string name;  ///< dotted, "matmul.tensor_efficiency"
  std::string unit;
  std::function<double&(Calibration&)> field;
  double minimum;
  double maximum;
};

/// Every constant that a calibration file must state; the loader reads exactly these.
const std::vector<ConstantRow>& calibration_rows();

/// The part of the table that belongs to collectives (calibration_collective.cpp).
std::vector<ConstantRow> collective_calibration_rows();
/// The part that belongs to data loading (calibration_loader.cpp).
std::vector<ConstantRow> loader_calibration_rows();

}  // namespace foretrain
