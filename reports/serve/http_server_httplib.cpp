// The module: the only place that sees cpp-httplib.
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "reports/serve/service.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_clients = 64;
constexpr std::size_t most_bytes = 1 << 20;   // of a body
constexpr std::chrono::seconds patience(10);  // for a request to come, and for the client to take its answer

void put(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  response.set_content(answer.body, answer.type);
}

/// Behind the question mark; the library would cut "set=plan.tensor=4" at the last "=".
std::vector<std::pair<std::string, std::string>> parameters_of(const std::string& target) {
  std::istringstream query(target.substr(std::min(target.find('?'), target.size() - 1) + 1));
  std::vector<std::pair<std::string, std::string>> parameters;
  for (std::string part; std::getline(query, part, '&');) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string value = part.substr(std::min(equals + 1, part.size()));
    parameters.emplace_back(httplib::detail::decode_url(part.substr(0, equals), true),
                            httplib::detail::decode_url(value, true));
  }
  return parameters;
}

HttpRequest request_of(const httplib::Request& request) {
  const auto header = [&](const char* name) { return request.get_header_value(name); };
  return {request.method,          request.path,           parameters_of(request.target),
          header("Host"),          header("Origin"),       header("Sec-Fetch-Site"),
          header("Authorization"), header("Content-Type"), ""};
}

/// 0 where the library's own limits hold: not for bodies without an end, packed ones, many ranges of one answer.
int refused_status(const httplib::Request& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && request.method != "POST") return 405;
  if (!reads && (!request.has_header("Content-Length") || request.has_header("Transfer-Encoding"))) return 411;
  if (request.has_header("Content-Encoding")) return 415;
  return request.ranges.empty() ? 0 : 416;
}

/// A connection whose request must come in time as a whole, however often bytes of it do.
class Timed : public httplib::Stream {
 public:
  explicit Timed(httplib::Stream& stream) : stream_(stream) {}
  bool is_readable() const override { return stream_.is_readable(); }
  bool is_writable() const override { return stream_.is_writable(); }
  ssize_t read(char* bytes, size_t size) override {
    return std::chrono::steady_clock::now() < until_ ? stream_.read(bytes, size) : -1;
  }
  ssize_t write(const char* bytes, size_t size) override { return stream_.write(bytes, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { stream_.get_remote_ip_and_port(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { stream_.get_local_ip_and_port(ip, port); }
  socket_t socket() const override { return stream_.socket(); }

 private:
  httplib::Stream& stream_;
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + patience;
};

class Server : public httplib::Server {
 public:
  explicit Server(const HttpService& service) : service_(service) {
    new_task_queue = [] { return new httplib::ThreadPool(most_clients); };
    // No other server may listen at the same port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_tcp_nodelay(true);
    set_payload_max_length(most_bytes);
    set_read_timeout(patience);
    set_write_timeout(patience);
    set_default_headers({{"Cache-Control", "no-store"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"Referrer-Policy", "no-referrer"},
                         {"Content-Security-Policy",
                          "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const int status = refused_status(request);
      if (status != 0) put(service_.complain(status), response);
      return status != 0 ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      put(service_.answer(request_of(request)), response);
    });
    // Read as it comes: the library would take a form's body for parameters.
    Post(".*",
         [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& content) {
           HttpRequest asked = request_of(request);
           const bool whole = content([&](const char* bytes, std::size_t size) {
             asked.body.append(bytes, size);
             return true;
           });
           put(whole ? service_.answer(asked) : service_.complain(response.status == 413 ? 413 : 400), response);
         });
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) put(service_.complain(response.status), response);
    });
    set_exception_handler([this](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      put(service_.complain(500), response);
    });
  }

  bool run() {
    const bool any = service_.port == 0;
    const int port = any ? bind_to_any_port(service_.host) : service_.port;
    if (port <= 0 || (!any && !bind_to_port(service_.host, port))) return false;
    ::listen(svr_sock_, SOMAXCONN);  // the library lets five wait: the next would try again after a second
    service_.listening(port);
    return listen_after_bind();
  }

 private:
  /// Later versions of the library (0.18; not 0.11) ask for both ends of the connection.
  template <typename Library>
  static bool process(Library& library, httplib::Stream& stream) {
    bool closed = false;
    if constexpr (requires { library.process_request(stream, true, closed, nullptr); }) {
      return library.process_request(stream, true, closed, nullptr);
    } else {
      std::string remote, local;
      int remote_port = 0, local_port = 0;
      stream.get_remote_ip_and_port(remote, remote_port);
      stream.get_local_ip_and_port(local, local_port);
      return library.process_request(stream, remote, remote_port, local, local_port, true, closed, nullptr);
    }
  }

  /// As the library does it, for one request that comes in time.
  bool process_and_close_socket(socket_t socket) override {
    const auto answer = [this](httplib::Stream& stream) {
      Timed timed(stream);
      return process(*this, timed);
    };
    const bool answered = httplib::detail::process_client_socket(socket, read_timeout_sec_, read_timeout_usec_,
                                                                 write_timeout_sec_, write_timeout_usec_, answer);
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return answered;
  }

  const HttpService& service_;
};

}  // namespace

extern "C" bool foretrain_serve_http(const HttpService& service) { return Server(service).run(); }

}  // namespace foretrain
