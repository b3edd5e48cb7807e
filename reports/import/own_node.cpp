#include "reports/import/own_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/overrides.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/node_draft.hpp"
#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

using Comments = std::map<std::string, std::string>;

/// Comments with its links and a drawing of their tree.
std::string wiring_comments(const YamlNode& document) {
  const Node node = read_node(Field(document, ""));
  const auto meaning = [](const keys::Mapping& mapping, std::string_view key) {
    return keys::key_of(mapping, key).meaning;
  };
  std::string text =
      as_comments({fmt::format("{} Ends: {}", meaning(keys::node, "wiring"), meaning(keys::link, "between")),
                   fmt::format("link: {} count: {}", meaning(keys::link, "link"), meaning(keys::link, "count")),
                   "The tree that they make, bandwidths as large copies reach them in one direction:"});
  for (const std::string& line : split(wiring_text(node, node.network, 0), '\n')) {
    if (!line.empty()) text += "#   " + line + "\n";
  }
  return text;
}

/// The node as a file: each key with its meaning behind it, the wiring as a tree above its links.
std::string commented_node(const YamlNode& document) {
  Comments comments;
  visit_mappings(document, keys::node, [&](const DocumentMapping& mapping) {
    for (const YamlEntry& entry : mapping.node.entries) {
      if (const keys::Key* key = mapping.key_of(entry)) comments[join_path(mapping.path, entry.key)] = key->meaning;
    }
  });
  std::erase_if(comments, [](const auto& comment) {
    return comment.first.starts_with("sources.") || comment.first.find('[') != std::string::npos;
  });
  comments.erase("wiring");
  constexpr int column = 42;
  const std::string title = text_at(document, "name") +
                            ": a machine for `cluster.node` of a scenario. Draw it with `foretrain plot topology "
                            "FILE`; `foretrain help KEY` explains a key.";
  return as_comments({title}) + wiring_comments(document) + yaml_text(document, comments, column);
}

/// GPUs of boards, which NVLink joins to all others, or to their processor.
bool is_on_board(const Gpu& gpu) { return (gpu.nvlinks > 0 && !gpu.bridged) || !gpu.slot.starts_with("pcie"); }

/// gpu3..gpu5, or gpu3 where it is one.
std::string range(const std::string& stem, int first, int end) {
  return end - first == 1 ? fmt::format("{}{}", stem, first) : fmt::format("{0}{1}..{0}{2}", stem, first, end - 1);
}

/// Puts a machine of one GPU together: its figures are those of the one that is most like it, or of a plain server.
class OwnNodeMaker {
 public:
  explicit OwnNodeMaker(const OwnNode& asked)
      : asked_(asked),
        gpu_(catalogue_file(Catalogue::gpu, Field(yaml_scalar(asked.gpu, {"--gpu", 0, 0}), "")).stem().string()),
        figures_(gpu_named(gpu_)) {
    constexpr int most_of_one = 4;  // GPUs with sixteen lanes each, beside cards and disks
    if (asked_.sockets < 1) asked_.sockets = asked_.gpus > most_of_one ? 2 : 1;
    check();
    DescribedNode described;
    described.gpus = asked_.gpus;
    described.sockets = asked_.sockets;
    document_ = is_on_board(figures_) ? nearest_node(described, gpu_) : plain_node(figures_);
    from_ = text_at(document_, "name");
  }

  YamlNode make() {
    set("name", asked_.name.empty() ? fmt::format("{}-x{}-own", gpu_, asked_.gpus) : asked_.name);
    set("description", fmt::format("own machine: {} x {}", asked_.gpus, gpu_));
    set("gpu", gpu_);
    set("gpus", std::to_string(asked_.gpus));
    take_out("peer_to_peer");  // as the GPU has it
    scale_processors();
    wire();
    take_cards();
    std::vector<std::pair<std::string, std::string>> assumed = {{"wiring", wiring_in_words()}};
    for (const char* key : {"cpu", "network", "storage"}) {
      if (document_.find(key) != nullptr) assumed.emplace_back(key, "as " + from_);
    }
    document_.erase("assumed");
    insert_before("sources", "assumed", yaml_entries(assumed));
    return std::move(document_);
  }

