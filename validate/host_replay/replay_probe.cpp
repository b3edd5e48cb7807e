// What single messages between two hosts cost: in time, and in bytes on the wire.
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "validate/host_replay/replay.hpp"
#include "validate/host_replay/sockets.hpp"

namespace foretrain {

namespace {

/// Bytes of a full datagram's payload: 1500 less IP (20) and UDP (8).
constexpr int datagram_payload = 1472;
constexpr int answered_together = 50;

/// Messages per repetition of a probe: about 20 ms of traffic, 4 to 200.
int messages_for(Bytes payload, BytesPerSecond rate) {
  return static_cast<int>(std::clamp(rate.value() * 0.02 / (payload.value() + 100.0), 4.0, 200.0));
}

Descriptor udp_socket(const WorkerTask& task, int process) {
  Descriptor made = new_socket(SOCK_DGRAM);
  const auto name_of = [&](int other) { return socket_address(task.hosts[at_index(other)], port_of(other)); };
  const sockaddr_in self = name_of(process), peer = name_of(1 - process);
  const int room = 4 << 20;
  setsockopt(made.number(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  const timeval patience{2, 0};
  setsockopt(made.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (bind(made.number(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0 ||
      connect(made.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    throw_system_error("UDP port");
  }
  return made;
}

/// Messages there and back one after the other, or one way as one stream that is answered by a byte.
Exchange messages_of(std::int64_t payload, int count, bool round_trip) {
  Exchange exchange;
  const Exchange::Message there{0, 1, payload}, back{1, 0, round_trip ? payload : 1};
  if (!round_trip) return {{{count, {there}}, {1, {back}}}};
  for (int i = 0; i < count; ++i) exchange.phases.insert(exchange.phases.end(), {{1, {there}}, {1, {back}}});
  return exchange;
}

WorkerTask probe_task(const std::string& protocol, Bytes payload, int messages) {
  WorkerTask task;
  task.algorithm = "probe";
  task.hosts = {0, 1};
  task.ranks = 2;
  task.warmup = 3;
  task.repetitions = 11;
  const auto bytes = static_cast<std::int64_t>(payload.value());
  if (protocol == "udp") {
    task.datagrams = messages;
    task.datagram_bytes = static_cast<int>(bytes);
  } else {
    task.exchanges = {messages_of(bytes, messages, protocol == "round trip")};
    task.steps.assign(2, {StepTask{0, 0.0, 0, {}}});
  }
  return task;
}

}  // namespace

// A message is cut into datagrams that fit a packet, as a sender must (RFC 8085, section 3.2). Each batch is answered,
// so that none is lost for want of room.
WorkerTimes run_datagrams(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  const Descriptor socket = udp_socket(task, process);
  std::vector<char> data(datagram_payload);
  int under_way = 0;
  const auto move = [&](bool sends, std::size_t count) {
    const ssize_t moved =
        sends ? ::send(socket.number(), data.data(), count, 0) : recv(socket.number(), data.data(), count, 0);
    if (moved < 0) throw_system_error("a datagram was lost");
  };
  const auto settle = [&] {
    move(process != 0, 1);
    under_way = 0;
  };
  const auto work = [&] {
    for (int message = 0; message < task.datagrams; ++message) {
      for (int done = 0; done < task.datagram_bytes; done += datagram_payload) {
        move(process == 0, at_index(std::min(datagram_payload, task.datagram_bytes - done)));
        if (++under_way == answered_together) settle();
      }
    }
    if (under_way > 0) settle();
    return std::vector<TaskSpan>();
  };
  barrier.wait();  // both have their ports
  return measure(task, process, barrier, {[] {}, work, [] {}});
}

ProbeMeasurement HostReplayer::probe(const std::string& protocol, Bytes payload, BytesPerSecond rate) {
  const int messages = messages_for(payload, rate);
  const WorkerTask task = probe_task(protocol, payload, messages);
  const HostLab& lab = lab_for({{rate, rate}, {rate, rate}}, {});

  // First the bytes of one repetition more than none: what the connection itself costs drops out.
  const auto traffic = [&](int repetitions) {
    WorkerTask counted = task;
    counted.warmup = 0;
    counted.repetitions = repetitions;
    const HostLab::Counters before = lab.counters(0);
    run_workers(lab, counted);
    const HostLab::Counters after = lab.counters(0);
    return HostLab::Counters{after.sent_bytes - before.sent_bytes, after.sent_packets - before.sent_packets,
                             after.received_bytes - before.received_bytes};
  };
  lab.set_offload(false);
  traffic(1);  // addresses are looked up once
  const HostLab::Counters few = traffic(1), many = traffic(11);
  lab.set_offload(true);
  const double counted = 10.0 * messages;

  ProbeMeasurement result;
  result.protocol = protocol;
  result.payload = payload;
  result.rate = rate;
  result.wire_bytes = (many.sent_bytes - few.sent_bytes) / counted;
  result.packets = (many.sent_packets - few.sent_packets) / counted;
  result.returned_bytes = (many.received_bytes - few.received_bytes) / counted;
  const double each = protocol == "round trip" ? 2.0 * messages : messages;
  for (const double seconds : run_workers(lab, task).seconds) result.samples.push_back(seconds / each);
  return result;
}

}  // namespace foretrain
