#include "reports/cli/fork_tasks.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "sim/child_process.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

struct AnswerOf {
  std::size_t task = 0, length = 0;
};

void write_all(int pipe, const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(pipe, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(EXIT_FAILURE);  // the parent is gone
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

/// Takes the next task as long as there are any.
[[noreturn]] void work_on_tasks(int pipe, std::size_t count, const std::function<std::string(std::size_t)>& task,
                                std::atomic<std::size_t>& next) {
  try {
    for (std::size_t i = next++; i < count; i = next++) {
      const std::string answer = task(i);
      const AnswerOf header{i, answer.size()};
      write_all(pipe, &header, sizeof header);
      write_all(pipe, answer.data(), answer.size());
    }
  } catch (const std::exception& error) {
    const AnswerOf header{count, std::strlen(error.what())};  // no task's: the reason of an end
    write_all(pipe, &header, sizeof header);
    write_all(pipe, error.what(), header.length);
  }
  _exit(EXIT_SUCCESS);
}

/// What one process has sent so far.
struct Connection {
  pid_t process = -1;
  int pipe = -1;
  std::string received;
};

Connection start_process(std::size_t count, const std::function<std::string(std::size_t)>& task,
                         std::atomic<std::size_t>& next) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "cannot talk to a worker");
  const pid_t process = fork();
  if (process < 0) throw std::system_error(errno, std::generic_category(), "cannot start a worker");
  if (process == 0) {
    close(ends[0]);
    work_on_tasks(ends[1], count, task, next);
  }
  close(ends[1]);
  return {process, ends[0], ""};
}

class Answers {
 public:
  Answers(std::size_t count, const std::function<void(std::size_t)>& done) : answers_(count), done_(done) {}

  /// Takes whole answers out of what was received.
  void take(std::string& received) {
    AnswerOf header;
    while (received.size() >= sizeof header) {
      std::memcpy(&header, received.data(), sizeof header);
      if (received.size() < sizeof header + header.length) return;
      std::string text = received.substr(sizeof header, header.length);
      received.erase(0, sizeof header + header.length);
      if (header.task == answers_.size()) throw std::runtime_error(text);
      answers_[header.task] = std::move(text);
      if (done_) done_(++there_);
    }
  }
  [[nodiscard]] bool complete() const { return there_all(); }
  [[nodiscard]] std::vector<std::string> result() && { return std::move(answers_); }

 private:
  [[nodiscard]] bool there_all() const {
    return std::ranges::none_of(answers_, [](const std::string& answer) { return answer.empty(); });
  }
  std::vector<std::string> answers_;
  std::function<void(std::size_t)> done_;
  std::size_t there_ = 0;
};

/// Ends the processes when it goes away.
struct Processes {
  std::vector<Connection> all;
  ~Processes() {
    for (const Connection& one : all) {
      if (one.pipe >= 0) {
        kill(one.process, SIGKILL);
        close(one.pipe);
      }
      while (waitpid(one.process, nullptr, 0) < 0 && errno == EINTR) continue;
    }
  }
};

}  // namespace

std::vector<std::string> run_tasks_in_processes(std::size_t count, const std::function<std::string(std::size_t)>& task,
                                                int workers, const std::function<void(std::size_t)>& done) {
  const SharedMemory memory(sizeof(std::atomic<std::size_t>));
  auto& next = memory.as<std::atomic<std::size_t>>(1).front();
  Answers answers(count, done);
  Processes processes;
  const auto wanted = std::min(count, static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < wanted; ++i) processes.all.push_back(start_process(count, task, next));
  while (!interrupted()) {
    std::vector<pollfd> pipes;
    for (const Connection& one : processes.all) pipes.push_back({one.pipe, POLLIN, 0});  // negative: passed over
    if (std::ranges::all_of(pipes, [](const pollfd& pipe) { return pipe.fd < 0; })) break;
    if (poll(pipes.data(), pipes.size(), 200) < 0) continue;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].revents == 0) continue;
      Connection& one = processes.all[i];
      char buffer[65536];
      const ssize_t got = read(one.pipe, buffer, sizeof buffer);
      if (got > 0) {
        one.received.append(buffer, static_cast<std::size_t>(got));
        answers.take(one.received);
      } else if (got == 0) {
        close(one.pipe);
        one.pipe = -1;
      }
    }
  }
  if (!interrupted() && !answers.complete()) throw std::runtime_error("a worker of the search died");
  return std::move(answers).result();
}

}  // namespace foretrain
