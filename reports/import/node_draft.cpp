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

const YamlNode& catalogue_document(const CatalogueEntry& entry) { return cached_yaml_file(entry.file.string()); }

}  // namespace

std::string text_at(const YamlNode& document, std::string_view key) {
  const YamlNode* node = document.at(key);
  return node != nullptr && node->is_scalar() ? node->scalar : std::string();
}

const YamlNode& nearest_node(const ToldNode& told, const std::string& gpu) {
  const YamlNode* best = nullptr;
  int most = -1;
  const std::string rate = told.card_gigabits ? fmt::format("{:.10g} Gbit/s", *told.card_gigabits) : "";
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.kind != "node") continue;
    const YamlNode& document = catalogue_document(entry);
    if (document.at("cpu.name") == nullptr || document.at("network.latency") == nullptr) continue;
    int score = 0;
    if (text_at(document, "gpu") == gpu) score += 16;
    if (text_at(document, "gpus") == std::to_string(told.gpus)) score += 8;
    if ((text_at(document, "gpus") == "1") == (told.gpus == 1)) score += 4;
    if (text_at(document, "network.nics_per_node") == std::to_string(told.card_places.size())) score += 4;
    if (text_at(document, "network.nic_bandwidth") == rate) score += 2;
    if (text_at(document, "cpu.sockets") == std::to_string(told.sockets)) score += 2;
    if (entry.name.starts_with("dgx") || entry.name.starts_with("hgx")) score += 1;
    if (score <= most) continue;
    most = score;
    best = &document;
  }
  if (best == nullptr) throw UsageError("no node of the catalogue has a processor and a network");
  return *best;
}

