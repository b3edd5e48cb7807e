// `foretrain serve`: a server that has each request answered by a process of its own, which runs `serve --answer`.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <semaphore>

#include "model/base/files.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/import/importer.hpp"
#include "reports/result/json.hpp"
#include "reports/serve/service.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

// Messages between the server and the process that answers, in MessagePack: bytes in any encoding.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpRequest, method, path, parameters, content_type, body)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpAnswer, status, body, type)

namespace {

using nlohmann::json;

struct ServeOptions {
  std::string host = "127.0.0.1", token_file, limit = "30 s";
  int port = 8642, jobs = 1;
  bool answers = false;  ///< one request of a server, from standard input
};

// ---- the process that answers

/// Name of a scenario without a file.
constexpr const char* unnamed = "scenario.yaml";

struct Question {
  std::string scenario, fidelity;  ///< a name or a text; no fidelity: flows
  std::vector<std::string> set;
  bool is_text = false;

  /// The first value counts; settings add up.
  void take(const std::string& key, const json& value) {
    if (key == "set" && value.is_array() && std::ranges::all_of(value, &json::is_string)) {
      set.insert(set.end(), value.begin(), value.end());
    } else if ((key == "scenario" || key == "fidelity") && value.is_string()) {
      std::string& said = key == "scenario" ? scenario : fidelity;
      if (said.empty()) said = value;
    } else {
      throw UsageError(fmt::format("\"{}\": unknown, or of another kind; {}", shortened(key, 60),
                                   R"({"scenario": "a name or YAML", "set": ["plan.tensor=4"], "fidelity": "flows"})"));
    }
  }
};

/// Nothing where a text is no JSON and need be none.
json parse_json(const HttpRequest& request) {
  try {
    return json::parse(request.body);
  } catch (const json::exception& error) {
    if (!request.content_type.starts_with("application/json")) return {};
    refuse_json(error, request.body, "the request",
                "a scenario as YAML, or {\"scenario\": \"a name or YAML\"} as JSON");
  }
}

/// A body is the scenario, unless it is JSON with a key `scenario`; the rest stands behind the address's question mark.
Question read_question(const HttpRequest& request) {
  Question question;
  json body = request.method == "POST" ? parse_json(request) : json();
  question.is_text = request.method == "POST" && !body.contains("scenario");
  if (question.is_text) {
    question.scenario = request.body;
    body = nullptr;
  }
  for (const auto& [key, value] : body.items()) question.take(key, value);
  for (const auto& [key, value] : request.parameters) {
    question.take(key, key == "set" ? json::array({value}) : json(value));
  }
  question.is_text = question.is_text || question.scenario.find_first_of(":\n{") != std::string::npos;
  return question;
}

std::filesystem::path file_of(const std::string& name) {
  return catalogue_file(Catalogue::run, Field(yaml_scalar(name, {"", 0, 0}), "scenario"));
}

YamlNode document_of(const Question& question) {
  if (!question.is_text) return scenario_document(file_of(question.scenario), question.set);
  std::string_view text = question.scenario;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as of a file, whose byte order mark is no part of it
  YamlNode document = parse_yaml(text, unnamed);
  for (const std::string& change : question.set) apply_override(document, parse_override(change));
  return document;
}

/// The same bytes as `foretrain predict --json` prints.
HttpAnswer predicted(const HttpRequest& request) {
  const Question question = read_question(request);
  if (question.scenario.empty()) {
    return complaint(400, "no scenario; GET /predict?scenario=gpt2-xl-dgx-a100, or POST /predict with one as the body");
  }
  require_text(question.scenario, unnamed);
  const Fidelity fidelity = fidelity_named(question.fidelity.empty() ? "flows" : question.fidelity);
  const std::string name = std::filesystem::path(question.is_text ? unnamed : question.scenario).stem().string();
  const Scenario scenario = planned_scenario(document_of(question), name, fidelity);
  Result result = predict(scenario, fidelity);
  result.resolved = resolved_values(scenario);
  return {200, to_json(result) + "\n"};
}

HttpAnswer listed(const std::vector<CatalogueEntry>& entries) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CatalogueEntry& entry : entries) {
    all.push_back({{"name", entry.name}, {"kind", entry.kind}, {"description", entry.description}});
  }
  return {200, all.dump(2) + "\n"};
}

HttpAnswer answered(const HttpRequest& request) {
  const std::filesystem::path path(request.path);
  if (request.path == "/predict") return predicted(request);
  if (request.path == "/scenarios") return listed(list_scenarios());
  if (request.path == "/models") return listed(list_models());
  if (request.path == "/hardware") return listed(list_hardware());
  if (path.parent_path() == "/scenarios") return {200, read_text_file(file_of(path.filename())), "application/yaml"};
  return complaint(404, "there is nothing at this address; /, /predict, /scenarios, /models, /hardware or /schema");
}

/// Scenarios name nothing but the catalogue.
HttpAnswer answer_request(const HttpRequest& request) {
  refuse_paths();
  try {
    return answered(request);
  } catch (const ScenarioError& error) {
    return complaint(error);
  } catch (const std::exception& error) {
    const Reply reply = reply_of(error);
    if (reply.kind != Reply::Kind::interrupted) {
      return complaint(reply.kind == Reply::Kind::bad_input ? 400 : 500, reply.text);
    }
    return complaint(503, reply.text, "ask again in a while, or of a smaller scenario");
  }
}

