#include "validate/cuda/math/operands.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

namespace {

/// Whether all bits of a number's exponent are set, as in infinities and what is no number; never for integers.
bool is_finite(Format format, const char* number) {
  const auto has = [number](auto exponent) {
    decltype(exponent) bits;
    std::memcpy(&bits, number, sizeof(bits));
    return (bits & exponent) == exponent;
  };
  switch (format) {
    case Format::fp64:
      return !has(std::uint64_t{0x7ff0000000000000});
    case Format::fp32:
      return !has(std::uint32_t{0x7f800000});
    case Format::fp16:
      return !has(std::uint16_t{0x7c00});
    case Format::bf16:
      return !has(std::uint16_t{0x7f80});
    default:
      return true;
  }
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

void* OwnOperands::take(std::size_t bytes, Format format, Use) {
  DeviceBuffer& buffer = buffers_.emplace_back(bytes);
  buffer.fill(format, stream_, seed_++);
  return buffer.data();
}

void* OwnOperands::workspace(std::size_t bytes) {
  // A larger one replaces none that was handed out: the old one stays among the buffers.
  if (workspace_.size() < bytes || workspace_.data() == nullptr) {
    if (workspace_.data() != nullptr) buffers_.push_back(std::move(workspace_));
    workspace_ = DeviceBuffer(bytes);
  }
  return workspace_.data();
}

void OperandPool::begin_operator() {
  ++operator_;
  written_before_ = std::exchange(written_now_, std::nullopt);
}

OperandPool::Slot* OperandPool::handed_over(std::size_t bytes) {
  if (!written_before_ || slots_[*written_before_].buffer.size() < bytes) return nullptr;
  return &slots_[*written_before_];
}

void* OperandPool::take(std::size_t bytes, Format format, Use use) {
  if (use == Use::handed) {
    Slot* const handed = handed_over(bytes);
    if (handed == nullptr) return take(bytes, format, Use::read);
    handed->last_operator = operator_;  // which does not write over it
    return handed->buffer.data();
  }
  Slot* oldest = nullptr;
  const bool shared = use == Use::read || use == Use::written;
  if (shared && allocated_[use] + bytes > limit_) {
    for (Slot& slot : slots_) {
      if (slot.use != use || slot.format != format || slot.buffer.size() < bytes) continue;
      if (slot.last_operator == operator_) continue;
      if (oldest == nullptr || slot.last_operator < oldest->last_operator) oldest = &slot;
    }
  }
  if (oldest == nullptr) {
    // Also past the limit, where no buffer fits: an operator must have its operands.
    DeviceBuffer buffer(bytes);
    buffer.fill(format, stream_, seed_++);
    allocated_[use] += bytes;
    slots_.push_back({std::move(buffer), format, use, operator_});
    oldest = &slots_.back();
  }
  oldest->last_operator = operator_;
  if (use == Use::written && !written_now_) written_now_ = static_cast<std::size_t>(oldest - slots_.data());
  return oldest->buffer.data();
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
