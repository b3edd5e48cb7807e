#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/base/files.hpp"
#include "validate/fit/machine.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

/// Numbers may stand in quotation marks; drivers answer 0 where they know nothing.
std::optional<double> find_number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  const double value = found->is_string() ? std::stod(found->get<std::string>()) : found->get<double>();
  return value > 0.0 ? std::optional(value) : std::nullopt;
}

double number_of(const json& object, const char* key) {
  const auto value = find_number(object, key);
  if (!value) throw std::invalid_argument(std::string("no ") + key);
  return *value;
}

std::optional<int> find_integer(const json& object, const char* key) {
  const auto value = find_number(object, key);
  return value && *value < 1e9 ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// Nothing where it is null.
std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool flag_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

/// MIG divides memory and its controllers into eighths (NVIDIA Multi-Instance GPU User Guide, memory slices); a few
/// percent of each are kept back.
double slices_of(double share) {
  constexpr double slices = 8.0;
  return std::clamp(std::round(share * slices), 1.0, slices) / slices;
}

MeasuredGpu read_gpu_entry(const json& entry) {
  MeasuredGpu gpu;
  gpu.index = entry.at("index");
  gpu.name = entry.at("name");
  gpu.compute_capability = number_of(entry, "compute_capability");
  gpu.sms = std::clamp(static_cast<int>(std::min(number_of(entry, "sms"), 1e5)), 1, 100'000);
  // The clock that CUDA states is the datasheet's boost clock; NVML's highest is above it on some boards.
  const auto stated = find_number(entry, "sm_clock_hz");
  gpu.clock = Hertz(stated ? *stated : number_of(entry, "max_sm_clock_hz"));
  for (const char* key : {"max_memory_clock_hz", "memory_clock_hz"}) {
    if (const auto clock = find_number(entry, key)) gpu.memory_clock = Hertz(*clock);
  }
  gpu.bus_bits = find_integer(entry, "memory_bus_bits");
  gpu.memory = Bytes(number_of(entry, "memory_bytes"));
  gpu.l2_cache = Bytes(number_of(entry, "l2_bytes"));
  if (const auto size = find_number(entry, "shared_memory_per_sm_bytes")) gpu.shared_memory_per_sm = Bytes(*size);
  gpu.power_limit_watts = find_number(entry, "power_limit_w");
  gpu.copy_engines = find_integer(entry, "copy_engines");
  gpu.pcie_generation = find_integer(entry, "pcie_generation");
  gpu.pcie_width = find_integer(entry, "pcie_width");
  gpu.nvlinks = find_integer(entry, "nvlinks").value_or(0);
  const double board = find_number(entry, "board_memory_bytes").value_or(0.0);
  if (flag_of(entry, "mig") && board > gpu.memory.value()) gpu.memory_share = slices_of(gpu.memory.value() / board);
  return gpu;
}

Machine machine_of(const json& document) {
  Machine machine;
  machine.date = text_of(document, "date");
  machine.kernel = text_of(document, "kernel");
  machine.driver = text_of(document, "driver");
  machine.processor = text_of(document, "processor");
  const json versions = document.value("versions", json::object());
  for (const auto& [name, version] : versions.items()) {
    if (version.is_string()) machine.versions[name] = version;
  }
  for (const json& gpu : document.at("gpus")) machine.gpus.push_back(read_gpu_entry(gpu));
  if (machine.gpus.empty()) throw std::invalid_argument("no GPU");
  for (const json& link : document.value("links", json::array())) {
    machine.links.push_back(
        {link.at("from"), link.at("to"), find_integer(link, "nvlinks").value_or(0), flag_of(link, "peer_access")});
  }
  for (const json& card : document.value("network_cards", json::array())) {
    machine.card_rate = BytesPerSecond(number_of(card, "bits_per_second") / 8.0);
    ++machine.network_cards;
  }
  return machine;
}

}  // namespace

std::optional<BytesPerSecond> MeasuredGpu::peak_bandwidth() const {
  if (!memory_clock || !bus_bits) return std::nullopt;
  return memory_share * BytesPerSecond(2.0 * memory_clock->value() * *bus_bits / 8.0);
}

bool Machine::has_nvswitch() const {
  if (gpus.size() <= 2 || links.empty()) return false;
  return std::ranges::all_of(
      links, [&](const MeasuredLink& link) { return link.nvlinks > 0 && link.nvlinks == gpus.front().nvlinks; });
}

Machine read_machine_text(std::string_view text, const std::string& file) {
  try {
    return machine_of(json::parse(text));
  } catch (const std::exception& error) {
    throw ScenarioError({file, 1, 1}, "", std::string("no description of a machine (") + error.what() + ")",
                        "machine.json as `foretrain-gpu probe` writes it");
  }
}

Machine read_machine(const std::filesystem::path& file) {
  return read_machine_text(read_text_file(file), file.string());
}

}  // namespace foretrain
