#include "validate/host_replay/background.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <vector>

#include "validate/host_replay/session.hpp"
#include "validate/host_replay/sockets.hpp"

namespace foretrain {

namespace {

sockaddr_in name_of(const std::string& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(background_port);
  inet_pton(AF_INET, address.c_str(), &name.sin_addr);
  return name;
}

int complain(const char* what) {
  std::perror(what);
  return 1;
}

void pause_until(double moment) {
  const double left = moment - now();
  if (left <= 0.0) return;
  timespec time{};
  time.tv_sec = static_cast<time_t>(left);
  time.tv_nsec = static_cast<long>((left - static_cast<double>(time.tv_sec)) * 1e9);
  nanosleep(&time, nullptr);
}

}  // namespace

int send_background(const std::string& address, BytesPerSecond rate, double seconds) {
  signal(SIGPIPE, SIG_IGN);
  const bool datagrams = rate > BytesPerSecond(0);
  const Socket end(socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0));
  const sockaddr_in peer = name_of(address);
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
      pause_until(start + sent / rate.value());
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
  Socket end(socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0));
  const sockaddr_in self = name_of(address);
  if (bind(end.number(), reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0)
    return complain("background port");
  if (!datagrams) {
    if (listen(end.number(), 1) != 0) return complain("background port");
    end = Socket(accept4(end.number(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  alarm(static_cast<unsigned>(seconds) + 2);
  std::vector<char> data(1 << 16);
  while (recv(end.number(), data.data(), data.size(), 0) > 0) continue;
  return 0;
}

}  // namespace foretrain
