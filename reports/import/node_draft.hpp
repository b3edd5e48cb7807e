// A machine that another tool describes, as a node file: what is told is taken from it, the rest from the machine of
// the catalogue that is most like it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/import/draft.hpp"

namespace foretrain {

/// A link between two parts, by their names in `wiring` ("gpu0", "plx1", "cpu0", "nvswitch").
struct ToldLink {
  std::string a, b, type;
  int count = 1;
  SourcePosition where;
  std::string comment;
};

struct ToldNode {
  int gpus = 0, sockets = 0;
  std::string gpu;        ///< the catalogue's name
  std::string gpu_why;    ///< how it is known
  std::string hierarchy;  ///< of the processors, of scenarios/hardware/processors; empty: not told
  SourcePosition hierarchy_where;
  std::vector<ToldLink> links;
  bool nvlinks_told = true;              ///< else they are those of the machine that is most like it
  std::vector<std::string> card_places;  ///< the part that each network card hangs on
  std::string card_link;                 ///< its slot
  std::optional<double> card_gigabits;
  std::optional<bool> gpu_direct;
  SourcePosition where;  ///< of what describes the GPUs
};

/// The catalogue's GPU of a PCI device of NVIDIA, "0x2330"; nothing for those that this program does not know.
std::optional<std::string> gpu_of_pci_device(std::string_view device);
/// The catalogue's first GPU of a compute capability ("sm", 90 for 9.0), of those with NVLink or of those without.
/// Nothing where there is none.
std::optional<std::string> gpu_of_capability(int sm, bool nvlink);

/// The machine of the catalogue that has most in common: GPU, their number, network cards, sockets. Of equals a
/// vendor's own rather than a cloud's.
const YamlNode& nearest_node(const ToldNode& told, const std::string& gpu);
/// How sockets of a machine are joined: the kind of link and its count; of one socket, as those of its maker are.
ToldLink socket_link(const YamlNode& machine);
/// The text of a key of a file; empty where it has none.
std::string text_at(const YamlNode& document, std::string_view key);

/// "nvlink4": what links GPUs of a compute capability; "pcie5-x16": what they are plugged into.
std::string nvlink_of(int sm);
std::string slot_of(int sm);
/// The compute capability of a GPU of the catalogue, 90 for 9.0.
int capability_of(const std::string& gpu);

/// The node as a file, read back by the hardware reader. Throws ScenarioError where it cannot be built.
std::string finished_node(Draft& draft, ToldNode told, const std::string& title);

}  // namespace foretrain
