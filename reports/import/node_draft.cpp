#include "reports/import/node_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"

namespace foretrain {

namespace {

struct PciRow {
  std::string_view device, gpu;
};
constexpr PciRow pci_rows[] = {
#define PCI_DEVICE(device, gpu) {device, gpu},
#include "reports/import/pci_devices.def"
};

/// "pcie4-x16" → 4 and 16; nothing for what is no slot.
std::optional<std::pair<int, int>> slot_numbers(const std::string& slot) {
  const std::size_t lanes = slot.find("-x");
  const auto generation = number_behind(slot.substr(0, lanes), "pcie");
  const auto width = lanes == std::string::npos ? std::nullopt : number_behind(slot.substr(lanes), "-x");
  return generation && width ? std::optional(std::pair(*generation, *width)) : std::nullopt;
}

/// A cloud's card says what it speaks; other machines may have either.
std::string medium_of(const YamlNode& machine) {
  const std::string card = text_at(machine, "network.nic");
  if (card.empty()) return "";
  return text_at(cached_yaml_file((data_directory() / "hardware" / "cards.yaml").string()),
                 "cards." + card + ".medium");
}

std::vector<std::string> name_words(std::string_view name) {
  std::string plain = to_lower(name);
  std::ranges::replace_if(
      plain, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, ' ');
  return split_words(plain);
}

/// gpu0, gpu1, … with the same link to the same part are one entry: gpu0..gpu7.
std::vector<DescribedLink> in_ranges(const std::vector<DescribedLink>& links) {
  std::vector<DescribedLink> ranges;
  int last = -1;  // of the range at the end
  for (const DescribedLink& link : links) {
    const auto number = number_behind(link.a, "gpu");
    const bool joins = !ranges.empty() && number && last >= 0 && *number == last + 1 && ranges.back().b == link.b &&
                       !link.b.starts_with("gpu") && ranges.back().type == link.type &&
                       ranges.back().count == link.count;
    if (joins) {
      ranges.back().a = fmt::format("{}..{}", ranges.back().a.substr(0, ranges.back().a.find("..")), link.a);
      ranges.back().comment.clear();
    } else {
      ranges.push_back(link);
    }
    last = number.value_or(-1);
  }
  return ranges;
}

/// NVLinks as another machine of the GPU has them, of as many GPUs.
std::vector<YamlNode> nvlinks_of(const YamlNode& machine, const DescribedNode& described) {
  std::vector<YamlNode> links;
  const YamlNode* wiring = machine.at("wiring");
  if (wiring == nullptr || text_at(machine, "gpus") != std::to_string(described.gpus)) return links;
  std::ranges::copy_if(wiring->items, std::back_inserter(links),
                       [](const YamlNode& link) { return text_at(link, "link").starts_with("nvlink"); });
  return links;
}

void set_wiring(Draft& draft, const DescribedNode& described, const YamlNode& nearest) {
  const auto add = [&](const DescribedLink& link) {
    YamlNode entry =
        yaml_nodes({{"between", yaml_list({link.a, link.b}, link.where)}, {"link", yaml_scalar(link.type, link.where)}},
                   link.where);
    if (link.count > 1) {
      entry.entries.push_back({"count", link.where, yaml_scalar(std::to_string(link.count), link.where)});
    }
    draft.append("wiring", std::move(entry), described.where, link.comment);
  };
  std::vector<DescribedLink> links = described.links;
  std::ranges::stable_partition(links, [](const DescribedLink& link) { return !link.type.starts_with("pcie"); });
  const std::string from = text_at(nearest, "name");
  std::vector<std::string> assumed;
  if (!described.nvlinks_known) {
    for (YamlNode& link : nvlinks_of(nearest, described)) {
      draft.append("wiring", std::move(link), described.where, "assumed: as " + from);
    }
    assumed.push_back("NVLinks");
  }
  if (described.sockets > 1) assumed.push_back("links between sockets");
  if (!assumed.empty()) draft.note_assumed("wiring", fmt::format("{} as {}", fmt::join(assumed, " and "), from));
  for (const DescribedLink& link : in_ranges(links)) add(link);
  const DescribedLink between = socket_link(nearest);
  for (int a = 0; a < described.sockets; ++a) {
    for (int b = a + 1; b < described.sockets; ++b) {
      add({fmt::format("cpu{}", a), fmt::format("cpu{}", b), between.type, between.count, described.where,
           "assumed: the file does not state socket links"});
    }
  }
}

void set_processor(Draft& draft, const DescribedNode& described, const YamlNode& nearest) {
  const std::string from = text_at(nearest, "name");
  for (const YamlEntry& entry : nearest.find("cpu")->value.entries) {
    if (entry.key == "sockets" || (entry.key == "hierarchy" && !described.hierarchy.empty())) continue;
    draft.set("cpu." + entry.key, entry.value, draft.nowhere(), "assumed: as " + from);
  }
  draft.note_assumed("cpu", "as " + from);
  draft.set("cpu.sockets", std::to_string(described.sockets), described.where, "");
  if (!described.hierarchy.empty())
    draft.set("cpu.hierarchy", described.hierarchy, described.hierarchy_where, "family and model");
}

void set_network(Draft& draft, const DescribedNode& described, const YamlNode& nearest) {
  const std::string from = text_at(nearest, "name");
  draft.set("network.nics_per_node", std::to_string(described.card_places.size()), described.where, "");
  if (described.card_places.empty()) return;
  draft.set("nics.attached_to", yaml_list(described.card_places, described.where), described.where, "");
  draft.set("nics.link", described.card_link, described.where, "");
  if (described.card_gigabits) {
    draft.set("network.nic_bandwidth", fmt::format("{:.10g} Gbit/s", *described.card_gigabits), described.where, "");
  }
  draft.note_assumed("network", "values missing in the file, as " + from);
  if (described.gpu_direct)
    draft.set("network.gpu_direct", *described.gpu_direct ? "true" : "false", described.where, "");
  for (const YamlEntry& entry : nearest.find("network")->value.entries) {
    const bool replaced = entry.key == "nic" && draft.has("network.nic_bandwidth");
    const bool bandwidth = entry.key == "nic_bandwidth" && draft.has("network.nic");
    if (!replaced && !bandwidth && entry.key != "fabric") {
      draft.set("network." + entry.key, entry.value, draft.nowhere(), "assumed: as " + from);
    }
  }
}

}  // namespace

std::string text_at(const YamlNode& document, std::string_view key) {
  const YamlNode* node = document.at(key);
  return node != nullptr && node->is_scalar() ? node->scalar : std::string();
}

YamlNode catalogue_node(const std::string& name) {
  return resolve_preset(Field(yaml_scalar(name, {"--like", 0, 0}), ""), Catalogue::node).node();
}

Gpu gpu_named(const std::string& name) { return read_gpu(Field(yaml_scalar(name, {"--gpu", 0, 0}), "gpu")); }

std::string narrower_slot(const std::string& a, const std::string& b) {
  const auto carries = [](const std::pair<int, int>& slot) { return std::ldexp(slot.second, slot.first); };
  const auto first = slot_numbers(a), second = slot_numbers(b);
  return !first || (second && carries(*second) < carries(*first)) ? b : a;
}

YamlNode plain_node(const Gpu& gpu) {
  const auto slot = slot_numbers(gpu.slot);
  return catalogue_node(slot && slot->first >= 5 ? "h100-pcie-x1" : "a100-pcie-x1");
}

YamlNode nearest_node(const DescribedNode& described, const std::string& gpu) {
  const Gpu figures = gpu_named(gpu);
  std::optional<YamlNode> best;
  int most = -1;
  const std::string rate = described.card_gigabits ? fmt::format("{:.10g} Gbit/s", *described.card_gigabits) : "";
  for (const std::string& name : catalogue_names(list_hardware(), "node")) {
    YamlNode document = catalogue_node(name);
    if (document.at("cpu.name") == nullptr || document.at("network.latency") == nullptr) continue;
    const std::string medium = medium_of(document), its_gpu = text_at(document, "gpu");
    if (!described.medium.empty() && !medium.empty() && medium != described.medium) continue;
    const bool same_class = described.gpu_by_class && its_gpu.find("sxm") != std::string::npos &&
                            gpu_named(its_gpu).compute_capability == figures.compute_capability;
    if (its_gpu != gpu && !same_class) continue;
    int score = 0;
    const int gpus = number_behind("n" + text_at(document, "gpus"), "n").value_or(0);
    score += gpus == described.gpus ? 16 : gpus > described.gpus ? 8 : 0;
    if ((text_at(document, "gpus") == "1") == (described.gpus == 1)) score += 4;
    const std::string cards = described.card_places.empty() ? "" : std::to_string(described.card_places.size());
    if (text_at(document, "network.nics_per_node") == cards) score += 4;
    if (!rate.empty() && text_at(document, "network.nic_bandwidth") == rate) score += 2;
    if (text_at(document, "cpu.sockets") == std::to_string(described.sockets)) score += 2;
    if (name.starts_with("dgx") || name.starts_with("hgx")) score += 1;
    if (score <= most) continue;
    most = score;
    best = std::move(document);
  }
  return best ? std::move(*best) : plain_node(figures);
}

DescribedLink socket_link(const YamlNode& nearest) {
  const YamlNode* wiring = nearest.at("wiring");
  for (const YamlNode& link : wiring != nullptr ? wiring->items : std::vector<YamlNode>()) {
    const YamlNode* ends = link.at("between");
    if (ends == nullptr || ends->items.size() != 2 || ends->items[0].scalar != "cpu0" ||
        ends->items[1].scalar != "cpu1") {
      continue;
    }
    const std::string count = text_at(link, "count");
    return {"", "", text_at(link, "link"), count.empty() ? 1 : std::stoi(count), {}, ""};
  }
  const bool amd = text_at(nearest, "cpu.name").find("AMD") != std::string::npos;
  return {"", "", amd ? "xgmi" : "upi", 2, {}, ""};
}

std::optional<std::string> gpu_of_pci_device(std::string_view device) {
  const auto row = std::ranges::find(pci_rows, device, &PciRow::device);
  return row == std::end(pci_rows) ? std::nullopt : std::optional(std::string(row->gpu));
}

std::vector<std::string> gpus_of_capability(int sm, bool nvlink) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : catalogue_names(list_hardware(), "gpu")) {
    const Gpu gpu = gpu_named(name);
    const bool superchip = name.starts_with("g");  // GH200 and GB200, which have processors of their own
    if (superchip || gpu.processor || gpu.amd()) continue;
    if (std::lround(gpu.compute_capability * 10.0) != sm) continue;
    const bool board = gpu.nvlinks > 0 && !gpu.bridged;
    ranked.emplace_back(board == nvlink ? 0 : 1, name);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<int, std::string>::first);
  std::vector<std::string> names;
  for (const auto& [rank, name] : ranked) {
    if (rank == ranked.front().first) names.push_back(name);
  }
  return names;
}

