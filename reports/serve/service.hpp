// What the server answers to whom. Of the addresses:
//   GET /                     the page
//   GET /predict?scenario=NAME&set=KEY=VALUE&fidelity=estimate
//   POST /predict             a scenario as YAML, or {"scenario", "set", "fidelity"} as JSON
//   GET /scenarios, /models, /hardware; /scenarios/NAME, the file
//   GET /schema               of results
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/serve/http_server.hpp"

namespace foretrain {

/// What is asked of the processes that predict.
struct Question {
  std::string what;      ///< predict, scenarios, scenario, models, hardware, schema
  std::string scenario;  ///< predict: a name or a text, or "" where `body` says it; scenario: the name
  std::vector<std::string> set;
  std::string fidelity;
  std::string body;
  bool is_json = false;  ///< the body, the client says

  [[nodiscard]] std::string text() const;
  static Question of(const std::string& text);
};

struct Access {
  bool loopback_only = true;         ///< only this machine's own names are right in Host
  std::optional<std::string> token;  ///< who does not know it gets the page alone
  std::size_t most_bytes = 0;        ///< of a body
};

class Service {
 public:
  using Ask = std::function<HttpAnswer(const std::string& question)>;
  Service(Access access, Ask ask) : access_(std::move(access)), ask_(std::move(ask)) {}

  /// The answer, or why there will be none. Nothing where the body is needed.
  [[nodiscard]] std::optional<HttpAnswer> answer_early(const HttpRequest& request) const;
  [[nodiscard]] HttpAnswer answer(HttpRequest request) const;

 private:
  [[nodiscard]] std::optional<HttpAnswer> refusal(const HttpRequest& request) const;
  [[nodiscard]] bool is_known(const std::string& authorization) const;
  [[nodiscard]] HttpAnswer got(const HttpRequest& request) const;

  Access access_;
  Ask ask_;
};

/// What is wrong with a request that is no HTTP, too large or too long, and with a client too many.
HttpAnswer complaint_of_status(int status);

/// Whether all of these addresses are this machine's own.
bool is_loopback(const std::string& host);

}  // namespace foretrain
