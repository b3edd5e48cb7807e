#include "reports/serve/service.hpp"

#include <fmt/format.h>

#include <string_view>

#include "model/base/text.hpp"
#include "model/base/utf8.hpp"
#include "reports/result/result_schema.hpp"
#include "reports/serve/page.hpp"

namespace foretrain {

namespace {

/// Takes as long whatever the two have in common.
bool is_same_secret(std::string_view one, std::string_view other) {
  volatile unsigned char difference = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const char against = other.empty() ? '\0' : other[i % other.size()];
    difference = static_cast<unsigned char>(difference | (one[i] ^ against));
  }
  return difference == 0;
}

/// "localhost:8642" → "localhost".
std::string without_port(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  const std::size_t bracket = host.rfind(']');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || bracket < colon);
  return host.substr(0, has_port ? colon : std::string::npos);
}

}  // namespace

HttpAnswer complaint_of_status(int status) {
  switch (status) {
    case 405:
      return complaint(405, "nothing is done by this method here", "GET, or POST /predict with a scenario as the body");
    case 411:
      return complaint(411, "the request does not say how long its body is", "the header Content-Length");
    case 413:
      return complaint(413, "the request is too large", "a scenario of at most 1 MiB");
    case 414:
      return complaint(414, "the address is too long", "POST /predict, with the scenario as the body");
    case 415:
      return complaint(415, "a body that is packed", "the scenario itself: curl --data-binary @FILE");
    case 500:
      return complaint(500, "the server cannot answer", "ask again in a while");
    default:
      return complaint(status, "the request cannot be read", "GET or POST by HTTP/1.1, sent whole and without pauses");
  }
}

bool is_loopback(const std::string& host) {
  const std::string name = to_lower(host);
  return name == "localhost" || name == "::1" || name == "[::1]" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

bool Service::is_known(const std::string& authorization) const {
  constexpr std::string_view scheme = "Bearer ";
  return !access_.token ||
         (authorization.starts_with(scheme) && is_same_secret(authorization.substr(scheme.size()), *access_.token));
}

/// Pages of other sites make browsers send requests, too, in the user's name.
std::optional<HttpAnswer> Service::refusal(const HttpRequest& request) const {
  if (access_.loopback_only && !is_loopback(without_port(request.host))) {
    return complaint(403, fmt::format("this machine is not called \"{}\"", shortened(request.host, 60)),
                     "the address that `foretrain serve` says");
  }
  const std::string& origin = request.origin;
  const bool is_own = origin.empty() || origin == "http://" + request.host || origin == "https://" + request.host;
  const bool is_cross = request.site == "cross-site" || request.site == "same-site";
  if (!is_own || (is_cross && request.path != "/")) {
    return complaint(403, "a request that a page of another site sends", "the page of this server, or a program");
  }
  return std::nullopt;
}

HttpAnswer Service::answer(const HttpRequest& request) const {
  if (std::optional<HttpAnswer> refused = refusal(request)) return *refused;
  const bool posts = request.method == "POST";
  if (!posts && request.path == "/") return {200, std::string(prediction_page()), "text/html; charset=utf-8"};
  if (!is_known(request.authorization)) {
    return complaint(401, "no token, or a wrong one", "the header \"Authorization: Bearer TOKEN\"");
  }
  if (!posts && request.path == "/schema") return {200, result_schema()};
  if (posts && request.path != "/predict") return complaint_of_status(405);
  return ask_(request);
}

}  // namespace foretrain
