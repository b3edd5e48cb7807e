// Whoever finds the port of a run can neither delay nor end it.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/catch.hpp"
#include "tests/cuda/free_port.hpp"
#include "validate/cuda/collective/greeting.hpp"
#include "validate/cuda/collective/tcp_socket.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

namespace {

const std::string secret = "the token of this run";

std::unique_ptr<World> world_of(int rank, int size, int port, const std::string& token = secret,
                                const std::string& interface = "") {
  const Rendezvous rendezvous{.meeting = "127.0.0.1:" + std::to_string(port), .token = token, .interface = interface};
  return make_tcp_world({.by = "test", .rank = rank, .size = size, .local_rank = {}}, rendezvous, 20.0);
}

/// A caller that says this and stays.
Descriptor stranger(int port, const std::string& says) {
  Descriptor socket = connect_to({"127.0.0.1", std::to_string(port)}, now() + 10.0);
  send_all(socket, says.data(), says.size(), 5.0, "rank 0");
  return socket;
}

/// Whether the other end has closed the connection.
bool sent_away(const Descriptor& socket) {
  char byte = 0;
  try {
    receive_all(socket, &byte, 1, 5.0, "rank 0");
  } catch (const WorldError& error) {
    return std::string(error.what()).find("is gone") != std::string::npos;
  }
  return false;
}

/// A greeting whose first bytes are right.
std::string greeting(int rank, int size, const std::string& token) {
  return greeting_text({.rank = rank, .size = size}, Token(token));
}

/// The error of rank 0 while these callers speak; empty where the world was made.
std::string error_of_rank_0(int port, int size, const std::vector<std::string>& callers) {
  std::future<std::string> rank_0 = std::async(std::launch::async, [&] {
    try {
      const auto world = world_of(0, size, port);
      world->gather("text");
    } catch (const WorldError& error) {
      return std::string(error.what());
    }
    return std::string();
  });
  std::vector<Descriptor> sockets;
  for (const std::string& says : callers) sockets.push_back(stranger(port, says));
  return rank_0.get();
}

}  // namespace

