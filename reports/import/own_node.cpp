#include "reports/import/own_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/overrides.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/node_draft.hpp"
#include "reports/import/node_file.hpp"

namespace foretrain {

namespace {

/// NVLinks of a GPU: their kind, and how many there are.
struct GpuPorts {
  std::string type;
  int count = 0;
};

bool is_gpu_name(std::string_view name) { return name.starts_with("gpu"); }

int number_at(const YamlNode& document, std::string_view key, int otherwise) {
  const YamlNode* node = document.at(key);
  return node == nullptr ? otherwise : static_cast<int>(Field(*node, std::string(key)).integer({0, 1'000'000}));
}

/// The links of a machine: their two ends as written, kind and count.
std::vector<ToldLink> links_of(const YamlNode& machine) {
  std::vector<ToldLink> links;
  const YamlNode* wiring = machine.at("wiring");
  for (const YamlNode& item : wiring != nullptr ? wiring->items : std::vector<YamlNode>()) {
    const YamlNode* ends = item.at("between");
    if (ends == nullptr || ends->items.size() != 2) continue;
    links.push_back(
        {ends->items[0].scalar, ends->items[1].scalar, text_at(item, "link"), number_at(item, "count", 1), {}, ""});
  }
  return links;
}

std::optional<GpuPorts> ports_in(const YamlNode& machine) {
  GpuPorts ports;
  for (const ToldLink& link : links_of(machine)) {
    const bool first = link.a == "gpu0" || link.a.starts_with("gpu0.."),
               second = link.b == "gpu0" || link.b.starts_with("gpu0..");
    const std::string& other = first ? link.b : link.a;
    if ((!first && !second) || (!is_gpu_name(other) && !other.starts_with("nvswitch"))) continue;
    ports.type = link.type;
    ports.count += link.count;
  }
  return ports.count > 0 ? std::optional(ports) : std::nullopt;
}

class OwnNodeMaker {
 public:
  explicit OwnNodeMaker(const OwnNode& asked)
      : asked_(asked),
        base_(base_of(asked)),
        document_(base_),
        figures_(asked.gpu.empty() ? read_gpu(Field(base_.find("gpu")->value, "gpu")) : gpu_named(asked.gpu)) {}

  std::string make() {
    take_scalars();
    if (is_rewired()) rewire();
    take_cards();
    const std::string from = text_at(base_, "name");
    const bool unchanged = asked_.gpu.empty() && !is_rewired() && asked_.nics < 0 && asked_.nic_bandwidth.empty();
    if (!unchanged) {
      set("description", fmt::format("own machine: {} x {}", gpus(), gpu()));
      for (const char* key : {"cpu", "network", "storage"}) assume(key, "as " + from);
    }
    set_assumed();
    return commented_node(
        document_, remarks_,
        fmt::format("{}{}: a machine for `cluster.node` of a scenario. Draw it with `foretrain plot topology FILE`; "
                    "`foretrain help KEY` tells of a key.",
                    text_at(document_, "name"), unchanged ? ", wired as " + from : ""));
  }

 private:
  /// GPUs of boards are likest to a machine with such a board, cards to a server without switches.
  static YamlNode base_of(const OwnNode& asked) {
    if (!asked.like.empty()) return catalogue_node(asked.like);
    const YamlNode name = yaml_scalar(asked.gpu, {"--gpu", 0, 0});
    const std::string file = catalogue_file(CatalogueSection::gpu, Field(name, "")).stem().string();
    if (asked.gpus < 1) {
      throw UsageError(
          fmt::format("--gpu {}: how many has the machine? --gpus N; what else is not said is assumed, and "
                      "every prediction says so: --sockets N, --switches N (of PCIe), --links "
                      "nvswitch|nvlink-mesh|nvlink-bridge|pcie, --nics N --nic-bandwidth '100 Gbit/s', or "
                      "--like NAME of `foretrain hardware list`",
                      file));
    }
    ToldNode told;
    told.gpus = asked.gpus;
    told.sockets = asked.sockets;
    return is_on_board(gpu_named(file)) ? nearest_node(told, file) : plain_node(gpu_named(file));
  }
  static bool is_on_board(const Gpu& gpu) { return (gpu.nvlinks > 0 && !gpu.bridged) || !gpu.slot.starts_with("pcie"); }