std::chrono::milliseconds time_limit(const std::string& text) {
  try {
    const double seconds = parse_quantity<Seconds>(text).value();
    if (seconds >= 0.1 && seconds <= 3600.0) return std::chrono::milliseconds(static_cast<int>(1000.0 * seconds));
  } catch (const UnitError&) {  // no time at all
  }
  throw UsageError(fmt::format("--limit {}: a time from 100 ms to 1 h", text));
}

/// Ends with the server and at its limits.
ExitStatus answer_standard_input(const ServeOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A terminal's Ctrl-C and a service manager's end are for all processes: the server's moment holds for this one.
  for (const int number : {SIGINT, SIGTERM}) signal(number, SIG_IGN);
  const auto limit = time_limit(options.limit).count();
  const itimerval timer{{0, 0}, {limit / 1000, limit % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  // Three quarters of the machine's memory, shared out among the processes.
  const auto bytes = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4 * 3 / options.jobs);
  const rlimit memory{bytes, bytes};
  setrlimit(RLIMIT_DATA, &memory);
  const std::string request = read_file("-", {});
  std::string answer;
  json::to_msgpack(answer_request(json::from_msgpack(request)), answer);
  print(answer);
  return ExitStatus::success;
}

// ---- the server

HttpAnswer answer_by_process(const HttpRequest& request, const ServeOptions& options) {
  std::string question;
  json::to_msgpack(request, question);
  const FilterResult said = run_filter(
      {"/proc/self/exe", "serve", "--answer", "--limit", options.limit, "--jobs", std::to_string(options.jobs)},
      question);
  if (said.status == 0) return json::from_msgpack(said.output);
  constexpr const char* less_work =
      "a smaller scenario, \"fidelity\": \"estimate\", or `foretrain predict` on a machine of your own";
  if (said.status != 128 + SIGALRM) return complaint(500, "the process of this prediction has ended", less_work);
  const std::chrono::duration<double> limit = time_limit(options.limit);
  return complaint(503, fmt::format("no answer within {} s", limit.count()), less_work);
}

HttpAnswer ask_process(const HttpRequest& request, const ServeOptions& options, std::counting_semaphore<>& places) {
  if (!places.try_acquire_for(time_limit(options.limit))) {
    return complaint(503, "there are too many questions before this one; ask again in a while");
  }
  HttpAnswer answer = complaint(503, "the system refuses the process of a prediction; ask again in a while");
  try {
    answer = answer_by_process(request, options);
  } catch (const std::exception&) {
    // Of processes, descriptors or memory there may be more later.
  }
  places.release();
  return answer;
}

/// That clients must know; nothing where this machine alone can reach the address.
std::optional<std::string> token_of(const ServeOptions& options) {
  if (options.token_file.empty() && is_loopback(options.host)) return std::nullopt;
  if (options.token_file.empty()) {
    throw UsageError(fmt::format("--host {}: others can reach it; --token-file FILE with the token that they must know",
                                 options.host));
  }
  std::string token(trim(read_text_file(options.token_file)));
  if (token.size() >= 16 && token.find_first_of(" \t\r\n") == std::string::npos) return token;
  throw UsageError(options.token_file +
                   ": a token is one word of at least 16 characters; openssl rand -hex 32 makes one");
}

/// Handles Ctrl-C and SIGTERM: running answers have a moment to finish.
extern "C" void end_in_a_moment(int) {
  usleep(300'000);
  _exit(ExitStatus::success);
}

ExitStatus run(const ServeOptions& options) {
  if (options.answers) return answer_standard_input(options);
  const std::optional<std::string> token = token_of(options);
  time_limit(options.limit);
  std::counting_semaphore places(options.jobs);  // of processes that answer
  const bool is_v6 = options.host.find(':') != std::string::npos;
  const auto answer = [&](const HttpRequest& request) {
    const std::optional<HttpAnswer> own = own_answer(request, is_loopback(options.host), token);
    return own ? *own : ask_process(request, options, places);
  };
  const auto tell = [&](int port) {
    warn(fmt::format("predicts at http://{}:{}/ until Ctrl-C", is_v6 ? "[" + options.host + "]" : options.host, port));
  };
  const HttpService http{options.host, options.port, answer, complaint_of_status, tell};
  signal(SIGPIPE, SIG_IGN);
  for (const int ending : {SIGINT, SIGTERM}) signal(ending, end_in_a_moment);
  if (serve_http(http)) return ExitStatus::success;
  throw UsageError(fmt::format("cannot listen at {}, port {}; another --port, or --host", options.host, options.port));
}

}  // namespace

void add_serve(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<ServeOptions>(app, "serve", "Serve predictions over HTTP", status, run);
  add_number(command, "--port", options.port, 0, 65535, "port to listen on (default: 8642; 0: any free port)")
      ->type_name("PORT");
  add_text(command, "--host", options.host, "ADDRESS", "address to listen on (default: 127.0.0.1, this machine only)");
  add_text(command, "--token-file", options.token_file, "FILE",
           "file with the token of clients; required if other machines can connect");
  add_text(command, "--limit", options.limit, "TIME", "timeout of an answer (default: 30 s)");
  command.add_flag("--answer", options.answers, "")->group("");
  add_jobs(command, options.jobs);
}

}  // namespace foretrain
