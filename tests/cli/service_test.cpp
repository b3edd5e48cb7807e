// Answers of the server, without a network: addresses, headers.
#include "reports/serve/service.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Json = nlohmann::json;

HttpRequest request_of(const char* method, const char* path) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  request.host = "localhost:8642";
  return request;
}

/// "asked" where a process is to answer.
HttpAnswer answer_of(const HttpRequest& request, bool loopback_only = true,
                     const std::optional<std::string>& token = {}) {
  return own_answer(request, loopback_only, token).value_or(HttpAnswer{200, "asked"});
}

/// "200 what it says", or "400 what is wrong; what would be right".
std::string said(const HttpAnswer& answer) {
  if (answer.status == 200) return "200 " + answer.body;
  const Json json = Json::parse(answer.body);
  return std::to_string(answer.status) + " " + json["error"].get<std::string>() + "; " +
         json["remedy"].get<std::string>();
}

}  // namespace

TEST_CASE("addresses and methods are answered here, asked of a process, or refused") {
  const auto got = [](const char* method, const char* path) { return said(answer_of(request_of(method, path))); };
  CHECK(got("GET", "/predict") == "200 asked");
  CHECK(got("POST", "/predict") == "200 asked");
  CHECK(got("GET", "/scenarios/gpt2") == "200 asked");
  CHECK_THAT(got("GET", "/schema"), Catch::StartsWith("200 {"));
  CHECK(answer_of(request_of("HEAD", "/")).type == "text/html; charset=utf-8");
  CHECK_THAT(got("POST", "/schema"), Catch::StartsWith("405 "));
}

TEST_CASE("only this machine's names are right, only pages of the server itself may ask") {
  const auto by = [](const char* host, const char* origin = "", const char* site = "", const char* path = "/schema") {
    HttpRequest request = request_of("GET", path);
    request.host = host;
    request.origin = origin;
    request.site = site;
    return answer_of(request).status;
  };
  for (const char* own : {"localhost", "LOCALHOST:80", "127.0.0.1:8642", "127.1.2.3", "[::1]", "[::1]:8642"}) {
    CHECK(by(own) == 200);
  }
  for (const char* other : {"evil.example", "127.evil.example", "localhost.evil", "[::2]:1", "10.0.0.1", ""}) {
    CHECK(by(other) == 403);
  }
  CHECK(by("localhost:1", "http://localhost:1") == 200);
  CHECK(by("localhost:1", "https://localhost:1") == 200);
  CHECK(by("localhost:1", "http://localhost:2") == 403);
  CHECK(by("localhost:1", "null") == 403);
  for (const char* site : {"cross-site", "same-site"}) {
    CHECK(by("localhost", "", site) == 403);
    CHECK(by("localhost", "", site, "/") == 200);  // a link to the page
    CHECK(by("localhost", "http://evil.example", site, "/") == 403);
  }
  CHECK(by("localhost", "", "same-origin") == 200);
  CHECK(is_loopback("::1"));
  CHECK_FALSE(is_loopback("::"));
  CHECK_FALSE(is_loopback("0.0.0.0"));
  HttpRequest named = request_of("GET", "/schema");
  named.host = "gpu.example:8642";
  CHECK(answer_of(named, false).status == 200);
}

TEST_CASE("with a token, who does not know it gets the page alone") {
  const auto by = [](const char* authorization, const char* path = "/schema", const char* method = "GET",
                     const char* token = "secret") {
    HttpRequest request = request_of(method, path);
    request.authorization = authorization;
    return answer_of(request, true, token).status;
  };
  CHECK(by("Bearer secret") == 200);
  for (const char* wrong : {"", "Bearer ", "Bearer secreT", "Bearer secre", "Bearer secretsecret", "bearer secret",
                            "secret", "Bearer secrets", "Basic secret"}) {
    CHECK(by(wrong) == 401);
    CHECK(by(wrong, "/") == 200);
    CHECK(by(wrong, "/predict", "POST") == 401);
  }
  CHECK(by("Bearer secret", "/predict", "POST") == 200);
  CHECK(by("Bearer x", "/schema", "GET", "") == 401);
}

TEST_CASE("complaints have a place where one is known") {
  const auto json_of = [](const HttpAnswer& answer) { return Json::parse(answer.body); };
  CHECK(json_of(complaint(ScenarioError({"f", 3, 4}, "a.b", "wrong", "right"))) ==
        Json{{"error", "a.b: wrong"}, {"file", "f"}, {"line", 3}, {"column", 4}, {"key", "a.b"}, {"remedy", "right"}});
  CHECK(json_of(complaint(ScenarioError({"", 0, 0}, "", "wrong", "right"))) ==
        Json{{"error", "wrong"}, {"remedy", "right"}});
  CHECK(complaint(ScenarioError({"f", 1, 0}, "", "wrong", "right")).status == 400);
  CHECK(json_of(complaint(418, "one; two; three")) == Json{{"error", "one"}, {"remedy", "two; three"}});
  CHECK(json_of(complaint(418, "one")) == Json{{"error", "one"}, {"remedy", ""}});
  CHECK(complaint(418, "one").status == 418);
  const std::pair<int, const char*> by_status[] = {{400, "cannot be read"}, {405, "this method"}, {411, "how long"},
                                                   {413, "too large"},      {414, "too long"},    {415, "packed"},
                                                   {500, "cannot answer"}};
  for (const auto& [status, words] : by_status) {
    CHECK_THAT(said(complaint_of_status(status)),
               Catch::StartsWith(std::to_string(status) + " ") && Catch::Contains(words));
  }
}
