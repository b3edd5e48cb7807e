// TCP connections between the processes of one run. Everything waits with a limit, in steps that let the user end it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/base/descriptor.hpp"

namespace foretrain::gpu {

/// A port of this machine that nobody listens on now. Throws WorldError where there is none.
int free_port();

/// Where rank 0 listens, as the others know it.
struct Meeting {
  std::string host, port;
};

/// "node17:29500", "[fe80::1]:29500". Throws WorldError for anything else.
Meeting parse_meeting(const std::string& text);

/// Listens at the addresses of the network interface of this name or address; where none is named, at those that this
/// machine knows the meeting's host by. Throws WorldError where there are none, or the port is taken.
std::vector<Descriptor> listen_at(const Meeting& meeting, const std::string& interface);

/// Tries until the deadline: rank 0 may not listen yet. Throws WorldError.
Descriptor connect_to(const Meeting& meeting, double deadline);

/// Messages are small, and their latency is all that matters.
void no_delay(const Descriptor& socket);

/// Throw WorldError, about `whom`, after `timeout` seconds or when the other end is closed.
void send_all(const Descriptor& socket, const void* data, std::size_t bytes, double timeout, const std::string& whom);
void receive_all(const Descriptor& socket, void* data, std::size_t bytes, double timeout, const std::string& whom);

/// Milliseconds that a call of poll may wait: the user's wish to end is looked for in between.
int poll_step(double deadline);

}  // namespace foretrain::gpu