  /// A server of which the GPU alone is said.
  [[nodiscard]] bool is_plain() const { return asked_.like.empty() && !is_on_board(figures_); }
  [[nodiscard]] bool has_other_gpu() const { return !asked_.gpu.empty() && figures_.name != text_at(base_, "gpu"); }

  void assume(const std::string& key, const std::string& what) {
    if (document_.find(key) == nullptr) return;
    if (!remarks_.contains(key)) remarks_[key] = fmt::format("Assumed: {}.", what);
    assumed_.emplace_back(key, what);
  }
  void set_assumed() {
    if (assumed_.empty()) return;
    document_.erase("assumed");
    document_.entries.insert(std::ranges::find(document_.entries, "sources", &YamlEntry::key),
                             {"assumed", {}, yaml_entries(assumed_)});
  }

  [[nodiscard]] std::string gpu() const { return text_at(document_, "gpu"); }
  [[nodiscard]] int gpus() const { return asked_.gpus > 0 ? asked_.gpus : number_at(base_, "gpus", 1); }
  [[nodiscard]] int base_sockets() const { return std::max(number_at(base_, "cpu.sockets", 1), 1); }
  [[nodiscard]] int sockets() const {
    constexpr int most_of_one = 4;  // GPUs with sixteen lanes each, beside cards and disks
    if (asked_.sockets > 0) return asked_.sockets;
    return !is_plain() ? base_sockets() : gpus() > most_of_one ? 2 : 1;
  }
  [[nodiscard]] bool is_rewired() const {
    return gpus() != number_at(base_, "gpus", 1) || sockets() != base_sockets() || asked_.switches >= 0 ||
           asked_.links != GpuLinks::as_like || has_other_gpu();
  }

  void set(const std::string& key, const std::string& value) {
    apply_override(document_, {key, flow_text(yaml_scalar(value, {})), {"hardware init", 0, 0}});
  }

  void take_scalars() {
    if (!asked_.gpu.empty()) {
      const YamlNode name = yaml_scalar(asked_.gpu, {"--gpu", 0, 0});
      set("gpu", catalogue_file(CatalogueSection::gpu, Field(name, "")).stem().string());
    }
    set("gpus", std::to_string(gpus()));
    if (has_other_gpu() || is_plain()) {
      document_.erase("peer_to_peer");  // as the GPU has it
      forget_source("peer_to_peer");
    }
    if (sockets() != base_sockets()) scale_processors();
    const bool own = !asked_.name.empty() || asked_.like.empty();
    if (own) set("name", asked_.name.empty() ? fmt::format("{}-x{}-own", gpu(), gpus()) : asked_.name);
  }

  /// Figures of all sockets together.
  void scale_processors() {
    const double share = 1.0 * sockets() / base_sockets();
    for (const char* key : {"cpu.cores", "cpu.memory", "cpu.memory_bandwidth", "cpu.fp32_rate"}) {
      const std::string stated = text_at(base_, key);
      if (stated.empty()) continue;
      const NumberAndUnit parts = split_number_and_unit(stated);
      set(key, fmt::format("{:.6g}{}{}", parts.number * share, parts.unit.empty() ? "" : " ", parts.unit));
    }
    set("cpu.sockets", std::to_string(sockets()));
    remarks_["cpu"] = fmt::format("Assumed: as {}, by the number of sockets.", text_at(base_, "name"));
  }

  // ---- wiring

  void rewire() {
    document_.erase("wiring");
    document_.erase("nics");
    wiring_.kind = YamlNode::Kind::sequence;
    add_gpu_links();
    add_tree();
    const ToldLink between = socket_link(base_);
    for (int a = 0; a < sockets(); ++a) {
      for (int b = a + 1; b < sockets(); ++b) {
        add(fmt::format("cpu{}", a), fmt::format("cpu{}", b), between.type, between.count,
            fmt::format("Assumed: how sockets are joined in {}.", text_at(base_, "name")));
      }
    }
    document_.entries.insert(std::ranges::find(document_.entries, "sources", &YamlEntry::key), {"wiring", {}, wiring_});
    apply_override(document_, {"sources.wiring",
                               "{ kind: assumption, text: \"put together by foretrain hardware init\" }",
                               {"hardware init", 0, 0}});
    if (switches() > 0) return assume("wiring", fmt::format("{} PCIe switches, {}", switches(), slot()));
    assume("wiring", fmt::format("each GPU on a root port of its own, {}{}", slot(),
                                 is_plain() && links() == GpuLinks::pcie ? ", no NVLink" : ""));
  }

