#include "validate/cuda/local_ranks.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "validate/cuda/collective/hmac.hpp"
#include "validate/cuda/collective/tcp_socket.hpp"

namespace foretrain::gpu {

namespace {

constexpr const char* rank_key = "FORETRAIN_RANK";
constexpr const char* keys[] = {rank_key, "FORETRAIN_SIZE", "FORETRAIN_RENDEZVOUS", "FORETRAIN_TOKEN"};

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
