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
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.hpp"

namespace foretrain {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
};

struct HttpRequest {
  std::string method, path;
  std::vector<std::pair<std::string, std::string>> parameters;  ///< behind the question mark, decoded
  std::string host, origin, site, authorization;                ///< headers; `site`: Sec-Fetch-Site
  std::string content_type, body;
};

/// Its functions are called from several threads.
struct HttpService {
  std::string host;
  int port = 0;  ///< 0: any that is free
  std::function<HttpAnswer(const HttpRequest&)> answer;
  /// The answer to a refused request, by its status.
  std::function<HttpAnswer(int status)> complain;
  std::function<void(int port)> listening;
};

/// Serves until the process ends, one request a connection, by cpp-httplib, a module that is loaded when somebody
/// serves. False where the system refuses the address or closes the socket. Throws std::runtime_error where the module
/// cannot be loaded.
bool serve_http(const HttpService& service);

struct Access {
  bool loopback_only = true;         ///< only this machine's own names are right in Host
  std::optional<std::string> token;  ///< who does not know it gets the page alone
};

/// `ask` answers what passes the checks of access and is neither the page nor the schema.
HttpAnswer answer_to(const HttpRequest& request, const Access& access,
                     const std::function<HttpAnswer(const HttpRequest& request)>& ask);

/// An answer that says what is wrong, and what would be right, as JSON: {"error", "file", "line", "column", "key",
/// "remedy"}; of places only what is known.
HttpAnswer complaint(int status, const std::string& error, const std::string& remedy);
/// The same of bad input: status 400.
HttpAnswer complaint(const ScenarioError& error);
/// The same of a text "what is wrong; what would be right".
HttpAnswer complaint(int status, const std::string& text);
/// What is wrong with a request that is no HTTP, too large or too long, or of another method.
HttpAnswer complaint_of_status(int status);

/// Whether all of these addresses are this machine's own.
bool is_loopback(const std::string& host);

/// The page on which one writes a scenario and sees its prediction: page.html, which CMake makes a text of.
std::string_view prediction_page();

}  // namespace foretrain
