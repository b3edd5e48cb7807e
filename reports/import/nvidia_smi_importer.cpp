// The matrix that `nvidia-smi topo -m` prints: how any two of a machine's GPUs and NICs are connected.
#include <fmt/format.h>

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <tuple>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/node_draft.hpp"

namespace foretrain {

namespace {

/// From near to far, in the words of its legend. nvlink: the matrix does not tell how near they are on PCIe.
enum class Nearness { itself, pix, pxb, phb, node, sys, nvlink };

struct Relation {
  Nearness nearness = Nearness::sys;
  int nvlinks = 0;
};

struct Matrix {
  std::vector<std::string> names;  ///< "GPU0", "NIC0", "mlx5_0"
  int gpus = 0;                    ///< the first so many
  std::vector<std::vector<Relation>> relations;
  std::vector<std::string> numa;  ///< of each GPU; empty where it is not described
  std::vector<SourcePosition> where;
};

std::optional<Relation> relation_of(const std::string& word) {
  static const std::map<std::string, Nearness, std::less<>> words = {{"X", Nearness::itself},  {"PIX", Nearness::pix},
                                                                     {"PXB", Nearness::pxb},   {"PHB", Nearness::phb},
                                                                     {"NODE", Nearness::node}, {"SYS", Nearness::sys}};
  if (const auto found = words.find(word); found != words.end()) return Relation{found->second, 0};
  const auto links = number_behind(word, "NV");
  if (links && *links >= 1 && *links <= 1024) return Relation{Nearness::nvlink, *links};
  return std::nullopt;
}

bool is_header(const std::vector<std::string>& words) {
  return words.size() >= 2 && words[0] == "GPU0" && !relation_of(words[1]);
}

/// A machine of one GPU has a matrix of one: "GPU0 CPU Affinity …".
Matrix read_matrix(const ImportInput& input) {
  Matrix matrix;
  int number = 0;
  constexpr std::size_t most_parts = 512;
  for (const std::string& line : split(input.text, '\n')) {
    ++number;
    const std::vector<std::string> words = split_words(line);
    const SourcePosition where{input.file, number, 1};
    if (words.empty()) continue;
    if (matrix.names.empty()) {
      if (!is_header(words)) continue;
      for (const std::string& word : words) {
        if (word == "CPU" || word == "NUMA" || matrix.names.size() > most_parts) break;
        if (word.starts_with("GPU")) ++matrix.gpus;
        matrix.names.push_back(word);
      }
      continue;
    }
    const std::size_t row = matrix.relations.size();
    if (row == matrix.names.size()) break;
    if (words[0] != matrix.names[row]) {
      throw ScenarioError(where, matrix.names[row], fmt::format("a row of \"{}\"", words[0]), "this one's row");
    }
    std::vector<Relation> relations;
    for (std::size_t i = 1; i <= matrix.names.size(); ++i) {
      const auto relation = i < words.size() ? relation_of(words[i]) : std::nullopt;
      if (!relation || (relation->nearness == Nearness::itself) != (i == row + 1)) {
        throw ScenarioError(where, words[0], fmt::format("column {} says \"{}\"", i, i < words.size() ? words[i] : ""),
                            "X for itself, NV and a number, PIX, PXB, PHB, NODE or SYS for others");
      }
      relations.push_back(*relation);
    }
    matrix.relations.push_back(std::move(relations));
    matrix.where.push_back(where);
    const bool described = words.size() > matrix.names.size() + 2;
    matrix.numa.push_back(described ? words[matrix.names.size() + 2] : std::string());
  }
  if (matrix.gpus == 0 || matrix.relations.size() != matrix.names.size()) {
    throw ScenarioError({input.file, number, 1}, "", "no complete matrix", "what `nvidia-smi topo -m` prints");
  }
  return matrix;
}

using Groups = boost::disjoint_sets_with_storage<>;  // parts that hang together

/// The catalogue's GPUs with so many NVLinks, the likeliest first: cards in pairs have all of theirs in a bridge; of a
/// board some may lead to GPUs that the matrix does not show. P100 is the oldest, and seldom met.
std::vector<std::string> gpus_with_links(int links, bool bridged) {
  std::vector<std::tuple<bool, int, std::string, std::string>> found;
  for (const std::string& name : catalogue_names(list_hardware(), "gpu")) {
    const Gpu gpu = gpu_named(name);
    const bool superchip = name.starts_with("g"), amd = !gpu.nvlink.starts_with("nvlink");
    const bool enough = bridged ? gpu.nvlinks == links : gpu.nvlinks >= links;
    if (superchip || amd || gpu.bridged != bridged || !enough) continue;
    found.emplace_back(gpu.nvlink == "nvlink1", gpu.nvlinks - links, gpu.nvlink, name);
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (const auto& one : found) names.push_back(std::get<3>(one));
  return names;
}

/// "GPU 0: NVIDIA GeForce RTX 4090 (UUID: …)" of `nvidia-smi -L` before the matrix.
std::string name_in(const std::string& text) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("GPU 0: ")) continue;
    return line.substr(7, line.find(" (") == std::string::npos ? std::string::npos : line.find(" (") - 7);
  }
  return "";
}

