// What a message costs: the stack's latency, and bytes on the wire.
#pragma once

#include "validate/host_replay/session.hpp"

namespace foretrain {

/// Between participants 0 and 1, `keys` messages of `elements` bytes, by the task's algorithm:
/// `probe_round_trip`: there and back over TCP, one after the other;
/// `probe_tcp`: one way over TCP, as one stream, answered by one byte at the end;
/// `probe_udp`: one way over UDP, cut into datagrams, every 50 of which are answered by one byte.
void run_probe(const HostTask& task, int process, MeetingPoint& meeting);

}  // namespace foretrain
