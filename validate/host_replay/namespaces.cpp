#include "validate/host_replay/namespaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

constexpr const char* folder = "/run/netns";

std::atomic<int> next_number{0};

/// Runs `ip` or `tc`, which must succeed. Throws UsageError with the command and what it said.
FilterResult run_command(const std::vector<std::string>& command, const std::string& input = "") {
  FilterResult result;
  try {
    result = run_filter(command, input);
  } catch (const std::system_error& error) {
    throw UsageError(fmt::format("{}: {}: install iproute2 and ethtool", command.front(), error.code().message()));
  }
  if (result.status == 0) return result;
  throw UsageError(fmt::format("{}: {}", fmt::join(command, " "), trim(result.errors)));
}

/// A shell's script within a namespace.
void run_within(const std::string& name, const std::string& script) {
  run_command({"ip", "netns", "exec", name, "sh", "-c", script});
}

/// Lines of `ip` within a namespace.
void set_links(const std::string& name, const std::string& lines) {
  run_command({"ip", "-n", name, "-batch", "-"}, lines);
}

/// Queues never overflow: every connection has at most `window` bytes under way (settings below), 16 hosts.
constexpr double window = 1.5e6;
constexpr double queue_bytes = 32e6;

std::string rate_word(BytesPerSecond rate) { return fmt::format("{:.0f}bit", rate.value() * 8.0); }

std::string bucket(const std::string& device, BytesPerSecond rate) {
  return fmt::format("qdisc replace dev {} root tbf rate {} burst {:.0f} limit {:.0f}\n", device, rate_word(rate),
                     shaped_rate(rate).burst.value(), queue_bytes);
}

/// TCP as large transfers on a quiet network want it, equal for all executors:
/// - nothing is lost, so the window should open fully and stay open: Reno, whose slow start ends at a loss only (that
///   of cubic when the queue grows, which it does behind a token bucket), no restart after a pause, no memory of
///   earlier connections;
/// - no connection may fill the queue of its own card (limit_queue), where other connections wait behind it.
std::string tcp_settings() {
  return fmt::format(
      "; cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control && echo 0 >tcp_slow_start_after_idle && "
      "echo 1 >tcp_no_metrics_save && "
      "echo '4096 {0:.0f} {0:.0f}' >tcp_wmem && echo '4096 {0:.0f} {0:.0f}' >tcp_rmem",
      window);
}

/// No announcements and solicitations of IPv6, for cards to come too; kernels without it need nothing.
constexpr const char* without_ipv6 =
    "if cd /proc/sys/net/ipv6/conf 2>/dev/null; then echo 1 >all/disable_ipv6; echo 1 >default/disable_ipv6; fi";

std::string card_address(int host) { return fmt::format("02:00:00:00:00:{:02x}", host + 1); }

/// Where the others are: nobody asks, so that only a replay's own bytes pass.
std::string neighbours_of(int host, int hosts) {
  std::string entries;
  for (int other = 0; other < hosts; ++other) {
    if (other == host) continue;
    entries +=
        fmt::format("neigh replace {} lladdr {} dev eth0 nud permanent\n", host_address(other), card_address(other));
  }
  return entries;
}

/// What one connection may have in the queue of its card: three packets, which keep it busy while the next one is made.
/// Connections then share the card fairly, and short messages do not wait long.
std::string limit_queue(Bytes largest_packet) {
  return fmt::format("echo {:.0f} >/proc/sys/net/ipv4/tcp_limit_output_bytes", 3.0 * largest_packet.value());
}

std::vector<std::string> namespaces_there() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void delete_namespace(const std::string& name) noexcept {
  try {
    run_command({"ip", "netns", "delete", name});
  } catch (const std::exception&) {
    // What is left is removed at the next start.
  }
}

}  // namespace

std::string host_address(int host) { return fmt::format("10.77.0.{}", host + 1); }

ShapedRate shaped_rate(BytesPerSecond rate) {
  ShapedRate shape;
  const double packet = ShapedRate::payload + ShapedRate::header;
  shape.segments = std::clamp(static_cast<int>(std::lround(rate.value() * 200e-6 / packet)), 4, 40);
  // The kernel's limit counts IP and TCP headers once.
  shape.largest_packet = Bytes(shape.segments * number(ShapedRate::payload) + ShapedRate::header);
  // The bucket must hold what a packet counts for: the headers of all its segments.
  shape.burst = Bytes(shape.segments * packet);
  return shape;
}

std::vector<std::string> leftovers(const std::vector<std::string>& names) {
  std::vector<std::string> dead;
  for (const std::string& name : names) {
    int process = 0, number = 0;
    char more = 0;
    if (std::sscanf(name.c_str(), "foretrain-%d-%d%c", &process, &number, &more) != 2 || process <= 0) continue;
    if (kill(process, 0) != 0 && errno == ESRCH) dead.push_back(name);
  }
  return dead;
}

bool enter_namespace(const std::string& name) noexcept {
  char path[256];
  std::snprintf(path, sizeof path, "%s/%s", folder, name.c_str());
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  return file >= 0 && setns(file, CLONE_NEWNET) == 0;
}

