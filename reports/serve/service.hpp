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

#include "reports/serve/http_server.hpp"

namespace foretrain {

struct Access {
  bool loopback_only = true;         ///< only this machine's own names are right in Host
  std::optional<std::string> token;  ///< who does not know it gets the page alone
};

class Service {
 public:
  /// Answers a request that passed the checks of access; called from any thread.
  using Ask = std::function<HttpAnswer(const HttpRequest& request)>;
  Service(Access access, Ask ask) : access_(std::move(access)), ask_(std::move(ask)) {}

  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) const;

 private:
  [[nodiscard]] std::optional<HttpAnswer> refusal(const HttpRequest& request) const;
  [[nodiscard]] bool is_known(const std::string& authorization) const;

  Access access_;
  Ask ask_;
};

/// What is wrong with a request that is no HTTP, too large or too long, or of another method.
HttpAnswer complaint_of_status(int status);

/// Whether all of these addresses are this machine's own.
bool is_loopback(const std::string& host);

}  // namespace foretrain
