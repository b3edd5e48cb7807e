// A training: model, precision, optimizer, batch, independent of the hardware.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/hardware/precision.hpp"
#include "model/workload/batching.hpp"
#include "model/workload/data_loader.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/quantisation.hpp"
#include "model/workload/recomputation.hpp"
#include "model/workload/recovery.hpp"
#include "model/workload/trainer_code.hpp"
#include "model/workload/training_parts.hpp"

namespace foretrain {

/// The formats that models train in.
inline constexpr std::array training_precisions = {Precision::fp32, Precision::tf32,  Precision::fp16, Precision::bf16,
                                                   Precision::fp8,  Precision::mxfp8, Precision::nvfp4};
/// The formats that gradients are sent in.
inline constexpr std::array gradient_precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                                                   Precision::fp8};

/// Paged: states in memory that CUDA moves between GPU and host where the GPU's is full (bitsandbytes).
/// muon: of matrices of blocks, by Newton–Schulz steps; the rest by adamw (arXiv 2502.16982).
enum class Optimizer { sgd, momentum, adam, adamw, lamb, lars, muon, adamw_8bit, paged_adamw_32bit, paged_adamw_8bit };
constexpr bool is_paged(Optimizer optimizer) { return optimizer >= Optimizer::paged_adamw_32bit; }
constexpr bool has_8bit_states(Optimizer optimizer) {
  return optimizer == Optimizer::adamw_8bit || optimizer == Optimizer::paged_adamw_8bit;
}

/// Meaning of measured memory: the highest peak of a GPU, as nvidia-smi says; or what the framework's
/// allocator has reserved on the first rank's, as a trainer that logs there says.
enum class LoggedMemory { device, first_reserved };

/// The state of the training is saved every so many steps.
struct Checkpoint {
  /// To storage beside the training, or while it waits; in_memory: beside the training, into the memory of the own host
  /// and of the next machine (Wang et al., "Gemini", SOSP 2023).
  enum class Mode { asynchronous, synchronous, in_memory };
  int every = 1;
  bool best_interval = false;  ///< `every` is to be found (key every: auto)
  Mode mode = Mode::asynchronous;
  Storage storage;
};

struct TrainWorkload {
  ModelConfig model;
  std::int64_t global_batch = 1;  ///< samples per optimizer step over the whole cluster
  std::int64_t micro_batch = 1;   ///< samples per replica per pass
  Precision precision = Precision::bf16;
  QuantisationRecipe recipe;
  Optimizer optimizer = Optimizer::adamw;
  Precision state_precision = Precision::fp32;  ///< of its states, unless in 8 bits (key state_precision)
  Recompute recompute = Recompute::none;
  RecomputedLayers recompute_layers;
  AttentionKind attention = AttentionKind::flash;
  TrainerCode code;
  bool master_weights = false;  ///< an fp32 copy of 2-byte weights beside the optimizer's states (key master_weights)
  /// Recomputation ends once all that was not kept is back (key recompute_early_stop), not with the layer.
  bool recompute_early_stop = false;
  std::optional<double> training_samples;  ///< sequences or images to train on, for time_to_train
  std::optional<DataLoader> loader;        ///< without: data are there when they are needed
  std::optional<Checkpoint> checkpoint;
  std::optional<Recovery> recovery;  ///< with failures
  TrainedParts parts;                ///< frozen parts and adapters (keys freeze and lora)
  std::optional<DataShape> data;     ///< variation of samples
  /// Time that a framework loses at each block of layers of each micro-batch (key layer_overhead), and
  /// holds in memory beyond tensors, the context and NCCL's buffers (key reserved_memory).
  Seconds layer_overhead;
  /// Host time of its code for a pass of such a block, forward or backward, beside the time of operations: like
  /// these it hides behind kernels (key layer_dispatch).
  Seconds layer_dispatch;
  /// The same for each module of a layer that holds weights, such as hooks that fetch and release these (key
  /// module_dispatch).
  Seconds module_dispatch;
  /// Time at each message between stages, there or back, beside the transfer: hosts that tell each other what
  /// comes, and wait for their GPUs to hear it (key message_overhead).
  Seconds message_overhead;
  /// The same for each other tensor rank where messages between stages cross machines (key p2p_dispatch_overhead).
  Seconds p2p_dispatch_overhead;
  /// Time of memory-bound kernels over well-written kernels that move the same (key memory_stretch).
  double memory_stretch = 1.0;
  /// Time of all kernels over that of the tuned libraries that the models describe (key kernel_slowdown).
  double kernel_slowdown = 1.0;
  Bytes reserved_memory;
  /// Activations that the code keeps of a block over those that operators read again (key activation_stretch).
  double activation_stretch = 1.0;
  /// Free blocks of the allocator that fit no tensor, over the tensors that come and go, beyond the calibration's (key
  /// fragmentation).
  double fragmentation = 0.0;
  /// Whole hidden states, freed, that collectives of tensor ranks may still read where the host is as far ahead of its
  /// GPU as it can be (key pending_stream_buffers).
  double pending_stream_buffers = 0.0;
  LoggedMemory logged_memory = LoggedMemory::device;  ///< meaning of measured memory (key logged_memory)
  /// Standard deviation of a worker's compute time from iteration to iteration, as a share of its mean: lognormal,
  /// independent between workers (parameter servers; key compute_spread).
  double compute_spread = 0.0;
};

}  // namespace foretrain
