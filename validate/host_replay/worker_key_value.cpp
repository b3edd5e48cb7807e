#include "validate/host_replay/worker.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <span>
#include <stdexcept>

#include "model/base/number.hpp"
#include "validate/host_replay/sockets.hpp"
#include "validate/host_replay/worker_step.hpp"

namespace foretrain {

namespace {

enum class Command : std::int32_t { push, pull, value };

/// Before every message; a value follows a push or a value.
struct Header {
  Command command = Command::push;
  std::int32_t key = 0;
};

/// One end of a connection: messages to be sent, in order, and the one that is coming in.
class Channel {
 public:
  Channel(Descriptor socket, int peer) : socket_(std::move(socket)), peer_(peer) {}

  void post(Header header, const float* values = nullptr, std::size_t count = 0) {
    out_.push_back({header, reinterpret_cast<const char*>(values), count * sizeof(float), 0});
  }

  [[nodiscard]] pollfd wish(bool receiving) const {
    return {socket_.number(), static_cast<short>((receiving ? POLLIN : 0) | (out_.empty() ? 0 : POLLOUT)), 0};
  }
  [[nodiscard]] bool idle() const { return out_.empty(); }
  [[nodiscard]] int peer() const { return peer_; }

  void send() {
    while (!out_.empty()) {
      Message& message = out_.front();
      const bool in_header = message.done < sizeof(Header);
      const char* from = in_header ? reinterpret_cast<const char*>(&message.header) + message.done
                                   : message.values + (message.done - sizeof(Header));
      const std::size_t left = (in_header ? sizeof(Header) : sizeof(Header) + message.bytes) - message.done;
      const std::size_t sent = left == 0 ? 0 : send_some(socket_, from, left, peer_);
      message.done += sent;
      if (message.done == sizeof(Header) + message.bytes) {
        out_.pop_front();
      } else if (sent < left) {
        return;
      }
    }
  }

  /// Receives what is there. `place` says where the values of a message go and how many there are; `done` is told of
  /// every complete message.
  template <typename Place, typename Done>
  void receive(const Place& place, const Done& done) {
    if (in_bytes_ < sizeof(Header)) {
      in_bytes_ += receive_some(socket_, reinterpret_cast<char*>(&in_) + in_bytes_, sizeof(Header) - in_bytes_, peer_);
      if (in_bytes_ < sizeof(Header)) return;
      target_ = place(in_);
    } else {
      const std::size_t have = in_bytes_ - sizeof(Header);
      in_bytes_ +=
          receive_some(socket_, reinterpret_cast<char*>(target_.data()) + have, target_.size_bytes() - have, peer_);
    }
    if (in_bytes_ - sizeof(Header) < target_.size_bytes()) return;
    in_bytes_ = 0;
    done(in_, target_);
  }

