#include "reports/serve/http_server.hpp"

#include "model/base/own_module.hpp"

namespace foretrain {

std::unique_ptr<HttpServer> HttpServer::make(const HttpService& service) {
  using Make = HttpServer*(const HttpService&);
  auto* make = reinterpret_cast<Make*>(function_of_module(FORETRAIN_HTTP_LIBRARY, "foretrain_make_http_server"));
  return std::unique_ptr<HttpServer>(make(service));
}

}  // namespace foretrain
