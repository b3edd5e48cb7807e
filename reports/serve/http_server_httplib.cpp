// The module: the only place that sees cpp-httplib.
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/base/descriptor.hpp"
#include "reports/serve/http_server.hpp"

namespace foretrain {

namespace {

using Clock = std::chrono::steady_clock;

/// Bytes before the body, and those between its pieces.
constexpr std::size_t most_headers = 32 << 10, room_for_pieces = 64 << 10;

/// A client's connection, which gives no more bytes than a request may have, and takes no longer than it may, however
/// slowly they come: the library bounds each part alone.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, int stop, std::chrono::milliseconds patience)
      : socket_(socket), stop_(stop), patience_(patience), deadline_(Clock::now() + patience) {}

  /// The headers are read; so many more may come.
  void allow(std::size_t bytes) { left_ = bytes; }

  [[nodiscard]] bool is_readable() const override { return !received_.empty() || wait(POLLIN); }
  [[nodiscard]] bool is_writable() const override { return wait(POLLOUT); }
  ssize_t read(char* bytes, std::size_t size) override {
    if (left_ == 0) return -1;
    if (received_.empty()) {
      const ssize_t count = wait(POLLIN) ? ::recv(socket_, buffer_.data(), buffer_.size(), 0) : -1;
      if (count <= 0) return count;
      received_ = {buffer_.data(), static_cast<std::size_t>(count)};
    }
    const std::size_t count = received_.copy(bytes, std::min(size, left_));
    received_.remove_prefix(count);
    left_ -= count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    if (!std::exchange(answers_, true)) deadline_ = Clock::now() + patience_;
    return wait(POLLOUT) ? ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

  /// Ends the answer, and reads what the client still sends for a moment: closing at once would take the answer back.
  void finish() {
    ::shutdown(socket_, SHUT_WR);
    deadline_ = std::min(deadline_, Clock::now() + std::chrono::seconds(1));
    std::array<char, 65536> ignored;
    while (wait(POLLIN) && ::recv(socket_, ignored.data(), ignored.size(), 0) > 0) continue;
  }

 private:
  [[nodiscard]] bool wait(short what) const {
    pollfd waiting[2] = {{socket_, what, 0}, {stop_, POLLIN, 0}};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) return false;
      const int ready = ::poll(waiting, 2, static_cast<int>(left));
      if (ready > 0) return waiting[1].revents == 0;
    }
  }

  int socket_, stop_;
  std::chrono::milliseconds patience_;
  Clock::time_point deadline_;
  std::size_t left_ = most_headers;
  std::array<char, 4096> buffer_;
  std::string_view received_;  ///< of the buffer, what nobody has read
  bool answers_ = false;
};

/// Threads that each serve one client at a time. A client for whom there is none is refused.
class Clients : public httplib::TaskQueue {
 public:
  using Task = std::function<void()>;

  explicit Clients(std::size_t most) : most_(most) {
    for (std::size_t i = 0; i < most; ++i) threads_.emplace_back([this] { serve(); });
  }

  /// Versions of the library differ in what it returns.
  decltype(std::declval<httplib::TaskQueue&>().enqueue(Task())) enqueue(Task task) override {
    if (!take(task)) task();  // in the thread that accepts, which refuses
    return decltype(std::declval<httplib::TaskQueue&>().enqueue(Task()))(true);
  }

  void shutdown() override {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  bool take(Task& task) {
    {
      const std::scoped_lock lock(mutex_);
      if (clients_ == most_) return false;
      ++clients_;
      waiting_.push_back(std::move(task));
    }
    changed_.notify_one();
    return true;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Task task = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      task();
      lock.lock();
      --clients_;
    }
  }

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t clients_ = 0;
  bool ending_ = false;
  std::deque<Task> waiting_;
  std::vector<std::thread> threads_;
};

void put(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  response.set_content(answer.body, answer.type);
}

HttpRequest request_of(const httplib::Request& request) {
  const auto header = [&](const char* name) { return request.get_header_value(name); };
  return {request.method,
          request.path,
          request.target.substr(std::min(request.target.find('?'), request.target.size())),
          header("Host"),
          header("Origin"),
          header("Sec-Fetch-Site"),
          header("Authorization"),
          header("Content-Type"),
          header("Content-Encoding"),
          header("Content-Length"),
          header("Transfer-Encoding"),
          ""};
}

class Server : public HttpServer, private httplib::Server {
 public:
  explicit Server(const HttpService& service) : service_(service) {
    new_task_queue = [this] {
      accepting_ = std::this_thread::get_id();
      return new Clients(service_.most_clients);
    };
    // No other server may listen at the same port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_tcp_nodelay(true);
    set_payload_max_length(service.most_bytes);
    set_default_headers({{"Cache-Control", "no-store"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"Referrer-Policy", "no-referrer"},
                         {"Content-Security-Policy",
                          "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}});
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const std::optional<HttpAnswer> early = service_.answer_early(request_of(request));
      if (early) put(*early, response);
      return early ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    Post("/predict", [this](const httplib::Request& request, httplib::Response& response,
                            const httplib::ContentReader& content) { answer(request, response, content); });
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) put(service_.complain(response.status), response);
    });
    set_exception_handler([this](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      put(service_.complain(500), response);
    });
  }

  std::optional<int> bind() override {
    const bool any = service_.port == 0;
    const int port = any ? bind_to_any_port(service_.host) : service_.port;
    if (port <= 0 || (!any && !bind_to_port(service_.host, port))) return std::nullopt;
    ::listen(svr_sock_, SOMAXCONN);  // the library lets five wait: the next would try again after a second
    return port;
  }
  bool run() override { return listen_after_bind(); }
  void stop() override { httplib::Server::stop(); }

 private:
  void answer(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& content) {
    HttpRequest asked = request_of(request);
    bool fits = true;
    const bool whole = content([&](const char* bytes, std::size_t size) {
      fits = asked.body.size() + size <= service_.most_bytes;
      if (fits) asked.body.append(bytes, size);
      return fits;
    });
    const bool too_large = !fits || response.status == 413;
    put(whole ? service_.answer(std::move(asked)) : service_.complain(too_large ? 413 : 400), response);
  }

  /// One request a connection: what is left of one is never read as the next.
  bool process_and_close_socket(socket_t socket) override {
    const Descriptor closes(socket);
    Connection connection(socket, service_.hang_up, service_.patience);
    if (std::this_thread::get_id() == accepting_) {
      refuse(connection);
    } else {
      process(connection);
      connection.finish();
    }
    return true;
  }

  void process(Connection& connection) {
    bool closed = false;
    const auto whole = [&](httplib::Request& request) {
      request.ranges.clear();
      connection.allow(service_.most_bytes + room_for_pieces);
    };
    const auto request = [&](auto* server) {
      if constexpr (requires { server->process_request(connection, true, closed, whole); }) {
        server->process_request(connection, true, closed, whole);
      } else {  // from 0.16 on it is told the addresses
        server->process_request(connection, "", 0, "", 0, true, closed, whole);
      }
    };
    request(this);
  }

  void refuse(Connection& connection) const {
    const HttpAnswer answer = service_.complain(503);
    const std::string text = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: " + answer.type +
                             "\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body;
    connection.write(text.data(), text.size());
    std::array<char, 4096> ignored;
    ::recv(connection.socket(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  }

  HttpService service_;
  std::thread::id accepting_;  ///< has no time to serve anybody
};

}  // namespace

extern "C" HttpServer* foretrain_make_http_server(const HttpService& service) { return new Server(service); }

}  // namespace foretrain