  void add(const std::string& a, const std::string& b, const std::string& type, int count,
           const std::string& remark = "") {
    YamlNode item = yaml_nodes({{"between", yaml_list({a, b})}, {"link", yaml_scalar(type, {})}});
    if (count > 1) item.entries.push_back({"count", {}, yaml_scalar(std::to_string(count), {})});
    if (!remark.empty()) remarks_[fmt::format("wiring[{}]", wiring_.items.size())] = remark;
    wiring_.items.push_back(std::move(item));
  }

  /// gpu3..gpu5, or gpu3 where it is one.
  static std::string range(const std::string& stem, int first, int end) {
    return end - first == 1 ? fmt::format("{}{}", stem, first) : fmt::format("{0}{1}..{0}{2}", stem, first, end - 1);
  }

  [[nodiscard]] GpuLinks links() const {
    if (asked_.links != GpuLinks::as_like) return asked_.links;
    if (is_plain()) return GpuLinks::pcie;
    bool direct = false;
    for (const ToldLink& link : links_of(base_)) {
      if (link.b.starts_with("nvswitch") || link.a.starts_with("nvswitch")) return GpuLinks::nvswitch;
      direct = direct || (is_gpu_name(link.a) && is_gpu_name(link.b));
    }
    return direct ? GpuLinks::nvlink_mesh : GpuLinks::pcie;
  }

  /// Those of this GPU in the machine it is like, or as its datasheet has them.
  [[nodiscard]] GpuPorts ports() const {
    if (!has_other_gpu()) {
      if (const auto own = ports_in(base_)) return *own;
    }
    const bool bridge = links() == GpuLinks::nvlink_bridge;
    if (figures_.nvlinks == 0 || figures_.bridged != bridge) {
      throw UsageError(fmt::format("{}: {} {}; write --links {}, or --like a machine that has them",
                                   asked_.links == GpuLinks::as_like ? "--like " + asked_.like : "--links", gpu(),
                                   figures_.nvlinks == 0 ? "has no NVLink"
                                   : bridge              ? "is joined on a board, not by bridges"
                                                         : "has NVLink by bridges between two cards alone",
                                   figures_.bridged ? "nvlink-bridge or pcie" : "pcie"));
    }
    return {figures_.nvlink, figures_.nvlinks};
  }

  void add_gpu_links() {
    const int others = gpus() - 1;
    if (links() == GpuLinks::pcie || others < 1) return;
    if (links() == GpuLinks::nvlink_bridge) {
      const GpuPorts bridge = ports();
      for (int a = 0; a + 1 < gpus(); a += 2)
        add(fmt::format("gpu{}", a), fmt::format("gpu{}", a + 1), bridge.type, bridge.count);
      return;
    }
    if (links() == GpuLinks::nvlink_mesh && copy_mesh()) return;
    const GpuPorts gpu_ports = ports();
    if (links() == GpuLinks::nvswitch) return add(range("gpu", 0, gpus()), "nvswitch", gpu_ports.type, gpu_ports.count);
    const int each = gpu_ports.count / others;
    if (each < 1) {
      throw UsageError(
          fmt::format("--links nvlink-mesh: {} links of a GPU do not reach {} others; at most {} GPUs, or nvswitch",
                      gpu_ports.count, others, gpu_ports.count + 1));
    }
    for (int a = 0; a + 1 < gpus(); ++a)
      add(fmt::format("gpu{}", a), range("gpu", a + 1, gpus()), gpu_ports.type, each);
  }

  /// Direct links of the machine that it is like, if this has as many GPUs.
  bool copy_mesh() {
    if (gpus() != number_at(base_, "gpus", 1) || has_other_gpu()) return false;
    bool any = false;
    for (const ToldLink& link : links_of(base_)) {
      if (!is_gpu_name(link.a) || !is_gpu_name(link.b)) continue;
      add(link.a, link.b, link.type, link.count);
      any = true;
    }
    return any;
  }

