#include "model/hardware/transport.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Transport of(Protocol protocol, double mtu, LinkLayer layer = LinkLayer::ethernet) {
  Transport transport;
  transport.protocol = protocol;
  transport.mtu = Bytes(mtu);
  transport.link_layer = layer;
  return transport;
}

}  // namespace

TEST_CASE("Small datagrams are mostly headers") {
  // 64 B payload + UDP 8 + IP 20 + Ethernet 38 (preamble 8, header 14, check 4, gap 12) = 130 B.
  CHECK(wire_bytes(64.0_B, of(Protocol::udp, 1500)).value() == 130.0);
  // TCP has 20 + 12 (timestamps) instead of 8: 154 B.
  CHECK(wire_bytes(64.0_B, of(Protocol::tcp, 1500)).value() == 154.0);
  // One byte: 1 + 28 = 29 B are padded to the least frame: 46 + 38 = 84 B. Linux pads nothing on virtual links.
  CHECK(wire_bytes(1.0_B, of(Protocol::udp, 1500)).value() == 84.0);
  CHECK(wire_bytes(1.0_B, of(Protocol::udp, 1500, LinkLayer::ethernet_in_software)).value() == 43.0);
}

TEST_CASE("A message is cut into packets of the MTU") {
  const Transport udp = of(Protocol::udp, 1500);
  // A packet carries 1500 - 28 = 1472 B and takes 1538 B on the wire: one byte more needs a second, least frame.
  CHECK(wire_bytes(1472.0_B, udp).value() == 1538.0);
  CHECK(wire_bytes(1473.0_B, udp).value() == 1538.0 + 84.0);
  // An empty message is still a packet.
  CHECK(wire_bytes(0.0_B, udp).value() == 84.0);
  // 1 MB = 679 × 1472 + 512: 680 packets, of which each adds 28 + 38 bytes.
  CHECK(wire_bytes(1.0_MB, udp).value() == 1e6 + 680 * 66);
}

TEST_CASE("A transfer is cut into messages, the last one as long as what is left") {
  Transport roce = of(Protocol::roce, 4096);
  roce.message = 8192.0_B;
  // Two packets of 4178 B and 16 B for each message; then one packet of 4096 B, with 16 B of its own.
  CHECK(wire_bytes(8192.0_B, roce).value() == 2 * 4178.0 + 16.0);
  CHECK(wire_bytes(Bytes(2.5 * 8192), roce).value() == 5 * 4178.0 + 3 * 16.0);
  CHECK(wire_bytes(4096.0_B, roce).value() == 4178.0 + 16.0);
}

TEST_CASE("Shares of the line rate are those that textbooks derive") {
  // TCP with timestamps over 1500 B frames: 1448 of 1538; jumbo frames: 8948 of 9038.
  CHECK(payload_share(of(Protocol::tcp, 1500)) == Approx(1448.0 / 1538.0));
  CHECK(payload_share(of(Protocol::tcp, 9000)) == Approx(8948.0 / 9038.0));
  // RoCE v2: 4096 of 4096 + BTH 12 + ICRC 4 + UDP 8 + IP 20 + 38; a message begins with 16 bytes more (RETH).
  CHECK(payload_share(of(Protocol::roce, 4096)) == Approx(4096.0 / 4178.0));
  CHECK(wire_bytes(8192.0_B, of(Protocol::roce, 4096)).value() == 2 * 4178.0 + 16.0);
  // InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2.
  const Transport infiniband = of(Protocol::infiniband, 4096, LinkLayer::infiniband);
  CHECK(payload_share(infiniband) == Approx(4096.0 / 4122.0));
  CHECK(wire_bytes(64.0_B, infiniband).value() == 64.0 + 26.0 + 16.0);
}

TEST_CASE("A connection over a long line waits for its window or its losses") {
  Transport tcp = of(Protocol::tcp, 1500);
  const Seconds round_trip = 100.0_ms;
  CHECK(!is_finite(connection_rate(tcp, round_trip)));
  // 64 KiB every 100 ms are 5.2 Mbit/s, however fast the line.
  tcp.window = Bytes(65536.0);
  CHECK(connection_rate(tcp, round_trip).value() == Approx(655360.0));
  // Mathis: 1448 B / (0.1 s × √(2/3 · 1e-5)) = 5.6 MB/s; below a window of 64 MiB (671 MB/s), so it counts.
  tcp.window = Bytes(67108864.0);
  tcp.loss = 1e-5;
  CHECK(connection_rate(tcp, round_trip).value() == Approx(14480.0 / std::sqrt(2e-5 / 3.0)));
  // Sixteen connections carry sixteen times as much; without distance there is nothing to wait for.
  const BytesPerSecond one = connection_rate(tcp, round_trip);
  tcp.streams = 16;
  CHECK(connection_rate(tcp, round_trip).value() == Approx(16.0 * one.value()));
  CHECK(!is_finite(connection_rate(tcp, Seconds(0.0))));
  tcp.flow_limit = 5.0_Gbitps;  // whatever the distance
  CHECK(connection_rate(tcp, Seconds(0.0)).value() == Approx(16.0 * 625e6));
}