std::string why_no_namespaces() {
  if (geteuid() != 0) return "hosts are network namespaces, and only root may make them";
  try {
    const HostLab lab({{BytesPerSecond(1.25e8), BytesPerSecond(1.25e8)}});
  } catch (const std::exception& error) {
    return fmt::format("this system does not let us make hosts: {}", error.what());
  }
  return "";
}

HostLab::HostLab(const std::vector<HostRate>& hosts, const Uplinks& uplinks) {
  catch_signals();
  for (const std::string& name : leftovers(namespaces_there())) delete_namespace(name);
  const auto new_name = [] { return fmt::format("foretrain-{}-{}", getpid(), next_number++); };
  for (std::size_t host = 0; host < hosts.size(); ++host) names_.push_back(new_name());
  switch_ = new_name();
  try {
    make();
    shape(hosts, uplinks);
  } catch (...) {
    remove();
    throw;
  }
}

HostLab::~HostLab() { remove(); }

void HostLab::make() {
  run_command({"ip", "netns", "add", switch_});
  run_within(switch_, without_ipv6);
  // A bridge that watches multicast announces that it does.
  set_links(switch_, "link add br0 type bridge mcast_snooping 0\nlink set br0 up\n");
  for (int host = 0; host < hosts(); ++host) {
    throw_if_interrupted();
    run_command({"ip", "netns", "add", name(host)});
    run_within(name(host), without_ipv6 + tcp_settings());
    set_links(name(host), fmt::format("link add eth0 address {} type veth peer name port{} netns {}\n"
                                      "addr add {}/24 dev eth0\nlink set lo up\nlink set eth0 up\n",
                                      card_address(host), host, switch_, host_address(host)) +
                              neighbours_of(host, hosts()));
    set_links(switch_, fmt::format("link set port{} up\n", host));
  }
}

/// Leaves are bridges, and the first bridge is their spine. A cable that goes down takes along what its bridges know of
/// who is behind it.
int HostLab::hang_on_leaves(const Uplinks& uplinks) {
  const int each = uplinks.hosts_per_leaf, leaves = each > 0 ? (hosts() + each - 1) / each : 0;
  std::string links;
  for (; leaves_ < leaves; ++leaves_) {
    links += fmt::format(
        "link add leaf{0} type bridge mcast_snooping 0\nlink set leaf{0} up\n"
        "link add up{0} type veth peer name down{0}\nlink set up{0} master leaf{0}\nlink set down{0} master br0\n",
        leaves_);
  }
  for (int leaf = 0; leaf < leaves_; ++leaf) {
    for (const char* end : {"up", "down"}) {
      links += fmt::format("link set {0}{1} down\n", end, leaf);
      if (leaf < leaves) links += fmt::format("link set {0}{1} up\n", end, leaf);
    }
  }
  for (int host = 0; host < hosts(); ++host) {
    links += fmt::format("link set port{} master {}\n", host, each > 0 ? fmt::format("leaf{}", host / each) : "br0");
  }
  set_links(switch_, links);
  return leaves;
}

void HostLab::shape(const std::vector<HostRate>& hosts, const Uplinks& uplinks) {
  if (static_cast<int>(hosts.size()) != this->hosts()) throw std::invalid_argument("one rate per host");
  const int leaves = hang_on_leaves(uplinks);
  std::string ports;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    for (const char* end : {"up", "down"}) ports += bucket(fmt::format("{}{}", end, leaf), uplinks.rate);
  }
  for (int host = 0; host < this->hosts(); ++host) {
    const HostRate& rate = hosts[at_index(host)];
    ports += bucket(fmt::format("port{}", host), rate.in);
    run_command({"tc", "-n", name(host), "-batch", "-"}, bucket("eth0", rate.out));
    // A packet that is larger than the receiving card's bucket would be cut there at great cost.
    double largest = shaped_rate(rate.out).largest_packet.value();
    for (const HostRate& other : hosts) largest = std::min(largest, shaped_rate(other.in).largest_packet.value());
    if (leaves > 0) largest = std::min(largest, shaped_rate(uplinks.rate).largest_packet.value());
    set_links(name(host), fmt::format("link set dev eth0 gso_max_size {:.0f}\n", largest));
    run_within(name(host), limit_queue(Bytes(largest)));
  }
  run_command({"tc", "-n", switch_, "-batch", "-"}, ports);
}

void HostLab::set_offload(bool joined) const {
  const std::string word = joined ? "on" : "off";
  for (int host = 0; host < hosts(); ++host) {
    run_command({"ip", "netns", "exec", name(host), "ethtool", "-K", "eth0", "tso", word, "gso", word});
  }
}

HostLab::Counters HostLab::counters(int host) const {
  const FilterResult result = run_command({"ip", "-n", name(host), "-s", "-j", "link", "show", "dev", "eth0"});
  const nlohmann::json link = nlohmann::json::parse(result.output).at(0).at("stats64");
  return {link.at("tx").at("bytes"), link.at("tx").at("packets"), link.at("rx").at("bytes")};
}

void HostLab::remove() noexcept {
  for (const std::string& name : names_) delete_namespace(name);
  if (!switch_.empty()) delete_namespace(switch_);
}

}  // namespace foretrain
