// The hardware of a machine as NCCL found it (NCCL_TOPO_DUMP_FILE; nccl/src/graph/xml.cc and topo.cc): processors, PCIe
// switches, GPUs with their NVLinks, network cards.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "model/base/text.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/node_draft.hpp"

namespace foretrain {

namespace {

class TopologyReader {
 public:
  TopologyReader(const ImportInput& input, const Draft& draft) : input_(input), draft_(draft) {
    const pugi::xml_parse_result parsed = document_.load_buffer(input.text.data(), input.text.size());
    if (!parsed) {
      const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0));
      throw ScenarioError(position_in(input.text, offset, input.file), "", parsed.description(),
                          "XML that NCCL wrote: <system version=\"1\"> …");
    }
    root_ = document_.child("system");
    if (!root_) throw ScenarioError({input.file, 0, 0}, "system", "this element is missing", "NCCL's topology");
  }

  /// Once.
  ToldNode read() {
    number_gpus();
    for (const pugi::xml_node cpu : root_.children("cpu")) {
      const std::string name = fmt::format("cpu{}", told_.sockets++);
      if (told_.sockets > most_sockets) fail_at(cpu, "cpu", "more than 16 processors", "a single machine");
      walk(cpu, name, 0);
    }
    if (told_.sockets == 0) fail_at(root_, "cpu", "no processor", "at least one <cpu>");
    keep_fastest_cards();
    return std::move(told_);
  }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  static constexpr int most_sockets = 16, most_gpus = 256, deepest = 32;

  struct Card {
    std::string place, link;
    double gigabits = 0.0;
    bool direct = false;
  };

  [[noreturn]] void fail_at(pugi::xml_node node, const std::string& key, std::string got, std::string expected) const {
    throw ScenarioError(where(node), key, std::move(got), std::move(expected));
  }