class MatrixMachine {
 public:
  explicit MatrixMachine(Matrix matrix) : matrix_(std::move(matrix)), count_(matrix_.names.size()) {}

  /// `name`: what a driver calls the GPUs; empty where the file does not tell.
  DescribedNode node(const Draft& draft, const std::string& name) {
    told_.gpus = matrix_.gpus;
    told_.where = matrix_.where.front();
    int most = 0, most_peers = 0, links = 0;  // to one GPU; linked GPUs of one; NVLinks of one
    for (int a = 0; a < matrix_.gpus; ++a) {
      int peers = 0, of_one = 0;
      for (int b = 0; b < matrix_.gpus; ++b) {
        if (a == b) continue;
        most = std::max(most, relation(a, b).nvlinks);
        of_one += relation(a, b).nvlinks;
        peers += relation(a, b).nvlinks > 0 ? 1 : 0;
      }
      most_peers = std::max(most_peers, peers);
      links = std::max(links, of_one);
    }
    constexpr int most_links = 18;  // that a GPU has: more to all others are the same ones, through switches
    const bool switched = most_peers == matrix_.gpus - 1 && matrix_.gpus > 2 && links > most_links;
    name_gpu(draft, name, switched ? most : links, most_peers == 1);
    const Gpu gpu = gpu_named(draft.scalar("gpu", told_.gpu));
    if (links > 0 && gpu.nvlink.empty()) {
      throw ScenarioError(told_.where, "gpu", fmt::format("NVLinks, which {} does not have", gpu.name),
                          "--set gpu=NAME of one that has, of `foretrain list`");
    }
    add_nvlinks(switched, most, gpu.nvlink);
    add_tree(gpu.slot.empty() ? "pcie4-x16" : gpu.slot);
    return std::move(told_);
  }

 private:
  /// By its name, or by its NVLinks: cards in pairs have bridges.
  void name_gpu(const Draft& draft, const std::string& name, int links, bool pairs) {
    if (const auto known = gpu_of_name(name)) {
      told_.gpu = *known;
      told_.gpu_why = "its driver's name, " + name;
      return;
    }
    const std::vector<std::string> likely = links > 0 ? gpus_with_links(links, pairs) : std::vector<std::string>();
    if (likely.empty() && draft.scalar("gpu").empty()) {
      throw ScenarioError(
          told_.where, "gpu",
          links > 0 ? fmt::format("no GPU is known by its {} NVLinks", links) : "the GPU model is unknown",
          "--set gpu=NAME of `foretrain list`, or what `nvidia-smi -L` prints before the matrix");
    }
    if (likely.empty()) return;
    told_.gpu = likely.front();
    told_.gpu_why = fmt::format("assumed by its {} NVLinks{}, nothing names it; --set gpu=NAME, one of {}", links,
                                pairs ? " to one other" : "", fmt::join(likely, ", "));
    told_.gpu_assumed = true;
  }

