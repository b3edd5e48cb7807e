// TCP connections between the processes of a replay.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <vector>

#include "model/base/descriptor.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

/// The port at which a process waits for its peers.
constexpr int port_of(int process) { return 20000 + process; }
/// The name of a port of a host.
sockaddr_in socket_address(int host, int port);
/// Throws std::system_error where there can be none.
Descriptor new_socket();
/// Waits there for `count` calls, by TCP. Throws std::system_error.
Descriptor listen_at(int host, int port, int count);

/// Connects this process with each of `peers` (both sides must name each other); the result has a socket at each peer's
/// number. Connections send small messages at once. All processes of the task must call it. Throws std::system_error or
/// std::runtime_error.
std::vector<Descriptor> connect_with(const WorkerTask& task, int process, const std::vector<int>& peers,
                                     ProcessBarrier& barrier);

/// Sends or receives what is possible now (with MSG_DONTWAIT) or all (MSG_WAITALL); 0 when nothing is possible. Throws
/// std::runtime_error naming the peer when the connection ended.
std::size_t send_bytes(const Descriptor& socket, const void* data, std::size_t bytes, int flags, int peer);
std::size_t receive_bytes(const Descriptor& socket, void* data, std::size_t bytes, int flags, int peer);

}  // namespace foretrain