  [[nodiscard]] SourcePosition where(pugi::xml_node node) const {
    return position_in(input_.text, static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0)),
                       input_.file);
  }

  /// In the order of the file.
  void number_gpus() {
    for (const pugi::xpath_node& found : root_.select_nodes("//pci[gpu]")) {
      const pugi::xml_node pci = found.node();
      const std::string bus = pci.attribute("busid").as_string();
      if (!gpu_numbers_.emplace(bus, told_.gpus++).second) fail_at(pci, "busid", "a second " + bus, "its own");
      if (told_.gpus > most_gpus) fail_at(root_, "gpu", "more than 256 GPUs", "a single machine");
      if (told_.gpus == 1) name_gpu(pci);
    }
    if (told_.gpus == 0) {
      fail_at(root_, "gpu", "no GPU",
              "at least one <gpu> in a <pci>, as NCCL_TOPO_DUMP_FILE gets it; what a cloud puts into NCCL_TOPO_FILE "
              "has none");
    }
    figures_ = gpu_named(draft_.scalar("gpu", told_.gpu));
    if (figures_->slot.empty()) figures_->slot = "pcie4-x16";
  }

  /// By the number of its PCI device, unless the user says which it is.
  void name_gpu(pugi::xml_node pci) {
    told_.where = where(pci.child("gpu"));
    const std::string device = pci.attribute("device").as_string();
    if (const auto known = gpu_of_pci_device(device)) {
      told_.gpu = *known;
      told_.gpu_why = "PCI device " + device;
    } else if (draft_.scalar("gpu").empty()) {
      fail_at(pci.child("gpu"), "gpu", fmt::format("PCI device \"{}\" is no GPU that is known", device),
              "--set gpu=NAME of `foretrain hardware list`");
    }
  }

  void walk(pugi::xml_node parent, const std::string& part, int depth) {
    if (depth > deepest) fail_at(parent, "pci", "PCIe switches below more than 32 others", "a single machine");
    for (const pugi::xml_node child : parent.children()) {
      const std::string_view kind = child.name();
      if (kind == "nic") add_cards(child, part, "");
      if (kind != "pci") continue;
      if (const pugi::xml_node gpu = child.child("gpu")) {
        add_gpu(child, gpu, part);
      } else if (const pugi::xml_node nic = child.child("nic")) {
        add_cards(nic, part, slot(child));
      } else if (!child.select_nodes(".//gpu | .//nic").empty()) {
        const std::string name = fmt::format("plx{}", switches_++);
        told_.links.push_back({name, part, slot(child), 1, where(child), child.attribute("busid").as_string()});
        walk(child, name, depth + 1);
      }
    }
  }

  void add_gpu(pugi::xml_node pci, pugi::xml_node gpu, const std::string& part) {
    const std::string bus = pci.attribute("busid").as_string();
    const int number = gpu_numbers_.at(bus);
    const std::string name = fmt::format("gpu{}", number);
    std::map<int, int> peers;  // NVLinks to each
    int switched = 0;
    for (const pugi::xml_node link : gpu.children()) {
      const std::string_view kind = link.name();
      if (kind != "nvlink" && kind != "xgmi") continue;
      const int count = link.attribute("count").as_int(1);
      if (count < 1 || count > 1024) fail_at(link, "count", fmt::format("{} links", count), "1 to 1024");
      const auto peer = gpu_numbers_.find(link.attribute("target").as_string());
      const std::string_view other_end = link.attribute("tclass").as_string();
      if (peer != gpu_numbers_.end()) {
        peers[peer->second] += count;
      } else if (other_end.starts_with("0x0680")) {
        switched += count;
      } else {
        notes_.push_back(fmt::format("{}: a link of {} to {}, which is no part of the file, is left out", name, kind,
                                     link.attribute("target").as_string()));
      }
    }
    const std::string type = figures_->nvlink;
    if (type.empty() && (switched > 0 || !peers.empty())) {
      fail_at(gpu, "nvlink", fmt::format("{} has no such links", figures_->name), "--set gpu=NAME of one that has");
    }
    if (switched > 0) told_.links.push_back({name, "nvswitch", type, std::min(switched, 1024), where(gpu), ""});
    for (const auto& [peer, count] : peers) {
      if (peer <= number && peer_links_.contains({peer, number})) continue;  // stated at its other end, too
      if (peer == number) continue;
      peer_links_.insert({number, peer});
      told_.links.push_back({name, fmt::format("gpu{}", peer), type, std::min(count, 1024), where(gpu), ""});
    }
    told_.links.push_back({name, part, slot(pci), 1, where(pci), bus});
  }

  void add_cards(pugi::xml_node nic, const std::string& part, const std::string& slot) {
    for (const pugi::xml_node net : nic.children("net")) {
      const double speed = net.attribute("speed").as_double(0.0);
      if (!(speed >= 1.0 && speed <= 1e8)) continue;  // megabits a second; virtual devices have none
      cards_.push_back({part, slot, speed * 1e-3, net.attribute("gdr").as_int(0) == 1});
    }
  }

  /// Those that carry collectives; others are for the machine's own traffic.
  void keep_fastest_cards() {
    double fastest = 0.0;
    for (const Card& card : cards_) fastest = std::max(fastest, card.gigabits);
    int slower = 0;
    for (const Card& card : cards_) {
      if (card.gigabits < fastest) {
        ++slower;
        continue;
      }
      if (told_.card_places.size() >= 1024) break;
      told_.card_places.push_back(card.place);
      told_.card_link = card.link.empty() ? figures_->slot : card.link;
      told_.card_gigabits = card.gigabits;
      told_.gpu_direct = card.direct;
    }
    if (slower > 0) notes_.push_back(fmt::format("{} slower network cards are left out", slower));
    drop_empty_switches();
  }

  /// On which nothing hangs that is kept. The links of a switch's parts stand behind its own.
  void drop_empty_switches() {
    for (std::size_t i = told_.links.size(); i-- > 0;) {
      const std::string& name = told_.links[i].a;
      const bool used = std::ranges::find(told_.links, name, &ToldLink::b) != told_.links.end() ||
                        std::ranges::find(told_.card_places, name) != told_.card_places.end();
      if (name.starts_with("plx") && !used) told_.links.erase(told_.links.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// "16.0 GT/s PCIe" over 16 lanes: pcie4-x16. Virtual machines hide it; then the GPU's own is assumed.
  [[nodiscard]] std::string slot(pugi::xml_node pci) const {
    const double rate = pci.attribute("link_speed").as_double(0.0);
    const int width = pci.attribute("link_width").as_int(0);
    if (!(rate > 0.0) || width <= 0) return figures_->slot;
    const int generation = rate > 33.0 ? 6 : rate > 17.0 ? 5 : rate > 9.0 ? 4 : 3;
    const int lanes = width >= 16 ? 16 : width >= 8 ? 8 : width >= 4 || generation == 6 ? 4 : 1;
    const std::string stated = fmt::format("pcie{}-x{}", generation, lanes);
    return pci.child("gpu") ? narrower_slot(figures_->slot, stated) : stated;
  }

  const ImportInput& input_;
  const Draft& draft_;
  pugi::xml_document document_;
  pugi::xml_node root_;
  ToldNode told_;
  std::optional<Gpu> figures_;  ///< of the GPU, also where the user says which
  int switches_ = 0;
  std::map<std::string, int> gpu_numbers_;  ///< by PCI bus
  std::set<std::pair<int, int>> peer_links_;
  std::vector<Card> cards_;
  std::vector<std::string> notes_;
};

}  // namespace

std::string import_nccl_topology(const ImportInput& input) {
  require_config_text(input);
  Draft draft(input);
  TopologyReader reader(input, draft);
  ToldNode told = reader.read();
  for (const std::string& note : reader.notes()) draft.note(note);
  return finished_node(draft, std::move(told), "nccl-topology");
}

}  // namespace foretrain
