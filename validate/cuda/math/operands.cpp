#include "validate/cuda/math/operands.hpp"

#include <utility>

namespace foretrain::gpu {

void* OwnOperands::take(std::size_t bytes, Format format) {
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

void OperandPool::begin_operator() { ++operator_; }

void* OperandPool::take(std::size_t bytes, Format format) {
  Slot* oldest = nullptr;
  if (allocated_ + bytes > limit_) {
    for (Slot& slot : slots_) {
      if (slot.format != format || slot.buffer.size() < bytes || slot.last_operator == operator_) continue;
      if (oldest == nullptr || slot.last_operator < oldest->last_operator) oldest = &slot;
    }
  }
  if (oldest == nullptr) {
    // Also past the limit, where no buffer fits: an operator must have its operands.
    DeviceBuffer buffer(bytes);
    buffer.fill(format, stream_, seed_++);
    allocated_ += bytes;
    slots_.push_back({std::move(buffer), format, operator_});
    oldest = &slots_.back();
  }
  oldest->last_operator = operator_;
  return oldest->buffer.data();
}

void* OperandPool::workspace(std::size_t bytes) {
  for (const DeviceBuffer& buffer : workspaces_) {
    if (buffer.size() >= bytes) return buffer.data();
  }
  workspaces_.emplace_back(bytes);
  allocated_ += bytes;
  return workspaces_.back().data();
}

}  // namespace foretrain::gpu
