#include "validate/cuda/local_ranks.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "model/base/error.hpp"

namespace foretrain::gpu {

namespace {

constexpr const char* rank_key = "FORETRAIN_RANK";
constexpr const char* keys[] = {rank_key, "FORETRAIN_SIZE", "FORETRAIN_MEETING"};

}  // namespace

LocalRanks::LocalRanks(int gpus, const std::string& folder)
    : meeting_(std::filesystem::temp_directory_path() / "foretrain-gpu-XXXXXX") {
  if (mkdtemp(meeting_.data()) == nullptr) throw_system_error(meeting_);
  setenv("FORETRAIN_SIZE", std::to_string(gpus).c_str(), 1);
  setenv("FORETRAIN_MEETING", meeting_.c_str(), 1);
  for (int rank = 1; rank < gpus; ++rank) {
    setenv(rank_key, std::to_string(rank).c_str(), 1);
    const std::vector<std::string> words = {"measure", "-o", folder, "--only", "collective"};
    others_.push_back(std::make_unique<ChildProcess>(words, STDOUT_FILENO));
  }
  setenv(rank_key, "0", 1);
}

LocalRanks::~LocalRanks() {
  for (const auto& other : others_) other->end(2.0);
  for (const char* key : keys) unsetenv(key);
  std::error_code ignored;
  std::filesystem::remove_all(meeting_, ignored);
}

}  // namespace foretrain::gpu
