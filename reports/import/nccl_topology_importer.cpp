// The hardware of a machine as NCCL found it (NCCL_TOPO_DUMP_FILE; nccl/src/graph/xml.cc and topo.cc): processors, PCIe
// switches, GPUs with their NVLinks, NICs. Also what clouds give NCCL beforehand of their virtual machines
// (NCCL_TOPO_FILE), which has no more than the places of PCI devices, by their classes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
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
  DescribedNode read() {
    number_gpus();
    for (const pugi::xml_node cpu : root_.children("cpu")) {
      const std::string name = fmt::format("cpu{}", told_.sockets++);
      if (told_.sockets > most_sockets) fail_at(cpu, "cpu", "more than 16 processors", "a single machine");
      note_processor(cpu);
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

  /// GPUs have the numbers that NCCL gives them, where these are 0, 1, 2, …, else those of the file's order.
  void number_gpus() {
    std::vector<pugi::xml_node> all;
    for (const pugi::xpath_node& found : root_.select_nodes("//pci")) {
      if (is_gpu(found.node())) all.push_back(found.node());
    }
    if (all.empty()) {
      fail_at(root_, "gpu", "no GPU",
              "at least one <gpu> in a <pci>, as NCCL_TOPO_DUMP_FILE gets it, or a <pci> of class 0x0302");
    }
    if (all.size() > most_gpus) fail_at(root_, "gpu", "more than 256 GPUs", "a single machine");
    std::vector<int> numbers;
    for (const pugi::xml_node pci : all) numbers.push_back(pci.child("gpu").attribute("dev").as_int(-1));
    std::vector<int> sorted = numbers;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool regular = std::ranges::adjacent_find(sorted) == sorted.end() && sorted.front() == 0 &&
                           sorted.back() == static_cast<int>(all.size()) - 1;
      const int number = regular ? numbers[i] : static_cast<int>(i);
      const std::string bus = all[i].attribute("busid").as_string();
      if (!gpu_numbers_.emplace(bus, number).second) fail_at(all[i], "busid", "a second " + bus, "its own");
    }
    told_.gpus = static_cast<int>(all.size());
    name_gpu(all.front());
    figures_ = gpu_named(draft_.scalar("gpu", told_.gpu));
    if (figures_->slot.empty()) figures_->slot = "pcie4-x16";
  }

  /// A 3D controller of PCI's classes; NCCL's dumps say more of it.
  static bool is_gpu(pugi::xml_node pci) { return pci.child("gpu") || has_class(pci, "0x0302"); }
  /// An InfiniBand or Ethernet controller.
  static bool is_card(pugi::xml_node pci) {
    return pci.child("nic") || has_class(pci, "0x0207") || has_class(pci, "0x0200");
  }
  static bool has_class(pugi::xml_node pci, std::string_view beginning) {
    return std::string_view(pci.attribute("class").as_string()).starts_with(beginning);
  }
  /// Whether something below a switch is a part of the node.
  static bool leads_to_parts(pugi::xml_node pci) {
    for (const pugi::xpath_node& below : pci.select_nodes(".//pci")) {
      if (is_gpu(below.node()) || is_card(below.node())) return true;
    }
    return false;
  }

  /// By the number of its PCI device where the file has it, else by its compute capability, or by its slot alone.
  void name_gpu(pugi::xml_node pci) {
    const pugi::xml_node gpu = pci.child("gpu");
    told_.where = where(gpu ? gpu : pci);
    if (!gpu) return name_gpu_by_slot(pci);
    const bool amd = !gpu.attribute("gcn").empty();
    const std::string device = pci.attribute("device").as_string();
    if (const auto known = gpu_of_pci_device(device)) {
      told_.gpu = *known;
      told_.gpu_why = "PCI device " + device;
      return;
    }
    told_.gpu_assumed = true;
    if (amd) {
      told_.gpu = "mi300x-192gb";
      told_.gpu_why = fmt::format("assumed of gcn {}", gpu.attribute("gcn").as_string());
      return;
    }
    const int capability = gpu.attribute("sm").as_int(0);
    const std::vector<std::string> likely = gpus_of_capability(capability, static_cast<bool>(gpu.child("nvlink")));
    if (likely.empty()) {
      fail_at(gpu, "sm", fmt::format("no GPU of the catalogue has compute capability {}", capability),
              "one that `foretrain list` has; or add it to scenarios/hardware/gpus");
    }
    told_.gpu = likely.front();
    told_.gpu_why = fmt::format("assumed: sm {}; --set gpu=NAME, one of {}", capability, fmt::join(likely, ", "));
  }

  /// NVIDIA's of PCIe 3, 4 and 5 on boards with NVLink, as machines have for which clouds write such files.
  void name_gpu_by_slot(pugi::xml_node pci) {
    const std::string slot = stated_slot(pci);
    const int capability = slot.starts_with("pcie3") || slot.empty() ? 70 : slot.starts_with("pcie4") ? 80 : 90;
    told_.gpu = gpus_of_capability(capability, true).front();
    told_.gpu_why = "assumed by its slot, nothing names it; --set gpu=NAME of `foretrain list`";
    told_.gpu_assumed = told_.gpu_by_class = true;
    told_.nvlinks_known = false;
    notes_.emplace_back("The file leaves NVLinks and the speed of NICs to NCCL, which looks for itself.");
  }

  /// Known processor with this vendor, family and model of /proc/cpuinfo.
  static std::optional<KnownProcessors> processor_of(pugi::xml_node cpu) {
    const std::string key = fmt::format("{} {} {}", cpu.attribute("vendor").as_string(),
                                        cpu.attribute("familyid").as_int(), cpu.attribute("modelid").as_int());
    for (const KnownProcessors& known : known_processors()) {
      if (std::ranges::find(known.processors, key) != known.processors.end()) return known;
    }
    return std::nullopt;
  }
  static std::string slot_of_processor(pugi::xml_node cpu) {
    const auto known = processor_of(cpu);
    return known ? known->slot : "";
  }

  void note_processor(pugi::xml_node cpu) {
    const auto known = processor_of(cpu);
    if (!known) return;
    told_.hierarchy = known->hierarchy;
    told_.hierarchy_where = where(cpu);
  }

  void walk(pugi::xml_node parent, const std::string& part, int depth) {
    if (depth > deepest) fail_at(parent, "pci", "PCIe switches below more than 32 others", "a single machine");
    for (const pugi::xml_node child : parent.children()) {
      const std::string_view kind = child.name();
      if (kind == "nic") add_cards(child, part, "");
      if (kind != "pci") continue;
      if (is_gpu(child)) {
        add_gpu(child, child.child("gpu"), part);
      } else if (const pugi::xml_node nic = child.child("nic")) {
        add_cards(nic, part, slot(child));
      } else if (is_card(child) && !told_.nvlinks_known) {
        cards_.push_back({part, slot(child), 0.0, false});
        told_.medium = has_class(child, "0x0207") ? "infiniband" : "ethernet";
      } else if (leads_to_parts(child)) {
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

  /// Keeps NICs that carry collectives; others are for the machine's own traffic.
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
      if (card.gigabits == 0.0) continue;  // not described
      told_.card_gigabits = card.gigabits;
      told_.gpu_direct = card.direct;
    }
    if (slower > 0) notes_.push_back(fmt::format("slower NICs left out: {}", slower));
    drop_empty_switches();
  }

  /// On which nothing hangs that is kept. The links of a switch's parts stand behind its own.
  void drop_empty_switches() {
    for (std::size_t i = told_.links.size(); i-- > 0;) {
      const std::string& name = told_.links[i].a;
      const bool used = std::ranges::find(told_.links, name, &DescribedLink::b) != told_.links.end() ||
                        std::ranges::find(told_.card_places, name) != told_.card_places.end();
      if (name.starts_with("plx") && !used) told_.links.erase(told_.links.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// "16.0 GT/s PCIe" over 16 lanes: pcie4-x16. Virtual machines hide it; then the GPU's own is assumed.
  [[nodiscard]] std::string slot(pugi::xml_node pci) const {
    const std::string stated = stated_slot(pci);
    return stated.empty() ? figures_->slot : is_gpu(pci) ? narrower_slot(figures_->slot, stated) : stated;
  }
  /// Slot of a device, no faster than its processor's: virtual machines invent slots.
  static std::string stated_slot(pugi::xml_node pci) {
    const double rate = pci.attribute("link_speed").as_double(0.0);
    const int width = pci.attribute("link_width").as_int(0);
    if (!(rate > 0.0) || width <= 0) return "";
    const int generation = rate > 33.0 ? 6 : rate > 17.0 ? 5 : rate > 9.0 ? 4 : 3;
    const int lanes = width >= 16 ? 16 : width >= 8 ? 8 : width >= 4 || generation == 6 ? 4 : 1;
    const std::string stated = fmt::format("pcie{}-x{}", generation, lanes);
    const std::string most =
        std::string_view(pci.parent().name()) == "cpu" ? slot_of_processor(pci.parent()) : std::string();
    return most.empty() ? stated : narrower_slot(stated, most);
  }

  const ImportInput& input_;
  const Draft& draft_;
  pugi::xml_document document_;
  pugi::xml_node root_;
  DescribedNode told_;
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
  DescribedNode described = reader.read();
  for (const std::string& note : reader.notes()) draft.note(note);
  return finished_node(draft, std::move(described), "nccl-topology");
}

}  // namespace foretrain
