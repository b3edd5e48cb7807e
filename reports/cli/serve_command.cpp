#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/served.hpp"
#include "reports/serve/service.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

struct ServeOptions {
  std::string host = "127.0.0.1", token_file, limit = "30 s";
  int port = 8642, jobs = 1;
  bool answers = false;  ///< one request of a server, from standard input
};

std::string read_token(const std::string& file) {
  std::string token(trim(read_text_file(file)));
  if (token.size() < 16 || token.find_first_of(" \t\r\n") != std::string::npos) {
    throw UsageError(file + ": a token is one word of at least 16 characters; openssl rand -hex 32 makes one");
  }
  return token;
}

Access access_of(const ServeOptions& options) {
  const bool loopback = is_loopback(options.host);
  if (!loopback && options.token_file.empty()) {
    throw UsageError(fmt::format("--host {}: others can reach it; --token-file FILE with the token that they must know",
                                 options.host));
  }
  Access access{loopback, std::nullopt};
  if (!options.token_file.empty()) access.token = read_token(options.token_file);
  return access;
}

std::chrono::milliseconds time_limit(const std::string& text) {
  try {
    const double seconds = parse_quantity<Seconds>(text).value();
    if (seconds >= 0.1 && seconds <= 3600.0) return std::chrono::milliseconds(static_cast<int>(1000.0 * seconds));
  } catch (const UnitError& error) {
    throw UsageError(fmt::format("--limit: {}", error.what()));
  }
  throw UsageError(fmt::format("--limit {}: a time from 100 ms to 1 h", text));
}

/// What a request is to the process that answers it: bytes in any encoding, in either direction.
std::string question_of(const HttpRequest& request) {
  const json question = {request.method, request.path, request.content_type, request.body,
                         std::vector(request.parameters.begin(), request.parameters.end())};
  std::string bytes;
  json::to_msgpack(question, bytes);
  return bytes;
}

HttpRequest request_of(const std::string& question) {
  const json all = json::from_msgpack(question);
  const std::vector<std::pair<std::string, std::string>> parameters = all.at(4);
  HttpRequest request;
  request.method = all.at(0);
  request.path = all.at(1);
  request.content_type = all.at(2);
  request.body = all.at(3);
  request.parameters = {parameters.begin(), parameters.end()};
  return request;
}

/// Three quarters of the machine's memory, shared out among the processes.
std::size_t memory_of_process(int processes) {
  const auto memory =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return memory / 4 * 3 / static_cast<std::size_t>(processes);
}

/// In the process that answers one request: status, type, a line end, body. It ends with the server and at its limits.
ExitStatus answer_standard_input(const ServeOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto limit = time_limit(options.limit).count();
  const itimerval timer{{0, 0}, {limit / 1000, limit % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  const std::size_t bytes = memory_of_process(options.jobs);
  const rlimit memory{bytes, bytes};
  setrlimit(RLIMIT_DATA, &memory);
  const std::string question{std::istreambuf_iterator<char>(std::cin), {}};
  const HttpAnswer answer = answer_request(request_of(question));
  print(fmt::format("{} {}\n{}", answer.status, answer.type, answer.body));
  return ExitStatus::success;
}

/// Places that are taken in the order in which they were asked for.
class Turns {
 public:
  explicit Turns(int places) : free_(places) {}

  /// False where none came free in time.
  bool take(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    const std::uint64_t turn = next_++;
    waiting_.push_back(turn);
    const bool came = change_.wait_for(lock, limit, [&] { return free_ > 0 && waiting_.front() == turn; });
    std::erase(waiting_, turn);
    if (came) --free_;
    change_.notify_all();
    return came;
  }
  void give_back() {
    const std::scoped_lock lock(mutex_);
    ++free_;
    change_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  int free_;
  std::uint64_t next_ = 0;
  std::deque<std::uint64_t> waiting_;
};

/// Answers requests by as many processes as there may be.
class Predictors {
 public:
  explicit Predictors(const ServeOptions& options)
      : command_(
            {"/proc/self/exe", "serve", "--answer", "--limit", options.limit, "--jobs", std::to_string(options.jobs)}),
        limit_(time_limit(options.limit)),
        turns_(options.jobs) {}

  HttpAnswer ask(const HttpRequest& request) {
    if (!turns_.take(limit_)) {
      return complaint(503, "there are too many questions before this one", "ask again in a while");
    }
    HttpAnswer answer = complaint(503, "the system refuses the process of a prediction", "ask again in a while");
    try {
      answer = answer_of(run_filter(command_, question_of(request)));
    } catch (const std::exception&) {
      // Of processes, descriptors or memory there may be more later.
    }
    turns_.give_back();
    return answer;
  }

 private:
  [[nodiscard]] HttpAnswer answer_of(const FilterResult& said) const {
    constexpr const char* less_work =
        "a smaller scenario, \"fidelity\": \"estimate\", or `foretrain predict` on a machine of your own";
    if (said.status == 128 + SIGALRM) {
      return complaint(503, fmt::format("no answer within {} s", std::chrono::duration<double>(limit_).count()),
                       less_work);
    }
    if (said.status != 0) return complaint(500, "the process of this prediction has ended", less_work);
    const std::size_t type = said.output.find(' ') + 1, body = said.output.find('\n') + 1;
    return {std::stoi(said.output), said.output.substr(body), said.output.substr(type, body - 1 - type)};
  }

  std::vector<std::string> command_;
  std::chrono::milliseconds limit_;
  Turns turns_;
};

/// From now on Ctrl-C and SIGTERM end the program, once those who are being answered have had a moment.
void end_at_signals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
  std::thread([held] {
    int signal = 0;
    sigwait(&held, &signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::_Exit(ExitStatus::success);
  }).detach();
}

ExitStatus run(const ServeOptions& options) {
  if (options.answers) return answer_standard_input(options);
  const Access access = access_of(options);
  Predictors predictors(options);
  const Service service(access, [&](const HttpRequest& request) { return predictors.ask(request); });
  const bool is_v6 = options.host.find(':') != std::string::npos;
  HttpService http;
  http.host = options.host;
  http.port = options.port;
  http.complain = complaint_of_status;
  http.answer = [&](const HttpRequest& request) { return service.answer(request); };
  http.listening = [&](int port) {
    warn(fmt::format("predicts at http://{}:{}/ until Ctrl-C", is_v6 ? "[" + options.host + "]" : options.host, port));
  };
  signal(SIGPIPE, SIG_IGN);
  end_at_signals();
  if (serve_http(http)) return ExitStatus::success;
  throw UsageError(fmt::format("cannot listen at {}, port {}; another --port, or --host", options.host, options.port));
}

}  // namespace

void add_serve(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "predictions over HTTP, for pages and scripts");
  add_number(*command, "--port", options->port, 0, 65535, "where it listens (default: 8642; 0: any free port)")
      ->type_name("PORT");
  command
      ->add_option("--host", options->host, "the address that it listens at (default: 127.0.0.1, this machine alone)")
      ->type_name("ADDRESS");
  command
      ->add_option("--token-file", options->token_file,
                   "the token that clients must know; needed where others can reach it")
      ->type_name("FILE");
  command->add_option("--limit", options->limit, "the longest that an answer may take (default: 30 s)")
      ->type_name("TIME");
  command->add_flag("--answer", options->answers, "")->group("");
  add_jobs(*command, options->jobs);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