ToldLink socket_link(const YamlNode& nearest) {
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

namespace {

/// gpu0, gpu1, … with the same link to the same part are one entry: gpu0..gpu7.
std::vector<ToldLink> in_ranges(const std::vector<ToldLink>& links) {
  std::vector<ToldLink> ranges;
  int last = -1;  // of the range at the end
  for (const ToldLink& link : links) {
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

/// NVLinks as another machine of as many GPUs has them.
std::vector<YamlNode> nvlinks_of(const YamlNode& machine, const ToldNode& told) {
  std::vector<YamlNode> links;
  const YamlNode* wiring = machine.at("wiring");
  if (wiring == nullptr || text_at(machine, "gpus") != std::to_string(told.gpus)) return links;
  std::ranges::copy_if(wiring->items, std::back_inserter(links),
                       [](const YamlNode& link) { return text_at(link, "link").starts_with("nvlink"); });
  return links;
}

void set_wiring(Draft& draft, const ToldNode& told, const YamlNode& nearest) {
  const auto add = [&](const ToldLink& link) {
    YamlNode entry =
        yaml_nodes({{"between", yaml_list({link.a, link.b}, link.where)}, {"link", yaml_scalar(link.type, link.where)}},
                   link.where);
    if (link.count > 1) {
      entry.entries.push_back({"count", link.where, yaml_scalar(std::to_string(link.count), link.where)});
    }
    draft.append("wiring", std::move(entry), told.where, link.comment);
  };
  std::vector<ToldLink> links = told.links;
  std::ranges::stable_partition(links, [](const ToldLink& link) { return !link.type.starts_with("pcie"); });
  if (!told.nvlinks_told) {
    for (YamlNode& link : nvlinks_of(nearest, told)) {
      draft.append("wiring", std::move(link), told.where, "assumed: as " + text_at(nearest, "name"));
    }
  }
  for (const ToldLink& link : in_ranges(links)) add(link);
  const ToldLink between = socket_link(nearest);
  for (int a = 0; a < told.sockets; ++a) {
    for (int b = a + 1; b < told.sockets; ++b) {
      add({fmt::format("cpu{}", a), fmt::format("cpu{}", b), between.type, between.count, told.where,
           "assumed: how sockets are joined is not told"});
    }
  }
}

void set_processor(Draft& draft, const ToldNode& told, const YamlNode& nearest) {
  const std::string from = text_at(nearest, "name");
  for (const YamlEntry& entry : nearest.find("cpu")->value.entries) {
    if (entry.key == "sockets" || (entry.key == "hierarchy" && !told.hierarchy.empty())) continue;
    draft.set("cpu." + entry.key, entry.value, draft.nowhere(), "assumed: as " + from);
  }
  draft.set("cpu.sockets", std::to_string(told.sockets), told.where, "");
  if (!told.hierarchy.empty()) draft.set("cpu.hierarchy", told.hierarchy, told.hierarchy_where, "family and model");
}

void set_network(Draft& draft, const ToldNode& told, const YamlNode& nearest) {
  const std::string from = text_at(nearest, "name");
  draft.set("network.nics_per_node", std::to_string(told.card_places.size()), told.where, "");
  if (told.card_places.empty()) return;
  draft.set("nics.attached_to", yaml_list(told.card_places, told.where), told.where, "");
  draft.set("nics.link", told.card_link, told.where, "");
  if (told.card_gigabits) {
    draft.set("network.nic_bandwidth", fmt::format("{:.10g} Gbit/s", *told.card_gigabits), told.where, "");
  }
  if (told.gpu_direct) draft.set("network.gpu_direct", *told.gpu_direct ? "true" : "false", told.where, "");
  for (const YamlEntry& entry : nearest.find("network")->value.entries) {
    const bool replaced = entry.key == "nic" && draft.has("network.nic_bandwidth");
    const bool bandwidth = entry.key == "nic_bandwidth" && draft.has("network.nic");
    if (!replaced && !bandwidth && entry.key != "fabric") {
      draft.set("network." + entry.key, entry.value, draft.nowhere(), "assumed: as " + from);
    }
  }
}

}  // namespace

std::optional<std::string> gpu_of_pci_device(std::string_view device) {
  const auto row = std::ranges::find(pci_rows, device, &PciRow::device);
  return row == std::end(pci_rows) ? std::nullopt : std::optional(std::string(row->gpu));
}

int capability_of(const std::string& gpu) {
  const YamlNode name = yaml_scalar(gpu, {gpu, 0, 0});
  return static_cast<int>(std::lround(read_gpu(Field(name, "gpu")).compute_capability * 10.0));
}

std::optional<std::string> gpu_of_capability(int sm, bool nvlink) {
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.kind != "gpu") continue;
    const YamlNode& document = catalogue_document(entry);
    const std::string capability = text_at(document, "compute_capability");
    if (entry.name.starts_with("g")) continue;  // GH200 and GB200, which have processors of their own
    const bool has_nvlink = entry.name.find("sxm") != std::string::npos;
    const bool same = capability == fmt::format("{}.{}", sm / 10, sm % 10);
    if (same && (has_nvlink == nvlink || (sm != 60 && sm < 70) || sm == 75)) return entry.name;
  }
  return std::nullopt;
}

std::string nvlink_of(int sm) {
  if (sm < 70) return "nvlink1";
  if (sm < 80) return "nvlink2";
  if (sm < 90) return "nvlink3";
  return sm < 100 ? "nvlink4" : "nvlink5";
}

std::string slot_of(int sm) {
  if (sm < 80) return "pcie3-x16";
  return sm < 90 ? "pcie4-x16" : "pcie5-x16";
}

std::string finished_node(Draft& draft, ToldNode told, const std::string& title) {
  const std::string gpu = draft.scalar("gpu", told.gpu);
  const YamlNode& nearest = nearest_node(told, gpu);
  draft.set("kind", "node", draft.nowhere(), "");
  draft.set("name", fmt::format("{}-x{}-imported", gpu, told.gpus), draft.nowhere(), "");
  draft.set("gpu", told.gpu, told.where, told.gpu_why);
  draft.set("gpus", std::to_string(told.gpus), told.where, "");
  set_processor(draft, told, nearest);
  if (text_at(nearest, "peer_to_peer") == "false") {
    draft.set("peer_to_peer", "false", draft.nowhere(), "assumed: as " + text_at(nearest, "name"));
  }
  set_wiring(draft, told, nearest);
  set_network(draft, told, nearest);
  const std::string source = draft.nowhere().file;
  draft.set("sources.default",
            yaml_entries({{"kind", std::string("assumption")},
                          {"text", fmt::format("as {}: {} does not tell", text_at(nearest, "name"), source)}}),
            draft.nowhere(), "");
  draft.set("sources.wiring", yaml_entries({{"kind", std::string("measurement")}, {"text", "told by " + source}}),
            draft.nowhere(), "");
  draft.note(fmt::format("Figures that it does not tell are those of {}, the catalogue's machine most like it.",
                         text_at(nearest, "name")));
  draft.note("Use it as cluster.node of a scenario: foretrain predict FILE --set cluster.node=THIS.yaml");
  draft.apply_overrides();
  read_node(Field(draft.document(), ""));
  return draft.text(title);
}

}  // namespace foretrain
