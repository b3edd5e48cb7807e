// A machine that another tool describes, as a node file. Its values are taken, the rest from the machine of
// the catalogue that is most like it among those of its GPU, and named under `assumed`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hardware/gpu.hpp"
#include "reports/import/draft.hpp"

namespace foretrain {

/// A link between two parts, by their names in `wiring` ("gpu0", "plx1", "cpu0", "nvswitch").
struct DescribedLink {
  std::string a, b, type;
  int count = 1;
  SourcePosition where;
  std::string comment;
};

struct DescribedNode {
  int gpus = 0, sockets = 0;
  std::string gpu;            ///< the catalogue's name
  std::string gpu_why;        ///< its source
  bool gpu_assumed = false;   ///< nothing names it
  bool gpu_by_class = false;  ///< a GPU of its generation on a board: which one, the machine that is most like it tells
  std::string hierarchy;      ///< of the processors, of scenarios/hardware/processors; empty: not described
  SourcePosition hierarchy_where;
  std::vector<DescribedLink> links;
  bool nvlinks_known = true;             ///< else they are those of the machine that is most like it
  std::vector<std::string> card_places;  ///< the part that each NIC hangs on
  std::string card_link;                 ///< its slot
  std::string medium;                    ///< of the cards: infiniband, ethernet; empty: not described
  std::optional<double> card_gigabits;
  std::optional<bool> gpu_direct;
  SourcePosition where;  ///< of what describes the GPUs
};

/// The catalogue's GPU of a PCI device of NVIDIA, "0x2330"; nothing for those that this program does not know.
std::optional<std::string> gpu_of_pci_device(std::string_view device);
/// The catalogue's GPU that a driver calls "NVIDIA GeForce RTX 4090"; nothing where it has none.
std::optional<std::string> gpu_of_name(std::string_view name);
/// Names of the catalogue's GPUs of a compute capability ("sm", 90 for 9.0), the likeliest first: on a board with
/// NVLink, or cards.
std::vector<std::string> gpus_of_capability(int sm, bool nvlink);
/// A GPU of the catalogue, or of a file.
Gpu gpu_named(const std::string& name);

/// A machine of the catalogue, its presets resolved.
YamlNode catalogue_node(const std::string& name);
/// The machine of the catalogue that has most in common with one of this GPU: number of GPUs, NICs, sockets.
/// Of equals a vendor's own rather than a cloud's. A plain server where no machine has the GPU.
YamlNode nearest_node(const DescribedNode& described, const std::string& gpu);
/// A server without PCIe switches, of the PCIe that the GPU has.
YamlNode plain_node(const Gpu& gpu);
/// Links between a machine's sockets: their type and count; of one socket, as those of its maker are.
DescribedLink socket_link(const YamlNode& machine);
/// The text of a key of a file; empty where it has none.
std::string text_at(const YamlNode& document, std::string_view key);
/// The one of two slots that carries less; one that is no slot of PCIe counts for nothing.
std::string narrower_slot(const std::string& a, const std::string& b);

/// The node as a file, read back by the hardware reader. Throws ScenarioError where it cannot be built.
std::string finished_node(Draft& draft, DescribedNode described, std::string_view importer);

}  // namespace foretrain
