#include "reports/serve/http_server.hpp"

#include "model/base/own_file.hpp"

namespace foretrain {

bool serve_http(const HttpService& service) {
  using Serve = bool(const HttpService&);
  return reinterpret_cast<Serve*>(function_of_module(FORETRAIN_HTTP_LIBRARY, "foretrain_serve_http"))(service);
}

}  // namespace foretrain
