#include "reports/serve/predictors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <system_error>
#include <utility>

#include "reports/serve/messages.hpp"

namespace foretrain {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* less_work =
    "a smaller scenario, \"fidelity\": \"estimate\", or `foretrain predict` on a machine of your own";

/// Status, a line end, body.
std::string text_of(const HttpAnswer& answer) { return fmt::format("{}\n{}", answer.status, answer.body); }

HttpAnswer answer_of(const std::string& text) {
  const std::size_t end = text.find('\n');
  return {std::stoi(text.substr(0, end)), text.substr(end + 1)};
}

void limit_memory(std::size_t bytes) {
  const rlimit limit{bytes, bytes};
  if (bytes > 0) setrlimit(RLIMIT_DATA, &limit);
}

void answer_questions(int socket, const Predictors::Answerer& answerer) {
  while (const std::optional<std::string> question = receive_message(socket)) {
    if (!send_message(socket, text_of(answerer(*question)))) return;
  }
}

/// The other end of a new process's socket; not open where the system refuses the process.
Descriptor started(Process& process, std::size_t memory, const Predictors::Answerer& answerer) {
  try {
    SocketPair pair;
    process = Process::copy([&] {
      pair.ours.close();
      limit_memory(memory);
      answer_questions(pair.theirs.number(), answerer);
    });
    return std::move(pair.ours);
  } catch (const std::system_error&) {
    return {};
  }
}

/// Replaces the processes whose numbers come in, until nobody is there any more who could send one.
void keep_processes(int control, const Predictors::Limits& limits, const Predictors::Answerer& answerer) {
  std::vector<Process> processes(limits.processes);
  while (const std::optional<std::string> number = receive_message(control)) {
    Process& process = processes[std::stoul(*number)];
    process = Process();  // ends the one before
    if (!send_descriptor(control, started(process, limits.memory, answerer))) return;
  }
}

}  // namespace

Predictors::Predictors(const Limits& limits, Answerer answerer) : limits_(limits), sockets_(limits.processes) {
  SocketPair pair;
  keeper_ = Process::copy([&] {
    pair.ours.close();
    keep_processes(pair.theirs.number(), limits, answerer);
  });
  control_ = std::move(pair.ours);
  for (std::size_t i = 0; i < limits.processes; ++i) {
    replace(i);
    idle_.push_back(i);
  }
}

void Predictors::replace(std::size_t process) {
  const std::scoped_lock alone(keeper_mutex_);
  sockets_[process].close();
  if (send_message(control_.number(), std::to_string(process))) {
    sockets_[process] = receive_descriptor(control_.number());
  }
}

std::optional<std::size_t> Predictors::take_idle(Moment deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return stopping_ || !idle_.empty(); });
  if (stopping_ || idle_.empty()) return std::nullopt;
  const std::size_t process = idle_.back();
  idle_.pop_back();
  return process;
}

HttpAnswer Predictors::ask(const std::string& question) {
  const Moment deadline = Clock::now() + limits_.time;
  const std::optional<std::size_t> process = take_idle(deadline);
  if (!process) return complaint(503, "there are too many questions before this one", "ask again in a while");
  HttpAnswer answer = ask(*process, question, deadline);
  {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(*process);
  }
  changed_.notify_one();
  return answer;
}

/// One that died while it had nothing to do is replaced first.
bool Predictors::send_question(std::size_t process, const std::string& question) {
  const auto send = [&] { return sockets_[process].open() && send_message(sockets_[process].number(), question); };
  if (send()) return true;
  replace(process);
  return send();
}

HttpAnswer Predictors::ask(std::size_t process, const std::string& question, Moment deadline) {
  if (!send_question(process, question)) {
    return complaint(503, "the system refuses the process of a prediction", "ask again in a while");
  }
  std::string text;
  const Waited waited = receive_message(sockets_[process].number(), text, deadline, stop_.reader.number());
  if (waited == Waited::message) return answer_of(text);
  if (waited == Waited::stopped) return complaint(503, "the server is ending", "ask the next one");
  replace(process);
  if (waited == Waited::gone) return complaint(500, "the process of this prediction has ended", less_work);
  return complaint(503, fmt::format("no answer within {} s", std::chrono::duration<double>(limits_.time).count()),
                   less_work);
}

void Predictors::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  const char told = 0;
  [[maybe_unused]] const ssize_t ignored = ::write(stop_.writer.number(), &told, 1);  // nobody reads it: all see it
  changed_.notify_all();
}

}  // namespace foretrain
