// Streams, events, copies and NCCL on a machine without a GPU, for tests of order and sums: device memory is the
// host's, and what is put on streams is carried out only when somebody waits, in an order that CUDA allows and chance
// chooses. What lacks a dependency then reads what is not there yet.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace streams {

/// All streams, events and memory are forgotten; `devices` GPUs from now on, and another order of things.
void reset(int devices, std::uint64_t seed);
/// Carried out in stream order.
void enqueue(cudaStream_t stream, std::function<void()> work);
/// The result of every reduction is wrong in one element.
void corrupt_nccl(bool corrupts);
/// Communicators that exist, and that were aborted since reset().
int communicators();
int aborted();
/// Bytes of device and page-locked memory that were not freed.
std::size_t allocated();

}  // namespace streams
