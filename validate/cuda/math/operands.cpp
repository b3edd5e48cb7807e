#include "validate/cuda/math/operands.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

namespace {

/// Whether not all bits of a number's exponent are set, as in infinities and what is no number; always for integers.
bool is_finite(Format format, const char* number) {
  const std::uint64_t exponent = format == Format::fp64   ? 0x7ff0000000000000
                                 : format == Format::fp32 ? 0x7f800000
                                 : format == Format::fp16 ? 0x7c00
                                 : format == Format::bf16 ? 0x7f80
                                                          : 0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, number, size_of(format));
  return exponent == 0 || (bits & exponent) != exponent;
}

bool all_finite(Format format, const char* data, std::size_t bytes) {
  std::array<char, 4096> sample{};
  const std::size_t count = std::min(sample.size(), bytes / 8 * 8);
  for (const std::size_t start : {std::size_t{0}, bytes / 2 / 8 * 8, bytes / 8 * 8}) {
    const std::size_t from = std::min(start, bytes / 8 * 8 - count);
    GPU_CHECK(cudaMemcpy(sample.data(), data + from, count, cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < count; i += size_of(format)) {
      if (!is_finite(format, sample.data() + i)) return false;
    }
  }
  return true;
}

}  // namespace

void OperandPool::begin_operator() {
  ++operator_;
  written_before_ = std::exchange(written_now_, std::nullopt);
}

OperandPool::Slot* OperandPool::oldest(std::size_t bytes, Format format, Use use) {
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    if (slot.use != use || slot.format != format || slot.buffer.size() < bytes) continue;
    if (slot.last_operator == operator_) continue;
    if (found == nullptr || slot.last_operator < found->last_operator) found = &slot;
  }
  return found;
}

void* OperandPool::take(std::size_t bytes, Format format, Use use) {
  Slot* slot = nullptr;
  if (use == Use::handed) {
    use = Use::read;
    if (written_before_ && slots_[*written_before_].buffer.size() >= bytes) slot = &slots_[*written_before_];
  }
  if (slot == nullptr && use != Use::kept && allocated_[use] + bytes > limit_) slot = oldest(bytes, format, use);
  if (slot == nullptr) {
    // Also past the limit, where no buffer fits: an operator must have its operands.
    slot = &slots_.emplace_back(Slot{DeviceBuffer(bytes), format, use, operator_});
    slot->buffer.fill(format, stream_, seed_++);
    allocated_[use] += bytes;
  }
  slot->last_operator = operator_;  // which takes it for nothing else
  if (use == Use::written && !written_now_) written_now_ = static_cast<std::size_t>(slot - slots_.data());
  return slot->buffer.data();
}

void* OperandPool::workspace(std::size_t bytes) {
  for (const DeviceBuffer& buffer : workspaces_) {
    if (buffer.size() >= bytes) return buffer.data();
  }
  workspaces_.emplace_back(bytes);
  return workspaces_.back().data();
}

void OperandPool::check_finite() const {
  for (const Slot& slot : slots_) {
    if (slot.use == Use::read || slot.buffer.size() < 8) continue;
    if (all_finite(slot.format, slot.buffer.as<char>(), slot.buffer.size())) continue;
    throw GpuError(Fault::failed, "after the last step results are infinite or no numbers: their times mean nothing");
  }
}

}  // namespace foretrain::gpu
