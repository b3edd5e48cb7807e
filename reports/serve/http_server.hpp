// A server of HTTP/1.1: cpp-httplib, with bounds on what a client may take: bytes, time, and connections at a time. It
// is a module of its own, loaded when somebody serves.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "reports/serve/answer.hpp"

namespace foretrain {

struct HttpRequest {
  std::string method, path;
  std::string query;                              ///< from the question mark on, as it came
  std::string host, origin, site, authorization;  ///< headers; `site`: Sec-Fetch-Site
  std::string content_type, content_encoding, content_length, transfer_encoding;
  std::string body;
};

/// Its functions are called from several threads.
struct HttpService {
  std::string host;
  int port = 0;  ///< 0: any that is free
  std::size_t most_clients = 64;
  std::size_t most_bytes = 1 << 20;            ///< of a body
  std::chrono::milliseconds patience{10'000};  ///< for a whole request, and for the client to take its answer
  int hang_up = -1;                            ///< once this descriptor can be read, connections are closed
  /// What is said where the client's request, or too many clients, leave no other answer.
  std::function<HttpAnswer(int status)> complain;
  /// Asked before the body is read: what is refused, and everything that has no body.
  std::function<std::optional<HttpAnswer>(const HttpRequest&)> answer_early;
  /// Asked with the body.
  std::function<HttpAnswer(HttpRequest)> answer;
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// The port that it listens at from now on. Nothing where the system refuses it.
  virtual std::optional<int> bind() = 0;
  /// Answers until stop(), and until whoever has been heard by then has been answered. False where the system closes
  /// the socket.
  virtual bool run() = 0;
  /// Takes no more connections. From any thread.
  virtual void stop() = 0;

  /// Throws std::runtime_error where cpp-httplib cannot be loaded.
  static std::unique_ptr<HttpServer> make(const HttpService& service);
};

}  // namespace foretrain
