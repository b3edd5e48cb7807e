// Messages between processes: a length, then bytes; and descriptors.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/descriptor.hpp"

namespace foretrain {

/// Two ends that speak with each other, closed in programs that this one starts. Throws std::system_error.
struct SocketPair {
  SocketPair();
  Descriptor ours, theirs;
};

/// False when the other side is gone.
bool send_message(int socket, std::string_view message);

/// How a wait for a message ended.
enum class Waited : std::uint8_t { message, too_long, gone, stopped };

/// Waits for a whole message until the deadline, or until something happens at `stop`, where that is no negative
/// number.
Waited receive_message(int socket, std::string& message, std::chrono::steady_clock::time_point deadline, int stop);
/// Waits as long as it takes. Nothing when the other side is gone.
std::optional<std::string> receive_message(int socket);

/// Sends a copy of a descriptor; of one that is not open word that there is none. False when the other side is gone.
bool send_descriptor(int socket, const Descriptor& sent);
/// Not open where the other side has none to give, or is gone.
Descriptor receive_descriptor(int socket);

}  // namespace foretrain
