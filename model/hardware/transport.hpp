// The overhead that a protocol adds to a message: headers in every packet, and limits to what one connection carries.
#pragma once

#include <optional>
#include <string>

#include "model/base/quantity.hpp"

namespace foretrain {

/// One thing that is wrong with a node or a network.
struct HardwareProblem {
  std::string key;   ///< dotted, below what was checked: "wiring", "mtu", "network.fabric.dimensions", "faults[0].card"
  std::string text;  ///< the problem, with parts and values
  std::string expected;  ///< the remedy; empty for a node
};

enum class Protocol { udp, tcp, roce, infiniband };

/// Link layer of a packet.
enum class LinkLayer {
  ethernet,              ///< as a cable carries it: preamble, header, padding, check sequence and gap
  ethernet_in_software,  ///< as Linux counts it on virtual links and in traffic control: the header alone
  infiniband,            ///< local route header and variant check sequence
};

struct Transport {
  Protocol protocol = Protocol::tcp;
  /// TCP, UDP: the largest IP packet, headers included, as network interfaces state it (RFC 791). RoCE, InfiniBand: the
  /// largest payload of a packet, as their specification counts.
  Bytes mtu = Bytes(1500.0);
  LinkLayer link_layer = LinkLayer::ethernet;
  Bytes message = Bytes::infinity();                       ///< application message; each begins a new packet
  Bytes window = Bytes::infinity();                        ///< TCP: the most that a connection has under way
  double loss = 0.0;                                       ///< TCP: share of packets lost on the way
  int streams = 1;                                         ///< TCP: connections side by side between two endpoints
  BytesPerSecond flow_limit = BytesPerSecond::infinity();  ///< TCP: the most that the network lets one connection carry
  bool operator==(const Transport&) const = default;
};

/// Nothing for a transport that the functions below accept.
std::optional<HardwareProblem> check_transport(const Transport& transport);

/// Bytes that a payload takes on the wire in its direction: payload, headers of every packet and the link layer's. Its
/// messages are cut to the MTU by the sender, so that no router has to (RFC 8085, section 3.2); an empty message is one
/// packet. The acknowledgements that return are not in it.
Bytes wire_bytes(Bytes payload, const Transport& transport);

/// Payload over wire bytes of an endless stream, or of one message after the other.
double payload_share(const Transport& transport);

/// The most that `streams` connections between two endpoints carry, payload alone, over a round trip of that length. No
/// limit for other protocols than TCP, which wait for no answer here: UDP sends on, and RDMA's cards keep enough under
/// way.
///
/// The lowest of three limits counts. A network may limit each connection (flow_limit). A window must be acknowledged
/// before more is sent: window ÷ RTT (RFC 7323, section 1.1). Losses halve it: MSS ÷ (RTT · √(2p/3)), steady state of
/// congestion avoidance (Mathis, Semke, Mahdavi and Ott, The macroscopic behavior of the TCP congestion avoidance
/// algorithm, CCR 27(3), 1997). The latter is Reno's; CUBIC does better on long fat lines, BBR hardly minds.
BytesPerSecond connection_rate(const Transport& transport, Seconds round_trip);

}  // namespace foretrain
