#include "model/collectives/node_rings.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "model/hardware/ring_order.hpp"

namespace foretrain {

namespace {

using Matrix = std::vector<std::vector<double>>;  // [from][to]

/// The search tries all subsets of the ranks; larger groups of directly wired GPUs do not exist.
constexpr std::size_t largest_mesh = 10;

/// NCCL has 64 channels at most (MAXCHANNELS), one a ring: thinner ones are not searched for.
constexpr double most_rings = 64.0;

/// Bandwidth of the direct NVLinks between the ranks, in bytes per second; 0 where there is none.
Matrix direct_bandwidth(const Topology& topology, const std::vector<int>& ranks) {
  Matrix bandwidth(ranks.size(), std::vector<double>(ranks.size(), 0.0));
  std::vector<LinkId> links;
  for (std::size_t a = 0; a < ranks.size(); ++a) {
    for (std::size_t b = 0; b < ranks.size(); ++b) {
      links.clear();
      if (a != b) topology.append_route(ranks[a], ranks[b], links);
      if (links.size() == 1 && topology.link_kind(links.front()) == LinkKind::nvlink) {
        bandwidth[a][b] = topology.link_bandwidth(links.front()).value();
      }
    }
  }
  return bandwidth;
}

/// Lengths that make lanes in short supply dear; links with less than `unit` left do not exist.
Matrix lengths(const Matrix& left, double unit) {
  Matrix length = left;
  for (std::vector<double>& row : length) {
    for (double& entry : row) {
      entry = entry >= 0.999 * unit ? unit / entry : std::numeric_limits<double>::infinity();
    }
  }
  return length;
}

struct Ring {
  std::vector<int> order;
  double width;
};

double total_width(const std::vector<Ring>& rings) {
  return std::accumulate(rings.begin(), rings.end(), 0.0,
                         [](double sum, const Ring& ring) { return sum + ring.width; });
}

/// The width of rings: the narrowest link, but for links so thin that a rank's would make more rings than there may
/// be. Those, as broken ones are, have no part in rings of this width.
double ring_width(const Matrix& bandwidth) {
  double total = 0.0;
  for (const std::vector<double>& row : bandwidth) {
    total = std::max(total, std::accumulate(row.begin(), row.end(), 0.0));
  }
  double width = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& row : bandwidth) {
    for (const double entry : row) {
      if (entry > 0.0 && entry * most_rings >= total) width = std::min(width, entry);
    }
  }
  return width;
}

/// Takes one ring of width `unit` after the other, scarce lanes last, until no further one exists.
std::vector<Ring> pack_thin_rings(Matrix left, double unit) {
  std::vector<Ring> rings;
  for (std::vector<int> order; !(order = shortest_cycle(lengths(left, unit))).empty();) {
    for (std::size_t i = 0; i < order.size(); ++i) left[order[i]][order[(i + 1) % order.size()]] -= unit;
    rings.push_back({std::move(order), unit});
  }
  return rings;
}

/// Takes the widest ring at its full width, then the widest of what is left, and so on, as long as it adds something.
std::vector<Ring> pack_wide_rings(const Matrix& bandwidth) {
  std::vector<std::vector<BytesPerSecond>> left(bandwidth.size());
  for (std::size_t a = 0; a < bandwidth.size(); ++a) {
    for (const double entry : bandwidth[a]) left[a].emplace_back(entry);
  }
  std::vector<Ring> rings;
  for (std::vector<int> order; !(order = widest_cycle(left)).empty();) {
    BytesPerSecond width = BytesPerSecond::infinity();
    for (std::size_t i = 0; i < order.size(); ++i) {
      width = std::min(width, left[order[i]][order[(i + 1) % order.size()]]);
    }
    if (width.value() * most_rings < total_width(rings)) break;
    for (std::size_t i = 0; i < order.size(); ++i) left[order[i]][order[(i + 1) % order.size()]] -= width;
    rings.push_back({std::move(order), width.value()});
  }
  return rings;
}

/// The better of a few packings. Halves of the narrowest link's width fit a full mesh of equal links, full widths fit
/// meshes of single and double lanes.
std::vector<Ring> pack_rings(const Matrix& bandwidth) {
  std::vector<Ring> best = pack_wide_rings(bandwidth);
  const double width = ring_width(bandwidth);
  for (const double unit : {width, width / 2.0}) {
    std::vector<Ring> rings = pack_thin_rings(bandwidth, unit);
    if (total_width(rings) > 1.001 * total_width(best)) best = std::move(rings);
  }
  return best;
}

/// The Hamiltonian path of least total length: a cycle through one more vertex that is next to every other.
std::vector<int> shortest_path(const Matrix& length) {
  const std::size_t count = length.size();
  Matrix extended(count + 1, std::vector<double>(count + 1, 0.0));
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) extended[a + 1][b + 1] = length[a][b];
  }
  std::vector<int> cycle = shortest_cycle(extended);
  if (cycle.empty()) return {};
  cycle.erase(cycle.begin());
  for (int& vertex : cycle) --vertex;
  return cycle;
}

std::vector<int> to_ranks(const std::vector<int>& order, const std::vector<int>& ranks) {
  std::vector<int> result;
  result.reserve(order.size());
  for (const int index : order) result.push_back(ranks[index]);
  return result;
}

}  // namespace

std::vector<NodeRing> node_rings(const Topology& topology, const std::vector<int>& ranks) {
  if (ranks.size() == 1) return {{ranks, 1.0}};
  if (ranks.size() > 2 && ranks.size() <= largest_mesh) {
    const Matrix bandwidth = direct_bandwidth(topology, ranks);
    double narrowest = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& row : bandwidth) {
      for (const double entry : row) {
        if (entry > 0.0) narrowest = std::min(narrowest, entry);
      }
    }
    if (narrowest < std::numeric_limits<double>::infinity()) {
      const std::vector<Ring> rings = pack_rings(bandwidth);
      std::vector<NodeRing> result;
      result.reserve(rings.size());
      for (const Ring& ring : rings) result.push_back({to_ranks(ring.order, ranks), ring.width / total_width(rings)});
      if (!result.empty()) return result;
      const std::vector<int> path = shortest_path(lengths(bandwidth, narrowest));
      if (!path.empty()) return {{to_ranks(path, ranks), 1.0, true}};
    }
  }
  return {{topology.widest_ring(ranks), 1.0}};
}

}  // namespace foretrain
