#include "reports/cli/workers.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "model/base/error.hpp"
#include "reports/json.hpp"

namespace foretrain {

namespace {

/// What begins a worker's answer; the text follows.
struct AnswerHeader {
  enum class Kind : std::uint8_t { result, bad_input, failure } kind = Kind::failure;
  std::size_t length = 0;
};

/// Sends all bytes; false when the other side is gone.
bool send_all(int socket, const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// Receives exactly `size` bytes; false when the other side is gone.
bool receive_all(int socket, void* data, std::size_t size) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = recv(socket, bytes, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    bytes += received;
    size -= static_cast<std::size_t>(received);
  }
  return true;
}

[[noreturn]] void work(int socket, const Predictor& predictor) {
  std::size_t index = 0;
  while (receive_all(socket, &index, sizeof index)) {
    const Outcome outcome = predict_here(predictor, index);
    const std::string text = outcome.result ? to_json(*outcome.result) : outcome.error;
    const AnswerHeader header{outcome.result      ? AnswerHeader::Kind::result
                              : outcome.bad_input ? AnswerHeader::Kind::bad_input
                                                  : AnswerHeader::Kind::failure,
                              text.size()};
    if (!send_all(socket, &header, sizeof header) || !send_all(socket, text.data(), text.size())) break;
  }
  _exit(EXIT_SUCCESS);  // no destructors, no flushing: buffers and files belong to the parent
}

/// A forked process that predicts what it is told to, one number at a time.
class Worker {
 public:
  explicit Worker(const Predictor& predictor) {
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail("cannot talk to a worker");
    process_ = fork();
    if (process_ < 0) {
      close(pair[0]);
      close(pair[1]);
      fail("cannot start a worker");
    }
    if (process_ == 0) {
      close(pair[0]);
      work(pair[1], predictor);
    }
    close(pair[1]);
    socket_ = pair[0];
  }
  ~Worker() { finish(); }
  Worker(Worker&& other) noexcept
      : process_(std::exchange(other.process_, -1)), socket_(std::exchange(other.socket_, -1)), task_(other.task_) {}
  Worker& operator=(Worker&& other) noexcept {
    std::swap(process_, other.process_);
    std::swap(socket_, other.socket_);
    std::swap(task_, other.task_);
    return *this;
  }

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] std::size_t task() const { return task_; }

  /// A worker that is gone shows when its answer is asked for.
  void start(std::size_t index) {
    task_ = index;
    send_all(socket_, &index, sizeof index);
  }

  /// The answer to start(); empty when the worker died over it.
  std::optional<Outcome> answer() {
    AnswerHeader header;
    if (!receive_all(socket_, &header, sizeof header)) return std::nullopt;
    std::string text(header.length, '\0');
    if (!receive_all(socket_, text.data(), text.size())) return std::nullopt;
    if (header.kind != AnswerHeader::Kind::result) {
      return Outcome{std::nullopt, std::move(text), header.kind == AnswerHeader::Kind::bad_input};
    }
    return Outcome{result_from_json(text), "", false};
  }

  /// Closes the connection, at which an idle worker leaves, and waits for it. Says how it ended.
  std::string finish() {
    if (process_ < 0) return "";
    shutdown(socket_, SHUT_RDWR);  // closing alone would not do: later workers hold copies of this end
    close(socket_);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    process_ = -1;
    if (!WIFSIGNALED(status)) return fmt::format("the process ended with status {}", WEXITSTATUS(status));
    return fmt::format("the process was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }

 private:
  [[noreturn]] static void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

  pid_t process_ = -1;
  int socket_ = -1;
  std::size_t task_ = 0;
};

}  // namespace

Outcome predict_here(const Predictor& predictor, std::size_t index) {
  try {
    return {predictor(index), "", false};
  } catch (const ScenarioError& error) {
    return {std::nullopt, error.what(), true};
  } catch (const UsageError& error) {
    return {std::nullopt, error.what(), true};
  } catch (const std::exception& error) {
    return {std::nullopt, error.what(), false};
  }
}

int default_workers() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

std::vector<Outcome> predict_all(std::size_t count, int workers, const Predictor& predictor, const Observer& observer) {
  std::vector<Outcome> outcomes(count);
  std::vector<Worker> busy;
  std::size_t next = 0;
  const auto done = [&](std::size_t index, Outcome outcome) {
    outcomes[index] = std::move(outcome);
    if (observer) observer(index, outcomes[index]);
  };
  while (next < count && static_cast<int>(busy.size()) < workers) busy.emplace_back(predictor).start(next++);
  while (!busy.empty()) {
    std::vector<pollfd> sockets;
    for (const Worker& worker : busy) sockets.push_back({worker.socket(), POLLIN, 0});
    if (poll(sockets.data(), sockets.size(), -1) < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "waiting for workers");
    }
    // From the back, so that erasing a worker leaves the places of the others as they are.
    for (std::size_t i = busy.size(); i-- > 0;) {
      if (sockets[i].revents == 0) continue;
      std::optional<Outcome> outcome = busy[i].answer();
      const std::size_t task = busy[i].task();
      const bool died = !outcome;
      done(task, died ? Outcome{std::nullopt, busy[i].finish(), false} : std::move(*outcome));
      if (next == count) {
        busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        if (died) busy[i] = Worker(predictor);
        busy[i].start(next++);
      }
    }
  }
  return outcomes;
}

}  // namespace foretrain
