#include "reports/serve/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/own_file.hpp"
#include "model/base/text.hpp"
#include "reports/result/json.hpp"

namespace foretrain {

namespace {

using nlohmann::ordered_json;

/// Whatever bytes the complaint quotes.
std::string text_of(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

/// Takes as long whatever the two have in common.
bool is_same_secret(std::string_view one, std::string_view other) {
  volatile std::size_t difference = one.size() ^ other.size();
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    difference = difference | static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

/// "localhost:8642" → "localhost".
std::string without_port(const std::string& host) {
  const std::size_t end = host.find_last_not_of("0123456789");
  return host.substr(0, end != std::string::npos && host[end] == ':' ? end : std::string::npos);
}

bool is_known(const std::optional<std::string>& token, const std::string& authorization) {
  return !token || is_same_secret(authorization, "Bearer " + *token);
}

/// Pages of other sites make browsers send requests, too, in the user's name.
std::optional<HttpAnswer> refusal(const HttpRequest& request, bool loopback_only) {
  if (loopback_only && !is_loopback(without_port(request.host))) {
    return complaint(403, fmt::format("this machine is not called \"{}\"", shortened(request.host, 60)),
                     "the address that `foretrain serve` prints");
  }
  const std::string& origin = request.origin;
  const bool is_own = origin.empty() || origin == "http://" + request.host || origin == "https://" + request.host;
  const bool is_cross = request.site == "cross-site" || request.site == "same-site";
  if (!is_own || (is_cross && request.path != "/")) {
    return complaint(403, "a request that a page of another site sends", "the page of this server, or a program");
  }
  return std::nullopt;
}

const std::map<int, const char*> complaints = {
    {405, "nothing is done by this method here; GET, or POST /predict with a scenario as the body"},
    {411, "the request does not say how long its body is; the header Content-Length"},
    {413, "the request is too large; a scenario of at most 1 MiB"},
    {414, "the address is too long; POST /predict, with the scenario as the body"},
    {415, "a body that is packed; the scenario itself: curl --data-binary @FILE"},
    {500, "the server cannot answer; ask again in a while"}};

}  // namespace

HttpAnswer complaint(int status, std::string error, std::string remedy) {
  const std::size_t end = remedy.empty() ? error.find("; ") : std::string::npos;
  if (end != std::string::npos) {
    remedy = error.substr(end + 2);
    error.resize(end);
  }
  return {status, text_of({{"error", error}, {"remedy", remedy}})};
}

HttpAnswer complaint(const ScenarioError& error) {
  ordered_json json = {{"error", error.key().empty() ? error.got() : error.key() + ": " + error.got()}};
  const SourcePosition& where = error.where();
  if (!where.file.empty()) json["file"] = where.file;
  if (where.line > 0) json.update({{"line", where.line}, {"column", where.column}});
  if (!error.key().empty()) json["key"] = error.key();
  json["remedy"] = error.expected();
  return {400, text_of(json)};
}

HttpAnswer complaint_of_status(int status) {
  const auto known = complaints.find(status);
  return complaint(status, known != complaints.end()
                               ? known->second
                               : "the request cannot be read; GET or POST by HTTP/1.1, sent whole and without pauses");
}

bool is_loopback(const std::string& host) {
  const std::string name = to_lower(host);
  return name == "localhost" || name == "::1" || name == "[::1]" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

std::optional<HttpAnswer> own_answer(const HttpRequest& request, bool loopback_only,
                                     const std::optional<std::string>& token) {
  if (std::optional<HttpAnswer> refused = refusal(request, loopback_only)) return refused;
  const bool posts = request.method == "POST";
  if (!posts && request.path == "/") return HttpAnswer{200, std::string(prediction_page()), "text/html; charset=utf-8"};
  if (!is_known(token, request.authorization)) {
    return complaint(401, "no token, or a wrong one; the header \"Authorization: Bearer TOKEN\"");
  }
  if (!posts && request.path == "/schema") return HttpAnswer{200, result_schema()};
  return posts && request.path != "/predict" ? std::optional(complaint_of_status(405)) : std::nullopt;
}

bool serve_http(const HttpService& service) {
  using Serve = bool(const HttpService&);
  return reinterpret_cast<Serve*>(function_of_module(FORETRAIN_HTTP_LIBRARY, "foretrain_serve_http"))(service);
}

}  // namespace foretrain
