// TCP connections between the processes of a replay.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <string>
#include <vector>

#include "model/base/descriptor.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

/// The name of an IPv4 address and a port. Throws std::runtime_error when the text is no address.
sockaddr_in socket_address(const std::string& address, int port);

/// The port at which a participant waits for its peers.
constexpr int port_of(int participant) { return 20000 + participant; }

/// Connects this process with each of `peers` (both sides must name each other); the result has a socket at each peer's
/// number. Connections do not block and send small messages at once. All processes of the task must call it. Throws
/// std::system_error or std::runtime_error.
std::vector<Descriptor> connect_with(const WorkerTask& task, int process, const std::vector<int>& peers,
                                     ProcessBarrier& barrier);

/// Sends or receives what is possible now; 0 when nothing is. Throws std::runtime_error naming the peer when the
/// connection ended.
std::size_t send_some(const Descriptor& socket, const void* data, std::size_t bytes, int peer);
std::size_t receive_some(const Descriptor& socket, void* data, std::size_t bytes, int peer);

}  // namespace foretrain
