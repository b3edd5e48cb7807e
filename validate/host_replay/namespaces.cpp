#include "validate/host_replay/namespaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

/// At least so many segments of TCP cross the stack as one packet.
constexpr int least_segments = 4;

int next_number = 0;

/// One of the script's tasks for these namespaces, which must succeed. Throws UsageError with what it said.
void run_script(const char* task, const std::vector<std::string>& words, const std::string& input = "") {
  std::vector<std::string> command = {"sh", "-c", std::string(hosts_script()), "hosts.sh", task};
  command.insert(command.end(), words.begin(), words.end());
  const FilterResult result = run_filter(command, input);
  if (result.status == 0) return;
  throw_if_interrupted();
  throw UsageError(std::string(trim(result.errors)));
}

}  // namespace

std::string host_address(int host) { return fmt::format("10.77.0.{}", host + 1); }

bool enter_namespace(const std::string& name) noexcept {
  char path[256];
  std::snprintf(path, sizeof path, "/run/netns/%s", name.c_str());
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  return file >= 0 && setns(file, CLONE_NEWNET) == 0;
}

std::string why_no_namespaces() {
  if (geteuid() != 0) return "hosts are network namespaces, and only root may make them";
  try {
    const HostLab lab({{BytesPerSecond(1.25e8), BytesPerSecond(1.25e8)}});
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    return fmt::format("this system does not let us make hosts (by the package iproute2): {}", error.what());
  }
  return "";
}

HostLab::HostLab(const std::vector<HostRate>& hosts, const Uplinks& uplinks) {
  catch_signals();
  while (names_.size() <= hosts.size()) names_.push_back(fmt::format("foretrain-{}-{}", getpid(), next_number++));
  try {
    run_script("make", names_);
    throw_if_interrupted();
    shape(hosts, uplinks);
  } catch (...) {
    remove();
    throw;
  }
}

HostLab::~HostLab() { remove(); }

void HostLab::shape(const std::vector<HostRate>& hosts, const Uplinks& uplinks) {
  if (static_cast<int>(hosts.size()) != this->hosts()) throw std::invalid_argument("one rate per host");
  std::string cards;
  for (int host = 0; host < this->hosts(); ++host) {
    const HostRate& rate = hosts[at_index(host)];
    cards += fmt::format("{} {:.0f} {:.0f}\n", name(host), rate.out.value(), rate.in.value());
  }
  run_script("shape",
             {names_.front(), fmt::format("{}", least_segments), fmt::format("{}", uplinks.hosts_per_leaf),
              fmt::format("{:.0f}", uplinks.rate.value())},
             cards);
}

void HostLab::remove() noexcept {
  try {
    run_script("remove", names_);
  } catch (const std::exception&) {
    // The next start removes the rest.
  }
}

}  // namespace foretrain