 private:
  struct Message {
    Header header;
    const char* values;
    std::size_t bytes, done;
  };
  Descriptor socket_;
  int peer_;
  std::deque<Message> out_;
  Header in_;
  std::size_t in_bytes_ = 0;
  std::span<float> target_;
};

std::vector<Channel> open_channels(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  const bool worker = process < task.ranks;
  std::vector<int> peers(at_index(worker ? task.servers() : task.ranks));
  std::iota(peers.begin(), peers.end(), worker ? task.ranks : 0);
  std::vector<Descriptor> sockets = connect_with(task, process, peers, barrier);
  std::vector<Channel> channels;
  channels.reserve(peers.size());
  for (const int peer : peers) channels.emplace_back(std::move(sockets[at_index(peer)]), peer);
  return channels;
}

/// Waits until something can be sent or received on one of the channels, and does it.
template <typename Place, typename Done>
void serve(std::vector<Channel>& channels, const Place& place, const Done& done) {
  std::vector<pollfd> ends;
  ends.reserve(channels.size());
  for (const Channel& channel : channels) ends.push_back(channel.wish(true));
  if (poll(ends.data(), ends.size(), 1000) <= 0) return;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if ((ends[i].revents & POLLOUT) != 0) channels[i].send();
    if ((ends[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0) {
      channels[i].receive([&](Header header) { return place(i, header); },
                          [&](Header header, std::span<float> values) { done(i, header, values); });
    }
  }
}

ValueRange values_of_key(const WorkerTask& task, int key) {
  return values_of({.source = 0, .destination = 1, .first_chunk = key, .chunks = 1}, task.elements, task.keys);
}

int keys_on(const WorkerTask& task, int server) {
  int count = 0;
  for (int key = 0; key < task.keys; ++key) count += key % task.servers() == server ? 1 : 0;
  return count;
}

class Worker {
 public:
  Worker(const WorkerTask& task, int process, ProcessBarrier& barrier)
      : task_(task), process_(process), channels_(open_channels(task, process, barrier)) {
    gradients_.resize(at_index(task.elements));
    result_.resize(gradients_.size());
  }

  void prepare() {
    for (std::int64_t i = 0; i < task_.elements; ++i) gradients_[at_index(i)] = contribution(process_, i);
    std::fill(result_.begin(), result_.end(), 0.0F);
  }

  void run() {
    for (int key = 0; key < task_.keys; ++key) {
      Channel& server = channels_[at_index(key % task_.servers())];
      const std::span<float> values = part(gradients_, key);
      server.post({Command::push, key}, values.data(), values.size());
      server.post({Command::pull, key});
    }
    for (int missing = task_.keys; missing > 0;) {
      serve(
          channels_, [&](std::size_t, Header header) { return part(result_, header.key); },
          [&](std::size_t, Header, std::span<float>) { --missing; });
    }
  }

  /// Only where nobody is ahead is it known what has been added up.
  void check() const {
    if (task_.bound == 0) check_sums(task_, result_);
  }

 private:
  [[nodiscard]] std::span<float> part(std::vector<float>& values, int key) const {
    if (key < 0 || key >= task_.keys) throw std::runtime_error(fmt::format("a message about key {}", key));
    const ValueRange range = values_of_key(task_, key);
    return {values.data() + range.first, at_index(range.count)};
  }

  const WorkerTask& task_;
  int process_;
  std::vector<Channel> channels_;
  std::vector<float> gradients_, result_;
};

class Server {
 public:
  Server(const WorkerTask& task, int process, ProcessBarrier& barrier)
      : task_(task),
        channels_(open_channels(task, process, barrier)),
        keys_(keys_on(task, process - task.ranks)),
        sums_(at_index(task.keys)),
        incoming_(channels_.size()) {
    for (int key = process - task.ranks; key < task.keys; key += task.servers()) {
      sums_[at_index(key)].values.resize(at_index(values_of_key(task, key).count));
    }
  }

  void prepare() {
    for (Sum& sum : sums_) {
      std::fill(sum.values.begin(), sum.values.end(), 0.0F);
      sum.pushed.assign(at_index(task_.ranks), 0);
      sum.waiting.clear();
    }
  }

  /// Until every worker has asked for every key and has been answered.
  void run() {
    unanswered_ = keys_ * task_.ranks * task_.iterations;
    const auto sending = [&] {
      return std::any_of(channels_.begin(), channels_.end(), [](const Channel& c) { return !c.idle(); });
    };
    while (unanswered_ > 0 || sending()) {
      serve(
          channels_, [&](std::size_t worker, Header header) { return place(worker, header); },
          [&](std::size_t worker, Header header, std::span<float> values) { take(worker, header, values); });
    }
  }

 private:
  struct Sum {
    std::vector<float> values;
    std::vector<int> pushed;           ///< by worker: how often
    std::vector<std::size_t> waiting;  ///< workers that have asked for it
  };

  Sum& sum_of(Header header) {
    if (header.key < 0 || header.key >= task_.keys || sums_[at_index(header.key)].values.empty()) {
      throw std::runtime_error(fmt::format("a message about key {}, which lives elsewhere", header.key));
    }
    return sums_[at_index(header.key)];
  }

  std::span<float> place(std::size_t worker, Header header) {
    if (header.command == Command::pull) return {};
    incoming_[worker].resize(sum_of(header).values.size());
    return incoming_[worker];
  }

  /// A worker that has pushed i times is answered when all have pushed i - bound times.
  void take(std::size_t worker, Header header, std::span<float> values) {
    Sum& sum = sum_of(header);
    if (header.command == Command::push) {
      for (std::size_t i = 0; i < values.size(); ++i) sum.values[i] += values[i];
      ++sum.pushed[worker];
    } else {
      sum.waiting.push_back(worker);
    }
    const int least = *std::ranges::min_element(sum.pushed);
    std::erase_if(sum.waiting, [&](std::size_t asking) {
      if (sum.pushed[asking] - task_.bound > least) return false;
      channels_[asking].post({Command::value, header.key}, sum.values.data(), sum.values.size());
      --unanswered_;
      return true;
    });
  }

  const WorkerTask& task_;
  std::vector<Channel> channels_;
  int keys_;
  int unanswered_ = 0;
  std::vector<Sum> sums_;
  std::vector<std::vector<float>> incoming_;
};

}  // namespace

void run_key_value(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  if (task.servers() < 1) throw std::runtime_error("a key-value store needs a server");
  if (process < task.ranks) {
    Worker worker(task, process, barrier);
    StepRunner runner(task, process, [&](const StepTask&) { worker.run(); });
    measure(task, process, barrier, {[&] { worker.prepare(); }, [&] { runner.run(); }, [&] { worker.check(); }});
    runner.write();
  } else {
    Server server(task, process, barrier);
    measure(task, process, barrier, {[&] { server.prepare(); }, [&] { server.run(); }, [] {}});
  }
}

}  // namespace foretrain