std::optional<std::string> gpu_of_name(std::string_view name) {
  const std::vector<std::string> described = name_words(name);
  const auto has = [&](std::string_view word) { return std::ranges::find(described, word) != described.end(); };
  std::optional<std::string> best;
  int most = 0;
  for (const std::string& known : catalogue_names(list_hardware(), "gpu")) {
    const std::vector<std::string> words = name_words(known);
    int score = 0;
    for (const std::string& word : words) {
      // Drivers leave form and memory out where one kind alone is sold.
      const bool may_lack = word.ends_with("gb") || word.starts_with("sxm");
      score += has(word) ? 4 : may_lack ? -1 : word == "pcie" ? -2 : -1000;
    }
    for (const char* kind : {"ti", "super", "laptop", "mobile", "pcie", "nvl"}) {  // that make another GPU of it
      if (has(kind) && std::ranges::find(words, kind) == words.end())
        score -= kind == std::string_view("pcie") ? 4 : 1000;
    }
    if (score <= most) continue;
    most = score;
    best = known;
  }
  return best;
}

std::string finished_node(Draft& draft, DescribedNode described, std::string_view importer) {
  const YamlNode nearest = nearest_node(described, draft.scalar("gpu", described.gpu));
  if (described.gpu_by_class && text_at(nearest, "gpu").find("sxm") != std::string::npos)
    described.gpu = text_at(nearest, "gpu");
  const std::string gpu = draft.scalar("gpu", described.gpu);
  draft.set("kind", "node", draft.nowhere(), "");
  draft.set("name", fmt::format("{}-x{}-imported", gpu, described.gpus), draft.nowhere(), "");
  draft.set("gpu", described.gpu, described.where, described.gpu_why);
  if (described.gpu_assumed) draft.note_assumed("gpu", described.gpu_why);
  draft.set("gpus", std::to_string(described.gpus), described.where, "");
  set_processor(draft, described, nearest);
  if (text_at(nearest, "peer_to_peer") == "false") {
    draft.assume("peer_to_peer", "false", "as " + text_at(nearest, "name"));
  }
  set_wiring(draft, described, nearest);
  set_network(draft, described, nearest);
  const std::string source = draft.nowhere().file;
  draft.set("sources.default",
            yaml_entries({{"kind", std::string("assumption")},
                          {"text", fmt::format("as {}: {} does not tell", text_at(nearest, "name"), source)}}),
            draft.nowhere(), "");
  draft.set("sources.wiring", yaml_entries({{"kind", std::string("measurement")}, {"text", "reported by " + source}}),
            draft.nowhere(), "");
  draft.note("Use it as cluster.node of a scenario: foretrain predict FILE --set cluster.node=THIS.yaml");
  draft.apply_overrides();
  read_node(Field(draft.document(), ""));
  return draft.text(importer);
}

}  // namespace foretrain
