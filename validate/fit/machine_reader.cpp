#include <fmt/format.h>

#include <algorithm>

#include "model/base/files.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "validate/fit/machine.hpp"

#include <algorithm>
#include <cmath>

namespace foretrain {

namespace {

constexpr const char* remedy = "machine.json as `foretrain-gpu probe` writes it";

/// A mapping of which some keys are read and all others left alone.
class Loose {
 public:
  explicit Loose(Field field) : field_(std::move(field)) {
    if (!field_.is_mapping()) field_.fail("no mapping", remedy);
  }

  [[nodiscard]] std::optional<Field> find(std::string_view key) const {
    const YamlEntry* entry = field_.node().find(key);
    if (entry == nullptr || entry->value.is_null()) return std::nullopt;
    return Field(entry->value, join_path(field_.path(), key));
  }
  [[nodiscard]] Field need(std::string_view key) const {
    if (const auto found = find(key)) return *found;
    throw ScenarioError(field_.where(), join_path(field_.path(), key), "this key is missing", remedy);
  }
  [[nodiscard]] std::string text(std::string_view key) const {
    const auto found = find(key);
    return found && found->is_scalar() ? found->text() : "";
  }
  [[nodiscard]] std::optional<double> number(std::string_view key) const {
    const auto found = find(key);
    if (!found) return std::nullopt;
    const double value = found->number();
    if (value <= 0.0) return std::nullopt;  // drivers answer 0 where they know nothing
    return value;
  }
  [[nodiscard]] std::optional<int> integer(std::string_view key) const {
    const auto value = number(key);
    return value && *value < 1e9 ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  }
  [[nodiscard]] bool flag(std::string_view key) const {
    const auto found = find(key);
    return found && found->flag();
  }
  [[nodiscard]] const Field& field() const { return field_; }

 private:
  Field field_;
};

/// MIG divides memory and its controllers into eighths (NVIDIA Multi-Instance GPU User Guide, memory slices); a few
/// percent of each are kept back.
double slices_of(double share) {
  constexpr double slices = 8.0;
  return std::clamp(std::round(share * slices), 1.0, slices) / slices;
}

MeasuredGpu read_gpu_entry(const Field& field) {
  const Loose keys(field);
  MeasuredGpu gpu;
  gpu.index = static_cast<int>(keys.need("index").integer({0, 1024}));
  gpu.name = keys.need("name").text();
  gpu.compute_capability = keys.need("compute_capability").number(Zero::refused);
  gpu.sms = static_cast<int>(keys.need("sms").integer({1, 100'000}));
  // The clock that CUDA states is the datasheet's boost clock; NVML's highest is above it on some boards.
  const auto stated = keys.number("sm_clock_hz");
  gpu.clock = Hertz(stated ? *stated : keys.need("max_sm_clock_hz").number(Zero::refused));
  for (const char* key : {"max_memory_clock_hz", "memory_clock_hz"}) {
    if (const auto clock = keys.number(key)) gpu.memory_clock = Hertz(*clock);
  }
  gpu.bus_bits = keys.integer("memory_bus_bits");
  gpu.memory = Bytes(keys.need("memory_bytes").number(Zero::refused));
  gpu.l2_cache = Bytes(keys.need("l2_bytes").number(Zero::refused));
  if (const auto size = keys.number("shared_memory_per_sm_bytes")) gpu.shared_memory_per_sm = Bytes(*size);
  gpu.power_limit_watts = keys.number("power_limit_w");
  gpu.copy_engines = keys.integer("copy_engines");
  gpu.pcie_generation = keys.integer("pcie_generation");
  gpu.pcie_width = keys.integer("pcie_width");
  gpu.nvlinks = keys.integer("nvlinks").value_or(0);
  const double board = keys.number("board_memory_bytes").value_or(0.0);
  if (keys.flag("mig") && board > gpu.memory.value()) gpu.memory_share = slices_of(gpu.memory.value() / board);
  return gpu;
}

MeasuredLink read_link_entry(const Field& field) {
  const Loose keys(field);
  MeasuredLink link;
  link.from = static_cast<int>(keys.need("from").integer({0, 1024}));
  link.to = static_cast<int>(keys.need("to").integer({0, 1024}));
  link.nvlinks = keys.integer("nvlinks").value_or(0);
  link.peer_access = keys.flag("peer_access");
  return link;
}

Machine read_document(const Field& document) {
  const Loose keys(document);
  Machine machine;
  machine.date = keys.text("date");
  machine.kernel = keys.text("kernel");
  machine.driver = keys.text("driver");
  machine.processor = keys.text("processor");
  if (const auto versions = keys.find("versions")) {
    for (const YamlEntry& entry : Loose(*versions).field().node().entries) {
      if (entry.value.is_scalar()) machine.versions[entry.key] = entry.value.scalar;
    }
  }
  const Field gpus = keys.need("gpus");
  for (const Field& gpu : gpus.list()) machine.gpus.push_back(read_gpu_entry(gpu));
  if (machine.gpus.empty()) gpus.fail("no GPU", "a machine with a GPU");
  if (const auto links = keys.find("links")) {
    for (const Field& link : links->list()) machine.links.push_back(read_link_entry(link));
  }
  if (const auto cards = keys.find("network_cards")) {
    for (const Field& card : cards->list()) {
      machine.card_rate = BytesPerSecond(Loose(card).need("bits_per_second").number(Zero::refused) / 8.0);
      ++machine.network_cards;
    }
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
  return std::all_of(links.begin(), links.end(), [&](const MeasuredLink& link) {
    return link.nvlinks > 0 && link.nvlinks == gpus.front().nvlinks;
  });
}

Machine read_machine_text(std::string_view text, const std::string& file) {
  const YamlNode document = parse_yaml(text, file);
  return read_document(Field(document, ""));
}

Machine read_machine(const std::filesystem::path& file) {
  return read_machine_text(read_text_file(file), file.string());
}

}  // namespace foretrain
