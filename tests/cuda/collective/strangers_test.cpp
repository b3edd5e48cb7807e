// Whoever finds the port of a run can neither delay nor end it.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <thread>

#include "tests/catch.hpp"
#include "validate/cuda/collective/greeting.hpp"
#include "validate/cuda/collective/tcp_socket.hpp"
#include "validate/cuda/collective/world.hpp"
#include "validate/measure/clock.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

namespace {

const std::string secret = "the token of this run";

std::unique_ptr<World> world_of(int rank, int size, int port, const std::string& token = secret,
                                const std::string& interface = "", double timeout = 20.0) {
  const Rendezvous rendezvous{.meeting = "127.0.0.1:" + std::to_string(port), .token = token, .interface = interface};
  return make_tcp_world({.by = "test", .rank = rank, .size = size, .local_rank = {}}, rendezvous, timeout);
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

/// A caller that answers rank 0's challenge, as `changed` leaves it, says what `rest` holds, and stays.
Descriptor caller(int port, const Greeting& greeting, const std::string& token, const std::string& rest = "",
                  const std::function<void(std::string&)>& changed = {}) {
  Descriptor socket = connect_to({"127.0.0.1", std::to_string(port)}, now() + 10.0);
  std::string challenge(challenge_bytes, '\0');
  receive_all(socket, challenge.data(), challenge.size(), 5.0, "rank 0");
  std::string says = greeting_text(greeting, Token(token), challenge);
  if (changed) changed(says);
  says += rest;
  send_all(socket, says.data(), says.size(), 5.0, "rank 0");
  return socket;
}

/// The error of rank 0 while a process with its token says this; empty where the world was made.
std::string error_of_rank_0(int port, int size, const Greeting& greeting, const std::string& rest = "") {
  std::future<std::string> rank_0 = std::async(std::launch::async, [&] {
    try {
      const auto world = world_of(0, size, port);
      world->gather("text");
    } catch (const WorldError& error) {
      return std::string(error.what());
    }
    return std::string();
  });
  const Descriptor socket = caller(port, greeting, secret, rest);
  return rank_0.get();
}

}  // namespace

TEST_CASE("a run meets among strangers who are silent, talk nonsense or guess", "[collective][strangers]") {
  const int port = free_port();
  const double begun = now();
  std::future<double> rank_0 = std::async(std::launch::async, [&] { return world_of(0, 3, port)->maximum(0.0); });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 5; ++i) strangers.push_back(stranger(port, ""));  // stays silent
  strangers.push_back(stranger(port, "GET / HTTP/1.1\r\n"));            // less than a greeting
  strangers.push_back(stranger(port, std::string(100'000, '\xff')));    // far more than one
  strangers.push_back(caller(port, {1, 3}, "the token of this ruN"));   // the last character
  strangers.push_back(caller(port, {1, 3}, secret, "", [](std::string& says) { says.pop_back(); }));  // not all of it
  strangers.push_back(caller(port, {1, 3}, secret, "", [](std::string& says) { says[14] = '2'; }));   // another version
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
  const int port = free_port();
  std::future<double> rank_0 = std::async(std::launch::async, [&] { return world_of(0, 2, port)->maximum(0.0); });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 700; ++i) strangers.push_back(stranger(port, ""));
  CHECK(world_of(1, 2, port)->maximum(1.0) == 1.0);
  CHECK(rank_0.get() == 1.0);
}

TEST_CASE("a text of absurd length is refused before there is memory for it", "[collective][strangers]") {
  // What rank 1 says after its greeting: of the barrier a number, of gather a length, 2^62 bytes.
  const std::string says = std::string(8, '\0') + std::string(7, '\0') + '\x40';
  CHECK(error_of_rank_0(free_port(), 2, {1, 2}, says) ==
        "the process of rank 1 speaks of a text of 4611686018427387904 bytes: at most 16777216 are taken");
}

TEST_CASE("who knows the token must belong to the run", "[collective][strangers]") {
  CHECK(error_of_rank_0(free_port(), 2, {1, 3}) == "rank 0 was launched as one of 2 processes, and rank 1 as one of 3");
  for (const int rank : {0, 3, -1}) {
    CHECK(error_of_rank_0(free_port(), 3, {rank, 3}) ==
          "two processes say that they have rank " + std::to_string(rank));
  }
}

TEST_CASE("a process with another token is told what may be wrong", "[collective][strangers]") {
  const int port = free_port();
  std::thread rank_0([&] {
    const Rendezvous rendezvous{.meeting = "127.0.0.1:" + std::to_string(port), .token = secret};
    CHECK_THROWS_WITH(make_tcp_world({.by = "test", .rank = 0, .size = 2, .local_rank = {}}, rendezvous, 1.0),
                      Catch::Contains("1 of 2 processes did not come") &&
                          Catch::Contains("callers without the same FORETRAIN_TOKEN were sent away"));
  });
  CHECK_THROWS_WITH(world_of(1, 2, port, "the token of another run", "", 1.2),
                    Catch::Contains("it sends away who has another FORETRAIN_TOKEN"));
  rank_0.join();
}

TEST_CASE("without a token nobody meets over TCP", "[collective][strangers]") {
  for (const std::string& token : {std::string(), std::string(15, 'x'), std::string(65, 'x')}) {
    CHECK_THROWS_WITH(
        world_of(0, 2, free_port(), token),
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
    const int port = free_port();
    const std::vector<Descriptor> listeners = listen_at({"127.0.0.1", std::to_string(port)}, interface);
    CHECK(connect_to({"127.0.0.1", std::to_string(port)}, now() + 1.0).open());
    if (elsewhere.empty()) continue;
    INFO(elsewhere);
    CHECK_THROWS_WITH(connect_to({elsewhere, std::to_string(port)}, now() + 0.3), Catch::Contains("does not listen"));
  }
  CHECK_THROWS_WITH(
      world_of(0, 2, free_port(), secret, "nosuch0"),
      Catch::Contains("FORETRAIN_INTERFACE=nosuch0: this machine has no such network interface; it has lo"));
}

TEST_CASE("a greeting reads back; no changed byte of it does, nor the same in reply to another challenge",
          "[collective][strangers]") {
  const Token token(secret);
  const std::string challenge = challenge_text();
  const std::string text = greeting_text({.rank = 7, .size = 16}, token, challenge);
  REQUIRE(text.size() == greeting_bytes);
  REQUIRE(read_greeting(text, token, challenge));
  CHECK(read_greeting(text, token, challenge)->rank == 7);
  CHECK(read_greeting(text, token, challenge)->size == 16);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    INFO("byte " << i);
    CHECK_FALSE(read_greeting(changed, token, challenge));
  }
  CHECK_FALSE(read_greeting(text + "x", token, challenge));
  CHECK_FALSE(read_greeting("", token, challenge));
  CHECK_FALSE(read_greeting(text, token, challenge_text()));
  CHECK_FALSE(read_greeting(text, Token("the token of another run"), challenge));
  CHECK(text.find(secret) == std::string::npos);
}

TEST_CASE("HMAC-SHA256 is that of RFC 4231, test case 2", "[collective][strangers]") {
  std::string digits;
  for (const char byte : hmac_sha256("Jefe", "what do ya want for nothing?")) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    digits += two;
  }
  CHECK(digits == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("a process passes by who holds the port but not the token, and meets rank 0 once that listens",
          "[collective][strangers]") {
  const int port = free_port();
  std::future<double> rank_1 = std::async(std::launch::async, [&] { return world_of(1, 2, port)->maximum(1.0); });
  {
    // It says what rank 0 would say, and repeats what it hears.
    const std::vector<Descriptor> held = listen_at({"127.0.0.1", std::to_string(port)}, "");
    pollfd entry{held.front().number(), POLLIN, 0};
    REQUIRE(poll(&entry, 1, 10'000) == 1);
    const Descriptor caller(accept4(held.front().number(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string challenge = challenge_text();
    send_all(caller, challenge.data(), challenge.size(), 5.0, "rank 1");
    std::string heard(greeting_bytes, '\0');
    receive_all(caller, heard.data(), heard.size(), 5.0, "rank 1");
    CHECK(heard.find(secret) == std::string::npos);
    send_all(caller, heard.data() + greeting_bytes - answer_bytes, answer_bytes, 5.0, "rank 1");
    CHECK(sent_away(caller));
  }
  CHECK(world_of(0, 2, port)->maximum(0.0) == 1.0);
  CHECK(rank_1.get() == 1.0);
}

TEST_CASE("a flood of callers keeps no process of the run out", "[collective][strangers]") {
  const int port = free_port();
  std::atomic<bool> met = false;
  std::atomic<int> callers = 0;
  std::future<double> rank_0 = std::async(std::launch::async, [&] { return world_of(0, 3, port)->maximum(0.0); });
  std::vector<std::thread> floods;
  for (int i = 0; i < 3; ++i) {
    floods.emplace_back([&] {
      std::deque<Descriptor> sockets;
      while (!met) {
        try {
          sockets.push_back(connect_to({"127.0.0.1", std::to_string(port)}, now() + 0.2));
          ++callers;
        } catch (const WorldError&) {
          continue;  // rank 0 does not listen yet, or no longer
        }
        if (sockets.size() > 200) sockets.pop_front();
      }
    });
  }
  while (callers < 1000) std::this_thread::yield();  // more than rank 0 has room for
  std::vector<std::future<double>> ranks;
  for (int r = 1; r < 3; ++r) {
    ranks.push_back(std::async(std::launch::async, [&, r] { return world_of(r, 3, port)->maximum(r); }));
  }
  CHECK(rank_0.get() == 2.0);
  for (std::future<double>& rank : ranks) CHECK(rank.get() == 2.0);
  met = true;
  for (std::thread& flood : floods) flood.join();
}