 private:
  /// Refuses missing values that only the user knows, and links that the GPU lacks.
  void check() const {
    if (asked_.gpus < 1) {
      throw UsageError(
          fmt::format("--gpu {}: how many has the machine? --gpus N; other missing values are assumed, and "
                      "predictions list them: --sockets N, --switches N (of PCIe), --links "
                      "nvswitch|nvlink-mesh|nvlink-bridge|pcie, --nics N --nic-bandwidth '100 Gbit/s', or "
                      "--like NAME of `foretrain hardware list`",
                      gpu_));
    }
    if (asked_.links == GpuLinks::unsaid && asked_.gpus > 1 && is_on_board(figures_)) {
      throw UsageError(
          fmt::format("--gpu {}: how are GPUs joined? --links nvswitch|nvlink-mesh|pcie, or --like NAME "
                      "of `foretrain hardware list` in its place",
                      gpu_));
    }
    const bool bridge = asked_.links == GpuLinks::nvlink_bridge;
    if (!has_nvlinks() || (figures_.nvlinks > 0 && figures_.bridged == bridge)) return;
    throw UsageError(fmt::format("--links: {} {}; write --links {}", gpu_,
                                 figures_.nvlinks == 0 ? "has no NVLink"
                                 : bridge              ? "is joined on a board, not by bridges"
                                                       : "has NVLink by bridges between two cards alone",
                                 figures_.bridged ? "nvlink-bridge or pcie" : "pcie"));
  }

  [[nodiscard]] bool has_nvlinks() const {
    return asked_.gpus > 1 && asked_.links != GpuLinks::unsaid && asked_.links != GpuLinks::pcie;
  }
  [[nodiscard]] std::string slot() const { return figures_.slot.empty() ? "pcie4-x16" : figures_.slot; }
  [[nodiscard]] int switches() const { return std::clamp(asked_.switches, 0, asked_.gpus); }

  void set(const std::string& key, const std::string& value) {
    apply_override(document_, {key, flow_text(yaml_scalar(value, {})), {"hardware init", 0, 0}});
  }
  void insert_before(const char* next, const char* key, YamlNode value) {
    document_.entries.insert(std::ranges::find(document_.entries, next, &YamlEntry::key), {key, {}, std::move(value)});
  }
  /// The key, and what says where it is from.
  void take_out(const std::string& key) {
    document_.erase(key);
    std::erase_if(document_.find("sources")->value.entries,
                  [&](const YamlEntry& entry) { return entry.key.starts_with(key); });
  }

  /// Figures of all sockets together.
  void scale_processors() {
    const double share = asked_.sockets / std::stod(text_at(document_, "cpu.sockets"));
    for (const char* key : {"cpu.cores", "cpu.memory", "cpu.memory_bandwidth", "cpu.fp32_rate"}) {
      const std::string stated = text_at(document_, key);
      if (stated.empty()) continue;
      const NumberAndUnit parts = split_number_and_unit(stated);
      set(key, fmt::format("{:.6g}{}{}", parts.number * share, parts.unit.empty() ? "" : " ", parts.unit));
    }
    set("cpu.sockets", std::to_string(asked_.sockets));
  }

  void wire() {
    const DescribedLink between = socket_link(document_);
    take_out("wiring");
    take_out("nics");
    wiring_.kind = YamlNode::Kind::sequence;
    add_nvlinks();
    add_tree();
    for (int a = 0; a < asked_.sockets; ++a) {
      for (int b = a + 1; b < asked_.sockets; ++b) {
        add(fmt::format("cpu{}", a), fmt::format("cpu{}", b), between.type, between.count);
      }
    }
    insert_before("sources", "wiring", wiring_);
    apply_override(document_, {"sources.wiring",
                               "{ kind: assumption, text: \"put together by foretrain hardware init\" }",
                               {"hardware init", 0, 0}});
  }

