#include "validate/cuda/local_ranks.hpp"

#include <unistd.h>

#include <cstdlib>
#include <random>

namespace foretrain::gpu {

namespace {

constexpr const char* rank_key = "FORETRAIN_RANK";
constexpr const char* keys[] = {rank_key, "FORETRAIN_SIZE", "FORETRAIN_MEETING"};

}  // namespace

LocalRanks::LocalRanks(int gpus, const std::string& folder, bool verify) {
  setenv("FORETRAIN_SIZE", std::to_string(gpus).c_str(), 1);
  std::random_device draw;
  const std::string meeting =
      "foretrain-gpu-" + std::to_string(getpid()) + "-" + std::to_string(draw()) + "-" + std::to_string(draw());
  setenv("FORETRAIN_MEETING", meeting.c_str(), 1);
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
