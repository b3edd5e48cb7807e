#include "validate/cuda/collective/world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace foretrain::gpu {

namespace {

/// Starting NCCL between many machines may take a minute on one of them, while the others wait for its word.
constexpr double message_timeout_s = 300.0;

class SingleWorld final : public World {
 public:
  SingleWorld() : World(0, 1) {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  [[nodiscard]] std::string transport() const override { return ""; }
};

}  // namespace

void World::broadcast(void* data, std::size_t bytes) {
  const std::string decided = gather(leads() ? std::string(static_cast<const char*>(data), bytes) : "").front();
  if (decided.size() != bytes) throw WorldError("rank 0 says something else than this process expects");
  std::memcpy(data, decided.data(), bytes);
}

double World::maximum(double value) {
  for (const std::string& text : gather(std::string(reinterpret_cast<const char*>(&value), sizeof(value)))) {
    double other = 0.0;
    if (text.size() == sizeof(other)) std::memcpy(&other, text.data(), sizeof(other));
    value = std::max(value, other);
  }
  return value;
}

std::unique_ptr<World> make_single_world() { return std::make_unique<SingleWorld>(); }

std::unique_ptr<World> make_world(const Launched& launched, const Environment& of) {
  if (launched.size == 1) return make_single_world();
  if (const auto meeting = of("FORETRAIN_MEETING")) return make_file_world(launched, *meeting, message_timeout_s);
  if (auto world = make_mpi_world(launched)) return world;
  throw WorldError(std::to_string(launched.size) + " processes were launched (" + launched.by +
                   "), and this program was built without MPI: install one (libopenmpi-dev) and build again; on one " +
                   "machine it starts a process for each GPU by itself");
}

std::string machine_name() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) name[0] = '\0';
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot.empty() ? name : name + ("/" + boot);
}

int local_rank_of(int rank, const std::vector<std::string>& machines) {
  const std::string& own = machines.at(static_cast<std::size_t>(rank));
  return static_cast<int>(std::count(machines.begin(), machines.begin() + rank, own));
}

}  // namespace foretrain::gpu
