#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <thread>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/served.hpp"
#include "reports/serve/predictors.hpp"
#include "reports/serve/service.hpp"

namespace foretrain {

namespace {

struct ServeOptions {
  std::string host = "127.0.0.1", token_file, limit = "30 s";
  int port = 8642, jobs = 1;
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
  Access access{loopback, std::nullopt, 1 << 20};
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

/// Three quarters of the machine's memory, shared out among the processes.
Predictors::Limits limits_of(const ServeOptions& options) {
  const auto memory =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto processes = static_cast<std::size_t>(options.jobs);
  return {processes, time_limit(options.limit), memory / 4 * 3 / processes};
}

/// SIGINT, SIGTERM, and the end of the process that keeps the others, for whoever waits for them; no thread and no
/// process from now on is disturbed by them.
sigset_t hold_signals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
  return held;
}

/// Until a signal comes, or the system closes the server. Whoever is being answered has a moment until that is over.
ExitStatus serve(HttpServer& server, Predictors& predictors, Pipe& hang_up, const sigset_t& signals) {
  const std::jthread runner([&] {
    if (!server.run()) kill(getpid(), SIGCHLD);
  });
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  predictors.stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  hang_up.writer.close();
  if (signal != SIGCHLD) return ExitStatus::success;
  warn("the processes that predict, or the server's socket, are gone");
  return ExitStatus::prediction_failed;
}

ExitStatus run(const ServeOptions& options) {
  const Access access = access_of(options);
  const sigset_t signals = hold_signals();
  constexpr std::size_t most_remembered = 64'000'000;
  const auto session = std::make_shared<Session>(most_remembered);  // each process has a copy of its own
  Predictors predictors(limits_of(options), [session](const std::string& question) {
    const SessionScope scope(*session);
    return answer_question(question);
  });
  const Service service(access, [&](const std::string& question) { return predictors.ask(question); });
  Pipe hang_up;
  HttpService http;
  http.host = options.host;
  http.port = options.port;
  http.most_bytes = access.most_bytes;
  http.hang_up = hang_up.reader.number();
  http.complain = complaint_of_status;
  http.answer_early = [&](const HttpRequest& request) { return service.answer_early(request); };
  http.answer = [&](HttpRequest request) { return service.answer(std::move(request)); };
  const std::unique_ptr<HttpServer> server = HttpServer::make(http);
  const std::optional<int> port = server->bind();
  if (!port) {
    throw UsageError(
        fmt::format("cannot listen at {}, port {}; another --port, or --host", options.host, options.port));
  }
  const bool is_v6 = options.host.find(':') != std::string::npos;
  warn(fmt::format("predicts at http://{}:{}/ until Ctrl-C", is_v6 ? "[" + options.host + "]" : options.host, *port));
  return serve(*server, predictors, hang_up, signals);
}

}  // namespace

void add_serve(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "predictions over HTTP, for pages and scripts");
  command->add_option("--port", options->port, "where it listens (default: 8642; 0: any free port)")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535).description(""));
  command
      ->add_option("--host", options->host, "the address that it listens at (default: 127.0.0.1, this machine alone)")
      ->type_name("ADDRESS");
  command
      ->add_option("--token-file", options->token_file,
                   "the token that clients must know; needed where others can reach it")
      ->type_name("FILE");
  command->add_option("--limit", options->limit, "the longest that an answer may take (default: 30 s)")
      ->type_name("TIME");
  add_jobs(*command, options->jobs);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain
