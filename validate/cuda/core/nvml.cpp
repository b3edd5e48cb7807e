#include "validate/cuda/core/nvml.hpp"

namespace foretrain::gpu {

struct Nvml::Library {};

Nvml::Nvml() = default;
Nvml::~Nvml() = default;
bool Nvml::available() const { return library_ != nullptr; }
std::optional<DeviceState> Nvml::state(const std::string& /*bus_id*/) const { return std::nullopt; }
NvmlDescription Nvml::describe(const std::string& /*bus_id*/) const { return {}; }

}  // namespace foretrain::gpu
