#include "reports/cli/workers.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "model/base/descriptor.hpp"
#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "reports/result/json.hpp"

namespace foretrain {

namespace {

/// Header of a worker's reply; its text follows.
struct ReplyHeader {
  Reply::Kind kind = Reply::Kind::failure;
  std::size_t length = 0;
};

/// Neighbours that one worker takes at a time.
struct Run {
  std::size_t next = 0, end = 0;
};

std::string_view bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

/// Appends what there is, once there is something; false when the other side is gone.
bool receive_some(int socket, std::string& received) {
  char buffer[65536];
  for (;;) {
    const ssize_t count = recv(socket, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    received.append(buffer, static_cast<std::size_t>(count));
    return true;
  }
}

template <typename Value>
std::optional<Value> take(std::string_view& received) {
  if (received.size() < sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, received.data(), sizeof value);
  received.remove_prefix(sizeof value);
  return value;
}

/// Replies to runs of tasks until the other side is gone.
void reply_to_runs(int socket, const TextTask& task) {
  std::string received, message;
  while (receive_some(socket, received)) {
    std::string_view left = received;
    while (const std::optional<Run> run = take<Run>(left)) {
      for (std::size_t index = run->next; index < run->end; ++index) {
        const Reply reply = reply_to([&] { return task(index); });
        message = bytes_of(ReplyHeader{reply.kind, reply.text.size()});
        if (!send_all(socket, message += reply.text)) return;
      }
    }
    received = left;
  }
}

/// A forked process that carries out its orders, one run after the other.
class Worker {
 public:
  explicit Worker(const TextTask& task) {
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw_system_error("cannot talk to a worker");
    socket_ = Descriptor(pair[0]);
    const Descriptor theirs(pair[1]);
    process_ = Process::copy([&] {
      socket_.close();
      reply_to_runs(theirs.number(), task);
    });
  }

  [[nodiscard]] int socket() const { return socket_.number(); }
  [[nodiscard]] std::deque<Run>& runs() { return runs_; }
  [[nodiscard]] std::size_t tasks_left() const { return tasks_left_; }
  /// Whether it runs out of work before its replies are read again, if these take as long as the last ones.
  [[nodiscard]] bool wants_more() const { return tasks_left_ < last_replies_; }

  /// A worker that is gone shows when its reply is asked for.
  void start(const Run& run) {
    runs_.push_back(run);
    tasks_left_ += run.end - run.next;
    send_all(socket(), bytes_of(run));
  }

  /// Waits for some of its replies and tells `observe` of them. False when the worker died over the next one.
  bool receive(const std::function<void(std::size_t, Reply)>& observe) {
    if (!receive_some(socket(), received_)) return false;
    std::string_view left = received_;
    for (last_replies_ = 0;; ++last_replies_) {
      std::string_view rest = left;
      const std::optional<ReplyHeader> header = take<ReplyHeader>(rest);
      if (!header || rest.size() < header->length) break;
      observe(runs_.front().next++, {std::string(rest.substr(0, header->length)), header->kind});
      if (runs_.front().next == runs_.front().end) runs_.pop_front();
      left = rest.substr(header->length);
    }
    tasks_left_ -= last_replies_;
    received_.erase(0, received_.size() - left.size());
    return true;
  }

  /// Closes the connection, at which an idle worker leaves, and waits for it. Says how it ended.
  std::string finish() {
    shutdown(socket(), SHUT_RDWR);  // closing alone would not do: later workers hold copies of this end
    return "the process " + process_.wait().text();
  }

 private:
  Process process_;
  Descriptor socket_;
  std::deque<Run> runs_;
  std::size_t tasks_left_ = 0, last_replies_ = 0;
  std::string received_;  ///< of replies that are not there as a whole
};

/// Hands out runs of neighbours: long ones, and yet enough of them that all workers end at about the same time.
class Runs {
 public:
  Runs(std::size_t count, int workers) : left_{0, count}, workers_(static_cast<std::size_t>(workers)) {}

  [[nodiscard]] bool empty() const { return left_.next == left_.end && again_.empty(); }
  Run take() {
    if (!again_.empty()) {
      const Run run = again_.back();
      again_.pop_back();
      return run;
    }
    constexpr std::size_t longest = 256, runs_per_worker = 8;
    const std::size_t length =
        std::clamp<std::size_t>((left_.end - left_.next) / (workers_ * runs_per_worker), 1, longest);
    const std::size_t first = std::exchange(left_.next, left_.next + length);
    return {first, left_.next};
  }
  void put_back(const Run& run) {
    if (run.next < run.end) again_.push_back(run);
  }

 private:
  Run left_;
  std::size_t workers_;
  std::vector<Run> again_;
};

template <typename... Errors>
bool is_one_of(const std::exception& error) {
  return (... || (dynamic_cast<const Errors*>(&error) != nullptr));
}

}  // namespace

Reply reply_of(const std::exception& error) {
  if (is_one_of<ScenarioError, UsageError, ImpossiblePlan>(error)) return {error.what(), Reply::Kind::bad_input};
  if (is_one_of<std::bad_alloc>(error)) return {"there is not enough memory", Reply::Kind::interrupted};
  if (is_one_of<std::system_error>(error)) return {error.what(), Reply::Kind::interrupted};
  return {is_one_of<std::logic_error>(error) ? internal_error_text(error.what()) : error.what(), Reply::Kind::failure};
}

Reply reply_to(const std::function<std::string()>& task) {
  try {
    return {task(), Reply::Kind::answer};
  } catch (const std::exception& error) {
    return reply_of(error);
  } catch (...) {
    return {"an error without a text", Reply::Kind::failure};
  }
}

void answer_all(std::size_t count, int workers, const TextTask& task,
                const std::function<void(std::size_t index, Reply reply)>& observe, const std::function<bool()>& stop) {
  const int patience = stop ? 200 : -1;  // milliseconds
  Runs runs(count, workers);
  std::vector<Worker> busy;
  // If the system refuses a worker (descriptors, processes), the others do its work.
  const auto hire = [&] {
    try {
      busy.emplace_back(task).start(runs.take());
      return true;
    } catch (const std::system_error&) {
      if (busy.empty()) throw;
      return false;
    }
  };
  while (!runs.empty() && static_cast<int>(busy.size()) < workers && hire()) continue;
  while (!busy.empty()) {
    if (stop && stop()) return;
    // Replies are looked at together: to be woken for each costs as much as a short prediction.
    constexpr auto pause = std::chrono::milliseconds(4);
    if (std::ranges::all_of(busy, [](const Worker& w) { return w.tasks_left() > 1; }))
      std::this_thread::sleep_for(pause);
    std::vector<pollfd> sockets;
    for (const Worker& worker : busy) sockets.push_back({worker.socket(), POLLIN, 0});
    if (poll(sockets.data(), sockets.size(), patience) < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "waiting for workers");
    }
    // From the back, so that erasing a worker leaves the places of the others as they are.
    for (std::size_t i = busy.size(); i-- > 0;) {
      if (sockets[i].revents == 0) continue;
      Worker& worker = busy[i];
      const bool died = !worker.receive(observe);
      if (died) {
        const std::size_t over = worker.runs().front().next++;
        std::ranges::for_each(worker.runs(), [&](const Run& run) { runs.put_back(run); });
        observe(over, {worker.finish(), Reply::Kind::interrupted});
      }
      while (!died && worker.wants_more() && !runs.empty()) worker.start(runs.take());
      if (died || worker.tasks_left() == 0) {
        busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(i));
        if (!runs.empty()) hire();
      }
    }
  }
}

int default_workers() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

std::vector<Outcome> predict_all(std::size_t count, int workers, const Predictor& predictor,
                                 const std::function<void()>& advance) {
  std::vector<Outcome> outcomes(count);
  const TextTask task = [&](std::size_t index) { return to_json(predictor(index)); };
  answer_all(count, workers, task, [&](std::size_t index, Reply reply) {
    Outcome& outcome = outcomes[index];
    if (reply.kind == Reply::Kind::answer) {
      outcome.result = result_from_json(reply.text);
    } else {
      outcome = {std::nullopt, std::move(reply.text), reply.kind == Reply::Kind::bad_input};
    }
    if (advance) advance();
  });
  return outcomes;
}

}  // namespace foretrain
