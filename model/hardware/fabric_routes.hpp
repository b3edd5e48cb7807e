// Routes through a fabric: computed from node and card, without tables of pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/base/number.hpp"
#include "model/hardware/route.hpp"

namespace foretrain {

/// The port of a NIC at the fabric.
struct FabricPort {
  int node = 0;
  int card = 0;
};

/// Without links a single switch: nothing blocks.
class FabricRoutes {
 public:
  explicit FabricRoutes(const Cluster& cluster) : switch_latency_(cluster.network.fabric.switch_latency) {}
  virtual ~FabricRoutes() = default;
  FabricRoutes(const FabricRoutes&) = delete;
  FabricRoutes& operator=(const FabricRoutes&) = delete;

  /// Links are numbered from zero here; Topology puts them behind those of the nodes.
  [[nodiscard]] int links() const { return static_cast<int>(bandwidths_.size()); }
  [[nodiscard]] BytesPerSecond bandwidth(LinkId link) const { return bandwidths_[at_index(link)]; }
  void set_bandwidth(LinkId link, BytesPerSecond value) { bandwidths_[at_index(link)] = value; }
  [[nodiscard]] virtual std::string link_name(LinkId /*link*/) const { return {}; }

  /// Appends `first` + the number of every link between two cards of different nodes. `connection`: of its two ends,
  /// for routes that differ from connection to connection.
  virtual void append(FabricPort /*from*/, FabricPort /*to*/, std::uint64_t /*connection*/, LinkId /*first*/,
                      std::vector<LinkId>& /*links*/) const {}
  /// Time that switches and distance add on that way.
  [[nodiscard]] virtual Seconds delay(FabricPort /*from*/, FabricPort /*to*/) const { return switch_latency_; }
  /// Rate limit of one connection, however wide the links are.
  [[nodiscard]] virtual BytesPerSecond most_rate(FabricPort /*from*/, FabricPort /*to*/) const {
    return BytesPerSecond::infinity();
  }
  /// Whether most_rate() is below a card's bandwidth for some pair.
  [[nodiscard]] virtual bool limits_connections() const { return false; }
  /// The share of the link that the fault concerns: 0 nothing, 1/8 one of its eight cables, 8 where the link is one of
  /// eight that the fault names together.
  [[nodiscard]] virtual double share_of(const Fault& fault, LinkId link) const {
    return fault.concerns(link_name(link)) ? 1.0 : 0.0;
  }
  /// Narrows the links that the faults of the fabric name. `efficiency`: of line rates.
  void apply(const std::vector<Fault>& faults, double efficiency);

 protected:
  /// Bandwidths have been narrowed: what carries nothing may be gone round.
  virtual void note_failed() {}
  void add_links(int count, BytesPerSecond bandwidth) {
    bandwidths_.insert(bandwidths_.end(), at_index(count), bandwidth);
  }

  Seconds switch_latency_;

 private:
  std::vector<BytesPerSecond> bandwidths_;
};

/// The cluster's fabric. All bandwidths are line rates times the network's efficiency. `cluster` has passed
/// check_network().
std::unique_ptr<FabricRoutes> make_fabric_routes(const Cluster& cluster, RouteDraw draw = {});
/// Whether chance chooses routes, so that draws of them differ.
bool draws_routes(const Cluster& cluster);

// Shared by the checks of all shapes.
/// More links than this are no machine, and their ids would overflow.
constexpr std::int64_t most_links = 200'000'000;
/// A problem of a key of the fabric.
HardwareProblem of_fabric(const char* key, std::string text, std::string expected);
bool carries(BytesPerSecond bandwidth);

}  // namespace foretrain
