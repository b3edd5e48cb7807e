#include "model/hardware/transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/number.hpp"

namespace foretrain {
namespace {

// IEEE 802.3-2018, clauses 3.1.1 and 4.4.2: preamble and start delimiter, addresses and type, check sequence, gap
// between frames; a frame of at least 64 bytes carries at least 46.
constexpr Bytes ethernet_preamble(8.0), ethernet_header(14.0), ethernet_check(4.0), ethernet_gap(12.0);
constexpr Bytes ethernet_least_payload(46.0);

constexpr Bytes ipv4_header(20.0);     // RFC 791, section 3.1, without options
constexpr Bytes udp_header(8.0);       // RFC 768
constexpr Bytes tcp_header(20.0);      // RFC 9293, section 3.1
constexpr Bytes tcp_timestamps(12.0);  // RFC 7323, section 3.2 and appendix A: ten bytes, aligned by two more

// InfiniBand Architecture Specification, volume 1: base transport header (9.2), RDMA extended header of a message's
// first packet (9.3.3), invariant check (7.8.1), local route header (7.7), variant check (7.8.2). RoCEv2 puts the
// first three into a UDP datagram (annex A17).
constexpr Bytes base_transport(12.0), rdma_extended(16.0), invariant_check(4.0);
constexpr Bytes local_route(8.0), variant_check(2.0);

constexpr Bytes most_ip_packet(65535.0);    // RFC 791: total length has 16 bits
constexpr double most_window = 1073725440;  // RFC 7323, section 2.3: 65,535 shifted left by 14

bool is_rdma(Protocol protocol) { return protocol == Protocol::roce || protocol == Protocol::infiniband; }

/// A packet with all its headers, on the link.
Bytes on_the_link(Bytes packet, LinkLayer layer) {
  switch (layer) {
    case LinkLayer::ethernet:
      return std::max(packet, ethernet_least_payload) + ethernet_preamble + ethernet_header + ethernet_check +
             ethernet_gap;
    case LinkLayer::ethernet_in_software:
      return packet + ethernet_header;
    case LinkLayer::infiniband:
      return packet + local_route + variant_check;
  }
  return packet;
}

/// Headers of the transport and network layer in each packet: IP and TCP, IP and UDP, or what RDMA adds.
Bytes packet_headers(const Transport& transport) {
  constexpr Bytes rdma = base_transport + invariant_check, ip_udp = ipv4_header + udp_header;
  constexpr std::array by_protocol = {ip_udp, ipv4_header + tcp_header + tcp_timestamps, ip_udp + rdma, rdma};
  return by_protocol.at(static_cast<std::size_t>(transport.protocol));
}

/// The most payload that a packet carries; of TCP the maximum segment size.
Bytes packet_payload(const Transport& transport) {
  return is_rdma(transport.protocol) ? transport.mtu : transport.mtu - packet_headers(transport);
}

std::optional<HardwareProblem> check_mtu(const Transport& transport) {
  const double mtu = transport.mtu.value();
  if (is_rdma(transport.protocol)) {
    for (const double size : {256.0, 512.0, 1024.0, 2048.0, 4096.0}) {
      if (mtu == size) return std::nullopt;
    }
    return HardwareProblem{"mtu", fmt::format("RDMA has no packets of {} bytes", mtu),
                           "256 B, 512 B, 1024 B, 2048 B or 4096 B of payload"};
  }
  const double headers = packet_headers(transport).value();
  if (!(mtu > headers)) {
    return HardwareProblem{"mtu", fmt::format("{} bytes, and the headers take {}", mtu, headers),
                           "1500 B, or 9000 B for jumbo frames"};
  }
  if (transport.mtu > most_ip_packet || std::floor(mtu) != mtu) {
    return HardwareProblem{"mtu", fmt::format("{} bytes", mtu), "whole bytes up to 65535 B"};
  }
  return std::nullopt;
}

Bytes wire_bytes_of_message(Bytes message, const Transport& transport) {
  const Bytes headers = packet_headers(transport), full = packet_payload(transport);
  const double full_packets = std::max(1.0, std::ceil(message / full)) - 1.0;
  const Bytes last = message - full * full_packets;
  const Bytes extended = is_rdma(transport.protocol) ? rdma_extended : Bytes(0.0);  // so long that nothing is padded
  return on_the_link(full + headers, transport.link_layer) * full_packets +
         on_the_link(last + headers, transport.link_layer) + extended;
}

}  // namespace

std::optional<HardwareProblem> check_transport(const Transport& transport) {
  if (auto problem = check_mtu(transport)) return problem;
  if ((transport.link_layer == LinkLayer::infiniband) != (transport.protocol == Protocol::infiniband)) {
    return HardwareProblem{"link_layer", "InfiniBand's packets on InfiniBand's links only",
                           "ethernet for tcp, udp and roce"};
  }
  const bool limited =
      is_finite(transport.window) || transport.loss != 0.0 || transport.streams != 1 || is_finite(transport.flow_limit);
  if (limited && transport.protocol != Protocol::tcp) {
    return HardwareProblem{"protocol", "window, loss, streams and flow_limit describe TCP connections",
                           "protocol: tcp"};
  }
  if (is_finite(transport.window) && transport.window.value() > most_window) {
    return HardwareProblem{"window", fmt::format("{} bytes, more than TCP can say", transport.window.value()),
                           "at most 1073725440 B"};
  }
  if (transport.loss >= 1.0) {
    return HardwareProblem{"loss", fmt::format("{} of all packets lost", transport.loss),
                           "a share below 1, for example 1e-5"};
  }
  return std::nullopt;
}

Bytes wire_bytes(Bytes payload, const Transport& transport) {
  const double whole = is_finite(transport.message) ? std::floor(payload / transport.message) : 0.0;
  if (whole == 0.0) return wire_bytes_of_message(payload, transport);
  const Bytes rest = payload - transport.message * whole;
  return wire_bytes_of_message(transport.message, transport) * whole +
         (rest > Bytes(0.0) ? wire_bytes_of_message(rest, transport) : Bytes(0.0));
}

double payload_share(const Transport& transport) {
  if (is_finite(transport.message)) return transport.message / wire_bytes(transport.message, transport);
  const Bytes full = packet_payload(transport);
  return full / on_the_link(full + packet_headers(transport), transport.link_layer);
}

BytesPerSecond connection_rate(const Transport& transport, Seconds round_trip) {
  BytesPerSecond rate = transport.flow_limit;
  const bool waits = transport.protocol == Protocol::tcp && round_trip > Seconds(0.0);
  if (waits && is_finite(transport.window)) rate = std::min(rate, transport.window / round_trip);
  if (waits && transport.loss > 0.0) {
    rate = std::min(rate, packet_payload(transport) / (round_trip * std::sqrt(2.0 * transport.loss / 3.0)));
  }
  return rate * number(transport.streams);
}

}  // namespace foretrain
