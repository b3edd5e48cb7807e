// Processes that answer questions one after the other, for callers in several threads. One that crashes, or takes
// longer than it may, is ended and replaced; nobody else notices.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/base/descriptor.hpp"
#include "model/base/process.hpp"
#include "reports/serve/answer.hpp"

namespace foretrain {

class Predictors {
 public:
  /// Answers a question in a process of its own, which remembers what it has learnt.
  using Answerer = std::function<HttpAnswer(const std::string& question)>;

  struct Limits {
    std::size_t processes = 1;
    std::chrono::milliseconds time{30'000};  ///< from the question to its answer
    std::size_t memory = 0;                  ///< bytes of a process; 0: as many as there are
  };

  /// Starts the processes. To be made while this process has a single thread: whoever starts and ends them, one more
  /// process, is a copy of this one.
  Predictors(const Limits& limits, Answerer answerer);

  /// Waits for a process that is free, and for its answer; what went wrong is an answer, too. From any thread.
  HttpAnswer ask(const std::string& question);

  /// Whoever waits is told that the server ends, now and from now on.
  void stop();

 private:
  using Moment = std::chrono::steady_clock::time_point;

  std::optional<std::size_t> take_idle(Moment deadline);
  HttpAnswer ask(std::size_t process, const std::string& question, Moment deadline);
  bool send_question(std::size_t process, const std::string& question);
  void replace(std::size_t process);

  Limits limits_;
  Pipe stop_;
  Process keeper_;  ///< starts and ends the others
  Descriptor control_;
  std::mutex keeper_mutex_;
  std::vector<Descriptor> sockets_;  ///< of each process

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> idle_;
  bool stopping_ = false;
};

}  // namespace foretrain
