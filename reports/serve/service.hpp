// Answers of the server; reports/docs/serve.md lists the addresses.
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
  std::string body, type = "application/json";
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
  std::function<HttpAnswer(const HttpRequest& request)> answer;
  std::function<HttpAnswer(int status)> complain;  ///< the answer to a refused request
  std::function<void(int port)> listening;
};

/// Serves until the process ends, one request a connection, by cpp-httplib, a module that is loaded when somebody
/// serves. False where the system refuses the address or closes the socket. Throws std::runtime_error where the module
/// cannot be loaded.
bool serve_http(const HttpService& service);

/// Refusals, the page and the schema; nothing: a process is to be asked. `loopback_only`: only this machine's own names
/// are right in Host. Who does not know the token gets the page alone.
std::optional<HttpAnswer> own_answer(const HttpRequest& request, bool loopback_only,
                                     const std::optional<std::string>& token);

/// An answer that says what is wrong, and what would be right, as JSON: {"error", "file", "line", "column", "key",
/// "remedy"}; of places only what is known. Without a remedy the text is "what is wrong; what would be right".
HttpAnswer complaint(int status, std::string error, std::string remedy = "");
/// The same of bad input: status 400.
HttpAnswer complaint(const ScenarioError& error);
/// Error answer for a request that is no HTTP, too large or too long, or of another method.
HttpAnswer complaint_of_status(int status);

/// Whether all of these addresses are this machine's own.
bool is_loopback(const std::string& host);

/// The page on which one writes a scenario and sees its prediction: page.html, which CMake makes a text of.
std::string_view prediction_page();

}  // namespace foretrain
