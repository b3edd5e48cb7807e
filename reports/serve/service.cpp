#include "reports/serve/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/base/text.hpp"
#include "model/base/utf8.hpp"
#include "reports/result/result_schema.hpp"
#include "reports/serve/page.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

constexpr const char* example = "GET /predict?scenario=gpt2-xl-dgx-a100, or POST /predict with a scenario as the body";

/// "%3D" → "=", "+" → " "; what is no such escape stays.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned char byte = 0;
    const char* const digits = text.data() + at + 1;
    if (text[at] == '%' && at + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += static_cast<char>(byte);
      at += 2;
    } else {
      plain += text[at] == '+' ? ' ' : text[at];
    }
  }
  return plain;
}

/// Puts what stands behind the question mark of the address into the question; or says what is wrong with it.
std::optional<HttpAnswer> read_query(std::string_view query, Question& question) {
  if (query.size() <= 1) return std::nullopt;
  for (const std::string& part : split(query.substr(1), '&')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string key = decoded(part.substr(0, equals));
    const std::string value = decoded(part.substr(std::min(equals + 1, part.size())));
    if (key == "scenario") {
      question.scenario = value;
    } else if (key == "set") {
      question.set.push_back(value);
    } else if (key == "fidelity") {
      question.fidelity = value;
    } else {
      return complaint(400, fmt::format("there is no parameter \"{}\"", shortened(key, 60)),
                       "scenario, set or fidelity");
    }
  }
  return std::nullopt;
}

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

std::optional<HttpAnswer> refused_body(const HttpRequest& request, std::size_t most_bytes) {
  if (request.content_length.empty() && request.transfer_encoding.empty()) {
    return complaint(411, "the request does not say how long its body is", "the header Content-Length");
  }
  std::size_t length = 0;
  const std::string& text = request.content_length;
  std::from_chars(text.data(), text.data() + text.size(), length);
  if (length > most_bytes || text.size() > 15) {
    return complaint(413, fmt::format("a body of {} bytes", shortened(text, 20)),
                     fmt::format("a scenario of at most {} bytes", most_bytes));
  }
  if (!request.content_encoding.empty() || request.content_type.starts_with("multipart/")) {
    return complaint(415, "a body that is packed", "the scenario itself: curl --data-binary @FILE");
  }
  return std::nullopt;
}

}  // namespace

std::string Question::text() const {
  const json all = {{"what", what},         {"scenario", scenario}, {"set", set},
                    {"fidelity", fidelity}, {"body", body},         {"is_json", is_json}};
  std::string bytes;
  json::to_msgpack(all, bytes);  // holds any bytes, whatever they are meant to be
  return bytes;
}

Question Question::of(const std::string& text) {
  const json all = json::from_msgpack(text);
  return {all["what"], all["scenario"], all["set"], all["fidelity"], all["body"], all["is_json"]};
}

HttpAnswer complaint_of_status(int status) {
  switch (status) {
    case 413:
      return complaint(413, "the request is too large", "a scenario of at most 1 MiB");
    case 414:
      return complaint(414, "the address is too long", "POST /predict, with the scenario as the body");
    case 500:
      return complaint(500, "the server cannot answer", "ask again in a while");
    case 503:
      return complaint(503, "there are too many clients", "ask again in a while");
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

HttpAnswer Service::got(const HttpRequest& request) const {
  constexpr std::string_view one = "/scenarios/";
  if (request.path == "/predict") {
    Question question{"predict", "", {}, "", "", false};
    if (const std::optional<HttpAnswer> wrong = read_query(request.query, question)) return *wrong;
    if (question.scenario.empty()) return complaint(400, "no scenario", example);
    return ask_(question.text());
  }
  if (request.path == "/schema") return {200, result_schema()};
  for (const char* list : {"scenarios", "models", "hardware"}) {
    if (request.path.substr(1) == list) return ask_(Question{list, "", {}, "", "", false}.text());
  }
  if (request.path.starts_with(one)) {
    HttpAnswer file = ask_(Question{"scenario", request.path.substr(one.size()), {}, "", "", false}.text());
    if (file.status == 200) file.type = "application/yaml";
    return file;
  }
  return complaint(404, "there is nothing at this address", "/, /predict, /scenarios, /models, /hardware or /schema");
}

std::optional<HttpAnswer> Service::answer_early(const HttpRequest& request) const {
  if (std::optional<HttpAnswer> refused = refusal(request)) return refused;
  const bool gets = request.method == "GET" || request.method == "HEAD";
  if (gets && request.path == "/") return HttpAnswer{200, std::string(prediction_page()), "text/html; charset=utf-8"};
  if (!is_known(request.authorization)) {
    return complaint(401, "no token, or a wrong one", "the header \"Authorization: Bearer TOKEN\"");
  }
  if (gets) return got(request);
  if (request.method == "POST" && request.path == "/predict") return refused_body(request, access_.most_bytes);
  return complaint(405, fmt::format("nothing is done by {} here", shortened(request.method, 20)), example);
}

HttpAnswer Service::answer(HttpRequest request) const {
  Question question{
      "predict", "", {}, "", std::move(request.body), request.content_type.starts_with("application/json")};
  if (const std::optional<HttpAnswer> wrong = read_query(request.query, question)) return *wrong;
  return ask_(question.text());
}

}  // namespace foretrain