  void add(const std::string& a, const std::string& b, const std::string& type, int count) {
    YamlNode item = yaml_nodes({{"between", yaml_list({a, b})}, {"link", yaml_scalar(type, {})}});
    if (count > 1) item.entries.push_back({"count", {}, yaml_scalar(std::to_string(count), {})});
    wiring_.items.push_back(std::move(item));
  }

  void add_nvlinks() {
    if (!has_nvlinks()) return;
    const int links = figures_.nvlinks, gpus = asked_.gpus;
    if (asked_.links == GpuLinks::nvswitch) return add(range("gpu", 0, gpus), "nvswitch", figures_.nvlink, links);
    const bool mesh = asked_.links == GpuLinks::nvlink_mesh;
    const int each = mesh ? links / (gpus - 1) : links;
    if (each < 1) {
      throw UsageError(
          fmt::format("--links nvlink-mesh: {} links of a GPU do not reach {} others; at most {} GPUs, or nvswitch",
                      links, gpus - 1, links + 1));
    }
    // In a mesh each with all that follow it, else in pairs.
    for (int a = 0; a + 1 < gpus; a += mesh ? 1 : 2) {
      add(fmt::format("gpu{}", a), range("gpu", a + 1, mesh ? gpus : a + 2), figures_.nvlink, each);
    }
  }

  /// GPUs on switches or processors, switches on processors, both evenly.
  void add_tree() {
    const auto add_evenly = [this](const char* below, int count, const char* above, int places) {
      for (int place = 0; place < places; ++place) {
        const int first = place * count / places, end = (place + 1) * count / places;
        if (end > first) add(range(below, first, end), fmt::format("{}{}", above, place), slot(), 1);
      }
    };
    if (switches() == 0) return add_evenly("gpu", asked_.gpus, "cpu", asked_.sockets);
    add_evenly("gpu", asked_.gpus, "plx", switches());
    add_evenly("plx", switches(), "cpu", asked_.sockets);
  }

  [[nodiscard]] std::string wiring_in_words() const {
    if (switches() > 0) return fmt::format("{} PCIe switches, {}", switches(), slot());
    return fmt::format("each GPU on a root port of its own, {}{}", slot(), has_nvlinks() ? "" : ", no NVLink");
  }

  /// Evenly on the switches, or on the sockets.
  void take_cards() {
    if (asked_.nics < 1 && asked_.nic_bandwidth.empty()) return take_out("network");
    if (asked_.nic_bandwidth.empty()) {
      throw UsageError("--nics: how fast are they? --nic-bandwidth '400 Gbit/s'");
    }
    const int cards = std::max(asked_.nics, 1), all = switches() > 0 ? switches() : asked_.sockets;
    set("network.nics_per_node", std::to_string(cards));
    document_.erase("network.nic");
    set("network.nic_bandwidth", asked_.nic_bandwidth);
    std::vector<std::string> places;
    for (int i = 0; i < std::min(all, cards); ++i) {
      places.push_back(fmt::format("{}{}", switches() > 0 ? "plx" : "cpu", i * all / std::min(all, cards)));
    }
    insert_before("network", "nics",
                  yaml_nodes({{"attached_to", yaml_list(places)}, {"link", yaml_scalar(slot(), {})}}));
  }

  OwnNode asked_;
  const std::string gpu_;
  const Gpu figures_;
  YamlNode document_, wiring_;
  std::string from_;
};

}  // namespace

std::string own_node(const OwnNode& asked) {
  if (asked.like.empty()) return commented_node(OwnNodeMaker(asked).make());
  const OwnNode alone{.name = asked.name, .like = asked.like};
  if (asked != alone) {
    throw UsageError("--like writes that machine's file: change it there; --gpu puts a machine of its own together");
  }
  YamlNode document = catalogue_node(asked.like);
  if (!asked.name.empty()) {
    apply_override(document, {"name", flow_text(yaml_scalar(asked.name, {})), {"hardware init", 0, 0}});
  }
  return commented_node(document);
}

}  // namespace foretrain
