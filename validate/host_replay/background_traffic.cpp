#include "validate/host_replay/background_traffic.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

#include "model/base/number.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

namespace {

/// What a datagram counts for in the token bucket.
constexpr int background_wire = 1514;
constexpr int background_port = 30000;

int complain(const char* what) {
  std::perror(what);
  return 1;
}

}  // namespace

int send_background(const std::string& address, BytesPerSecond rate, double seconds) {
  signal(SIGPIPE, SIG_IGN);
  const bool datagrams = rate > BytesPerSecond(0);
  const Descriptor end(socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0));
  const sockaddr_in peer = socket_address(address, background_port);
  const double stop = now() + seconds;
  while (connect(end.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    if (now() > stop) return complain("background connection");
    usleep(10000);
  }
  const int room = 1 << 20;
  if (datagrams) setsockopt(end.number(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  std::vector<char> data(datagrams ? background_payload : 1 << 16);
  const double start = now();
  for (double sent = 0.0; now() < stop;) {
    if (datagrams) {
      // A few at a time: a timer for each would cost more than the datagrams.
      std::this_thread::sleep_for(std::chrono::duration<double>(start + sent / rate.value() - now()));
      for (int i = 0; i < 4; ++i) (void)!send(end.number(), data.data(), data.size(), 0);
      sent += 4.0 * background_wire;
    } else if (send(end.number(), data.data(), data.size(), 0) < 0) {
      return complain("background traffic");
    }
  }
  return 0;
}

int receive_background(const std::string& address, BytesPerSecond rate, double seconds) {
  const bool datagrams = rate > BytesPerSecond(0);
  Descriptor end(socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0));
  const sockaddr_in self = socket_address(address, background_port);
  if (bind(end.number(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0)
    return complain("background port");
  if (!datagrams) {
    if (listen(end.number(), 1) != 0) return complain("background port");
    end = Descriptor(accept4(end.number(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  alarm(static_cast<unsigned>(seconds) + 2);
  std::vector<char> data(1 << 16);
  while (recv(end.number(), data.data(), data.size(), 0) > 0) continue;
  return 0;
}

}  // namespace foretrain