  [[nodiscard]] const Relation& relation(int a, int b) const {
    return matrix_.relations[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }

  void add_nvlinks(bool switched, int most, const std::string& type) {
    for (int a = 0; a < matrix_.gpus; ++a) {
      const SourcePosition& where = matrix_.where[static_cast<std::size_t>(a)];
      if (switched) told_.links.push_back({fmt::format("gpu{}", a), "nvswitch", type, most, where, ""});
      for (int b = a + 1; b < matrix_.gpus && !switched; ++b) {
        const int links = relation(a, b).nvlinks;
        if (links == 0) continue;
        told_.links.push_back({fmt::format("gpu{}", a), fmt::format("gpu{}", b), type, links, where, ""});
      }
    }
  }

  /// Whether a card is on the same socket as one.
  [[nodiscard]] bool is_near_gpu(std::size_t card) const {
    const auto& row = matrix_.relations[card];
    return std::any_of(row.begin(), row.begin() + matrix_.gpus,
                       [](const Relation& to) { return to.nearness <= Nearness::node; });
  }

  [[nodiscard]] std::size_t members(Groups& groups, std::size_t part) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < count_; ++i) count += groups.find_set(i) == groups.find_set(part) ? 1 : 0;
    return count;
  }

  Groups joined(Nearness farthest) {
    Groups groups(count_);
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = 0; b < count_; ++b) {
        if (matrix_.relations[a][b].nearness <= farthest) groups.union_set(a, b);
      }
    }
    return groups;
  }

  /// One switch for what is a single bridge apart, one above those that are several bridges apart, a socket for what
  /// shares a NUMA node or a host bridge.
  void add_tree(const std::string& slot) {
    Groups near = joined(Nearness::pix), far = joined(Nearness::pxb), sockets = joined(Nearness::node);
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool described = !matrix_.numa[a].empty() && matrix_.numa[a] != "N/A";
        if (described && matrix_.numa[a] == matrix_.numa[b]) sockets.union_set(a, b);
      }
    }
    std::map<std::size_t, std::string> socket_names, near_names, far_names;
    bool some_near = false;
    for (std::size_t i = static_cast<std::size_t>(matrix_.gpus); i < count_; ++i)
      some_near = some_near || is_near_gpu(i);
    constexpr std::size_t most_sockets = 16;
    int switches = 0;
    const auto link_up = [&](const std::string& part, const std::string& above, std::size_t i) {
      told_.links.push_back({part, above, slot, 1, matrix_.where[i], ""});
    };
    for (std::size_t i = 0; i < count_; ++i) {
      if (static_cast<int>(i) >= matrix_.gpus && !is_near_gpu(i)) {
        // If no NIC is near a GPU, all are on the first socket; else these are not for collectives.
        if (!some_near) told_.card_places.emplace_back("cpu0");
        continue;
      }
      auto& socket = socket_names[sockets.find_set(i)];
      if (socket.empty()) socket = fmt::format("cpu{}", socket_names.size() - 1);
      if (socket_names.size() > most_sockets) {
        throw ScenarioError(matrix_.where[i], matrix_.names[i], "more than 16 sockets", "a single machine");
      }
      std::string above = socket;
      if (members(far, i) > members(near, i)) {
        auto& name = far_names[far.find_set(i)];
        if (name.empty()) link_up(name = fmt::format("plx{}", switches++), above, i);
        above = name;
      }
      if (members(near, i) > 1) {
        auto& name = near_names[near.find_set(i)];
        if (name.empty()) link_up(name = fmt::format("plx{}", switches++), above, i);
        above = name;
      }
      if (static_cast<int>(i) < matrix_.gpus) {
        link_up(fmt::format("gpu{}", i), above, i);
      } else {
        told_.card_places.push_back(above);
      }
    }
    told_.sockets = static_cast<int>(socket_names.size());
    told_.card_link = slot;
  }

  Matrix matrix_;
  std::size_t count_;
  DescribedNode told_;
};

}  // namespace

std::string import_nvidia_smi(const ImportInput& input) {
  ImportInput plain = input;
  plain.text = without_colours(input.text);
  require_config_text(plain);
  Draft draft(input);
  DescribedNode described = MatrixMachine(read_matrix(plain)).node(draft, name_in(plain.text));
  return finished_node(draft, std::move(described), "nvidia-smi");
}

}  // namespace foretrain