TEST_CASE("a run meets among strangers who are silent, talk nonsense or guess", "[collective][strangers]") {
  const int port = test::free_port();
  const double begun = now();
  std::future<double> rank_0 = std::async(std::launch::async, [&] { return world_of(0, 3, port)->maximum(0.0); });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 5; ++i) strangers.push_back(stranger(port, ""));                        // stays silent
  strangers.push_back(stranger(port, "GET / HTTP/1.1\r\n"));                                  // less than a greeting
  strangers.push_back(stranger(port, std::string(100'000, '\xff')));                          // far more than one
  strangers.push_back(stranger(port, greeting(1, 3, "the token of this ruN")));               // the last character
  strangers.push_back(stranger(port, greeting(1, 3, secret).substr(0, greeting_bytes - 1)));  // not all of one
  std::string old = greeting(1, 3, secret);
  old[14] = '1';
  strangers.push_back(stranger(port, old));  // another version
  CHECK(sent_away(strangers[7]));
  CHECK(sent_away(strangers[9]));
  std::future<double> rank_1 = std::async(std::launch::async, [&] { return world_of(1, 3, port)->maximum(1.0); });
  std::future<double> rank_2 = std::async(std::launch::async, [&] { return world_of(2, 3, port)->maximum(2.0); });
  CHECK(rank_0.get() == 2.0);
  CHECK(rank_1.get() == 2.0);
  CHECK(rank_2.get() == 2.0);
  CHECK(now() - begun < 5.0);  // nobody waited for the silent ones, whose patience is 10 s
}

TEST_CASE("more strangers than rank 0 has room for keep nobody out", "[collective][strangers]") {
  const int port = test::free_port();
  std::future<double> rank_0 = std::async(std::launch::async, [&] { return world_of(0, 2, port)->maximum(0.0); });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(stranger(port, ""));
  CHECK(world_of(1, 2, port)->maximum(1.0) == 1.0);
  CHECK(rank_0.get() == 1.0);
}

TEST_CASE("a text of absurd length is refused before there is memory for it", "[collective][strangers]") {
  // What rank 1 says after its greeting: of the barrier a number, of gather a length, 2^62 bytes.
  std::string says = greeting(1, 2, secret) + std::string(8, '\0') + std::string(7, '\0') + '\x40';
  CHECK(error_of_rank_0(test::free_port(), 2, {says}) ==
        "the process of rank 1 speaks of a text of 4611686018427387904 bytes: at most 16777216 are taken");
}

TEST_CASE("who knows the token must belong to the run", "[collective][strangers]") {
  CHECK(error_of_rank_0(test::free_port(), 2, {greeting(1, 3, secret)}) ==
        "rank 0 was launched as one of 2 processes, and rank 1 as one of 3");
  for (const int rank : {0, 3, -1}) {
    CHECK(error_of_rank_0(test::free_port(), 3, {greeting(rank, 3, secret)}) ==
          "two processes say that they have rank " + std::to_string(rank));
  }
}

TEST_CASE("a process with another token is told what may be wrong", "[collective][strangers]") {
  const int port = test::free_port();
  std::thread rank_0([&] {
    const Rendezvous rendezvous{.meeting = "127.0.0.1:" + std::to_string(port), .token = secret};
    CHECK_THROWS_WITH(make_tcp_world({.by = "test", .rank = 0, .size = 2, .local_rank = {}}, rendezvous, 1.0),
                      Catch::Contains("1 of 2 processes did not come") &&
                          Catch::Contains("1 callers without the same FORETRAIN_TOKEN were sent away"));
  });
  CHECK_THROWS_WITH(world_of(1, 2, port, "the token of another run"),
                    Catch::Contains("it sends away who has another FORETRAIN_TOKEN"));
  rank_0.join();
}

TEST_CASE("without a token nobody meets over TCP", "[collective][strangers]") {
  for (const std::string& token : {std::string(), std::string(15, 'x'), std::string(65, 'x')}) {
    CHECK_THROWS_WITH(
        world_of(0, 2, test::free_port(), token),
        Catch::Contains("FORETRAIN_TOKEN has " + std::to_string(token.size()) + " characters: give it 16 to 64"));
  }
}

TEST_CASE("rank 0 listens at the network interface that was named, and there alone", "[collective][strangers]") {
  ifaddrs* list = nullptr;
  REQUIRE(getifaddrs(&list) == 0);
  std::string elsewhere;  // an IPv4 address of this machine that is none of the loopback
  for (const ifaddrs* a = list; a != nullptr && elsewhere.empty(); a = a->ifa_next) {
    if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != AF_INET || std::string(a->ifa_name) == "lo") continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr, text, sizeof(text));
    elsewhere = text;
  }
  freeifaddrs(list);
  for (const char* interface : {"", "lo", "127.0.0.1"}) {
    const int port = test::free_port();
    const std::vector<Descriptor> listeners = listen_at({"127.0.0.1", std::to_string(port)}, interface);
    CHECK(connect_to({"127.0.0.1", std::to_string(port)}, now() + 1.0).open());
    if (elsewhere.empty()) continue;
    INFO(elsewhere);
    CHECK_THROWS_WITH(connect_to({elsewhere, std::to_string(port)}, now() + 0.3), Catch::Contains("does not listen"));
  }
  CHECK_THROWS_WITH(
      world_of(0, 2, test::free_port(), secret, "nosuch0"),
      Catch::Contains("FORETRAIN_INTERFACE=nosuch0: this machine has no such network interface; it has lo"));
}

TEST_CASE("a greeting reads back, and no changed byte of it does", "[collective][strangers]") {
  const Token token(secret);
  const std::string text = greeting(7, 16, secret);
  REQUIRE(text.size() == greeting_bytes);
  CHECK(read_greeting(text, token)->rank == 7);
  CHECK(read_greeting(text, token)->size == 16);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i >= 16 && i < 24) continue;  // rank and size
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    INFO("byte " << i);
    CHECK_FALSE(read_greeting(changed, token));
  }
  CHECK_FALSE(read_greeting(text + "x", token));
  CHECK_FALSE(read_greeting("", token));
}