  [[nodiscard]] std::string slot() const {
    const std::string own = figures_.slot.empty() ? "pcie4-x16" : figures_.slot;
    if (is_plain()) return own;
    for (const ToldLink& link : links_of(base_)) {
      if (is_gpu_name(link.a) && !is_gpu_name(link.b) && !link.b.starts_with("nvswitch")) {
        return has_other_gpu() ? narrower_slot(own, link.type) : link.type;
      }
    }
    return own;
  }

  [[nodiscard]] int switches() const {
    if (asked_.switches >= 0) return std::min(asked_.switches, gpus());
    if (is_plain()) return 0;
    std::set<std::string> names;
    for (const ToldLink& link : links_of(base_)) {
      for (const std::string& end : {link.a, link.b}) {
        if (end.starts_with("plx") && end.find("..") == std::string::npos && end != "plx0..") names.insert(end);
      }
    }
    const int of_base = static_cast<int>(names.size()), base_gpus = std::max(number_at(base_, "gpus", 1), 1);
    return std::min((of_base * gpus() + base_gpus - 1) / base_gpus, gpus());
  }

  void add_tree() {
    const int count = switches();
    const int places = count > 0 ? count : sockets();
    for (int place = 0; place < places; ++place) {
      const int first = place * gpus() / places, end = (place + 1) * gpus() / places;
      if (end > first) add(range("gpu", first, end), fmt::format("{}{}", count > 0 ? "plx" : "cpu", place), slot(), 1);
    }
    for (int socket = 0; count > 0 && socket < sockets(); ++socket) {
      const int first = socket * count / sockets(), end = (socket + 1) * count / sockets();
      if (end > first) add(range("plx", first, end), fmt::format("cpu{}", socket), slot(), 1);
    }
  }

  // ---- network cards

  void take_cards() {
    const bool asks = asked_.nics >= 0 || !asked_.nic_bandwidth.empty();
    if (asked_.nics == 0 || (asked_.like.empty() && !asks)) {
      document_.erase("network");
      document_.erase("nics");
      forget_source("network");
      return;
    }
    const bool is_new = document_.find("network") == nullptr;
    if (is_new && !asks) return;
    if ((is_new || asked_.like.empty()) && asked_.nic_bandwidth.empty()) {
      throw UsageError("--nics: how fast are they? --nic-bandwidth '400 Gbit/s'");
    }
    if (is_new || asked_.like.empty() || asked_.nics > 0) {
      set("network.nics_per_node", std::to_string(std::max(asked_.nics, 1)));
    }
    if (!asked_.nic_bandwidth.empty()) {
      document_.erase("network.nic");
      set("network.nic_bandwidth", asked_.nic_bandwidth);
    }
    if (is_new) set("network.latency", "5 us");
    if (is_new || document_.find("nics") == nullptr) place_cards();
  }

  /// Evenly on the switches, or on the sockets.
  void place_cards() {
    const int cards = number_at(document_, "network.nics_per_node", 0), count = is_rewired() ? switches() : 0;
    if (cards == 0) return;
    const int places = std::min(count > 0 ? count : sockets(), cards);
    const int all = count > 0 ? count : sockets();
    std::vector<std::string> names;
    for (int i = 0; i < places; ++i) names.push_back(fmt::format("{}{}", count > 0 ? "plx" : "cpu", i * all / places));
    YamlNode nics = yaml_nodes({{"attached_to", yaml_list(names)}, {"link", yaml_scalar(slot(), {})}});
    document_.entries.insert(std::ranges::find(document_.entries, "network", &YamlEntry::key),
                             {"nics", {}, std::move(nics)});
  }

  /// Of keys that are no longer there.
  void forget_source(const std::string& key) {
    YamlEntry* sources = document_.find("sources");
    if (sources == nullptr) return;
    std::erase_if(sources->value.entries, [&](const YamlEntry& entry) { return entry.key.starts_with(key); });
  }

  const OwnNode& asked_;
  const YamlNode base_;
  YamlNode document_, wiring_;
  const Gpu figures_;
  std::vector<std::pair<std::string, std::string>> assumed_;
  std::map<std::string, std::string> remarks_;
};

}  // namespace

std::string own_node(const OwnNode& asked) { return OwnNodeMaker(asked).make(); }

}  // namespace foretrain
