// A server of HTTP/1.1: cpp-httplib with its own limits. It is a module, loaded when somebody serves.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "reports/serve/answer.hpp"

namespace foretrain {

struct HttpRequest {
  std::string method, path;
  std::multimap<std::string, std::string> parameters;  ///< behind the question mark, decoded
  std::string host, origin, site, authorization;       ///< headers; `site`: Sec-Fetch-Site
  std::string content_type, body;
};

/// Its functions are called from several threads.
struct HttpService {
  std::string host;
  int port = 0;  ///< 0: any that is free
  std::size_t most_clients = 64;
  std::size_t most_bytes = 1 << 20;   ///< of a body
  std::chrono::seconds patience{10};  ///< for each part of a request, and for the client to take its answer
  std::function<HttpAnswer(const HttpRequest&)> answer;
  /// The answer to a refused request, by its status.
  std::function<HttpAnswer(int status)> complain;
  std::function<void(int port)> listening;
};

/// Serves until the process ends, one request a connection. False where the system refuses the address or closes the
/// socket. Throws std::runtime_error where cpp-httplib cannot be loaded.
bool serve_http(const HttpService& service);

}  // namespace foretrain
