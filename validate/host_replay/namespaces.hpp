// Hosts that are network namespaces of this machine, with one card each, on one switch or on leaves below a spine.
// Token buckets limit both directions of every card and cable (hosts.sh).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/number.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

/// Rate limit of one host's NIC, as the kernel counts it: Ethernet header, IP, TCP and payload of every packet.
struct HostRate {
  BytesPerSecond out;  ///< from the host to the switch
  BytesPerSecond in;   ///< from the switch to the host
};

/// Leaves of the switch: each so many hosts, which share a cable to the spine that joins all.
struct Uplinks {
  int hosts_per_leaf = 0;  ///< 0: all hosts on one switch
  BytesPerSecond rate;     ///< of a leaf's cable, each way
};

/// Host i's address in every lab: labs cannot see each other.
std::string host_address(int host);

/// Why hosts cannot be made here, "" when they can: not root, no `ip` or `tc`, no leave to create namespaces, or a
/// kernel without bridges or token buckets. Tries it out.
std::string why_no_namespaces();

std::string_view hosts_script();

/// Makes the namespaces, and takes them away again on every way out: destructor, exception, SIGINT and SIGTERM (as long
/// as the caller, while it waits, asks interrupted()). What dead processes left is removed first. Touches nothing that
/// it did not make: its names are foretrain-PID-NUMBER, its addresses lie inside its own namespaces.
class HostLab {
 public:
  /// Throws UsageError with what the commands said.
  explicit HostLab(const std::vector<HostRate>& hosts, const Uplinks& uplinks = {});
  ~HostLab();
  HostLab(const HostLab&) = delete;
  HostLab& operator=(const HostLab&) = delete;

  [[nodiscard]] int hosts() const { return static_cast<int>(names_.size()) - 1; }
  [[nodiscard]] const std::string& name(int host) const { return names_[at_index(host + 1)]; }

  /// Changes what cards and cables let through, without making the hosts anew.
  void shape(const std::vector<HostRate>& hosts, const Uplinks& uplinks = {});

 private:
  void remove() noexcept;

  std::vector<std::string> names_;  ///< of namespaces: the switch's and the hosts'
};

/// In a child between fork and exec: enters the namespace. Returns whether that worked.
bool enter_namespace(const std::string& name) noexcept;

}  // namespace foretrain
