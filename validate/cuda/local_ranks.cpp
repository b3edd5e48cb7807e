#include "validate/cuda/local_ranks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "validate/cuda/collective/hmac.hpp"

namespace foretrain::gpu {

namespace {

constexpr const char* rank_key = "FORETRAIN_RANK";
constexpr const char* keys[] = {rank_key, "FORETRAIN_SIZE", "FORETRAIN_RENDEZVOUS", "FORETRAIN_TOKEN"};

/// A port of this machine that nobody listens on now.
int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found = bind(handle, any, length) == 0 && getsockname(handle, any, &length) == 0;
  const int error = errno;
  close(handle);
  if (!found) throw std::system_error(error, std::generic_category(), "a port for the processes of this machine");
  return ntohs(address.sin_port);
}

/// Sixteen bytes in hexadecimal digits.
std::string fresh_token() {
  std::string token;
  for (const char byte : random_bytes(16)) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    token += digits;
  }
  return token;
}

}  // namespace

LocalRanks::LocalRanks(int gpus, const std::string& folder, bool verify) {
  setenv("FORETRAIN_SIZE", std::to_string(gpus).c_str(), 1);
  setenv("FORETRAIN_RENDEZVOUS", ("127.0.0.1:" + std::to_string(free_port())).c_str(), 1);
  setenv("FORETRAIN_TOKEN", fresh_token().c_str(), 1);
  std::vector<std::string> words = {"measure", "-o", folder, "--only", "collective"};
  if (!verify) words.emplace_back("--unverified");
  for (int rank = 1; rank < gpus; ++rank) {
    setenv(rank_key, std::to_string(rank).c_str(), 1);
    others_.push_back(std::make_unique<ChildProcess>(words, STDOUT_FILENO));
  }
  setenv(rank_key, "0", 1);
}

LocalRanks::~LocalRanks() {
  for (const auto& other : others_) other->end(2.0);
  for (const char* key : keys) unsetenv(key);
}

}  // namespace foretrain::gpu
