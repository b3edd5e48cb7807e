// A server of HTTP/1.1: cpp-httplib with its own limits. It is a module, loaded when somebody serves.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

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

/// Serves until the process ends, one request a connection. False where the system refuses the address or closes the
/// socket. Throws std::runtime_error where cpp-httplib cannot be loaded.
bool serve_http(const HttpService& service);

}  // namespace foretrain
