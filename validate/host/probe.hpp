// What a message costs: the stack's latency, and bytes on the wire.
#pragma once

#include "validate/host/session.hpp"

namespace foretrain {

/// Between participants 0 and 1, by the task's algorithm:
/// `probe_round_trip`: 100 messages of `elements` values there and back over TCP, one after the other;
/// `probe_tcp`: `keys` messages of `elements` *bytes*, one way over TCP, answered by one byte at the end;
/// `probe_udp`: the same as UDP datagrams, 20 at a time, each batch answered.
void run_probe(const HostTask& task, int process, MeetingPoint& meeting);

/// Messages of one probe_round_trip repetition.
inline constexpr int round_trips = 100;

}  // namespace foretrain
