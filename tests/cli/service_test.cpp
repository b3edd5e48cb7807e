// What the server says to whom, without a network: addresses, headers, bodies, and the processes that are asked.
#include "reports/serve/service.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "reports/serve/messages.hpp"
#include "reports/serve/predictors.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Json = nlohmann::json;

/// Answers with what it is asked: "predict gpt2 [a=1 b=2] estimate <body> json".
HttpAnswer echo(const std::string& text) {
  const Question question = Question::of(text);
  std::string said = question.what + " " + question.scenario + " [";
  for (const std::string& set : question.set) said += set + ";";
  return {200, said + "] " + question.fidelity + " <" + question.body + ">" + (question.is_json ? " json" : "")};
}

HttpRequest request_of(const char* method, const char* path, const char* query = "") {
  HttpRequest request;
  request.method = method;
  request.path = path;
  request.query = query;
  request.host = "localhost:8642";
  return request;
}

const Service& open_service() {
  static const Service service({true, std::nullopt, 1000}, echo);
  return service;
}

/// "200 what it says", or "400 what is wrong; what would be right"; "body" where that is needed.
std::string said(const std::optional<HttpAnswer>& answer) {
  if (!answer) return "body";
  if (answer->status == 200) return "200 " + answer->body;
  const Json json = Json::parse(answer->body);
  return std::to_string(answer->status) + " " + json["error"].get<std::string>() + "; " +
         json["remedy"].get<std::string>();
}

std::string got(const char* path, const char* query = "") {
  return said(open_service().answer_early(request_of("GET", path, query)));
}

std::string posted(HttpRequest request) {
  request.method = "POST";
  request.path = "/predict";
  return said(open_service().answer_early(request));
}

}  // namespace

TEST_CASE("addresses ask for what they say, with escapes of any kind") {
  CHECK(got("/predict", "?scenario=a+b%3dc&set=x=1&set=y%3D2&fidelity=flows") ==
        "200 predict a b=c [x=1;y=2;] flows <>");
  CHECK(got("/predict", "?scenario=%41%4") == "200 predict A%4 []  <>");
  CHECK(got("/predict", "?scenario=%4g%zz%") == "200 predict %4g%zz% []  <>");
  CHECK(got("/predict", "?scenario=a%7A") == "200 predict az []  <>");
  CHECK(got("/predict", "?scenario") ==
        "400 no scenario; GET /predict?scenario=gpt2-xl-dgx-a100, or POST /predict with a scenario as the body");
  for (const char* none : {"", "?"}) CHECK_THAT(got("/predict", none), Catch::StartsWith("400 no scenario"));
  CHECK(got("/predict", "?scenario=a&Set=b") == "400 there is no parameter \"Set\"; scenario, set or fidelity");
  CHECK(got("/scenarios") == "200 scenarios  []  <>");
  CHECK(got("/models") == "200 models  []  <>");
  CHECK(got("/hardware") == "200 hardware  []  <>");
  CHECK(got("/scenarios/gpt2") == "200 scenario gpt2 []  <>");
  CHECK(open_service().answer_early(request_of("GET", "/scenarios/gpt2"))->type == "application/yaml");
  const Service without({true, std::nullopt, 1000}, [](const std::string&) { return complaint(404, "none", "one"); });
  CHECK(without.answer_early(request_of("GET", "/scenarios/gpt2"))->type == "application/json");
  CHECK_THAT(got("/schema"), Catch::StartsWith("200 {"));
  CHECK(open_service().answer_early(request_of("HEAD", "/"))->type == "text/html; charset=utf-8");
  CHECK(got("/else") == "404 there is nothing at this address; /, /predict, /scenarios, /models, /hardware or /schema");
}

TEST_CASE("a body is taken that says how long it is, is not too long and not packed") {
  HttpRequest request = request_of("POST", "/predict");
  CHECK(posted(request) == "411 the request does not say how long its body is; the header Content-Length");
  request.content_length = "1000";
  CHECK(posted(request) == "body");
  request.content_length = "1001";
  CHECK(posted(request) == "413 a body of 1001 bytes; a scenario of at most 1000 bytes");
  request.content_length = "000000000000999";
  CHECK(posted(request) == "body");
  request.content_length = "0000000000000999";
  CHECK_THAT(posted(request), Catch::StartsWith("413 a body of 0000000000000999 bytes"));
  request.content_length = "";
  request.transfer_encoding = "chunked";
  CHECK(posted(request) == "body");
  request.content_encoding = "gzip";
  CHECK_THAT(posted(request), Catch::StartsWith("415 a body that is packed"));
  request.content_encoding = "";
  request.content_type = "multipart/form-data";
  CHECK_THAT(posted(request), Catch::StartsWith("415 a body that is packed"));
  CHECK_THAT(said(open_service().answer_early(request_of("POST", "/schema"))),
             Catch::StartsWith("405 nothing is done by POST here"));
  CHECK_THAT(said(open_service().answer_early(request_of("PUT", "/predict"))),
             Catch::StartsWith("405 nothing is done by PUT here"));
  HttpRequest whole = request_of("POST", "/predict", "?set=a=1");
  whole.body = "name: x";
  CHECK(said(open_service().answer(whole)) == "200 predict  [a=1;]  <name: x>");
  whole.content_type = "application/json; charset=utf-8";
  CHECK(said(open_service().answer(whole)) == "200 predict  [a=1;]  <name: x> json");
  whole.query = "?no=1";
  CHECK_THAT(said(open_service().answer(whole)), Catch::StartsWith("400 there is no parameter \"no\""));
}

TEST_CASE("only this machine's names are right, only pages of the server itself may ask") {
  const auto by = [](const char* host, const char* origin = "", const char* site = "", const char* path = "/schema") {
    HttpRequest request = request_of("GET", path);
    request.host = host;
    request.origin = origin;
    request.site = site;
    return open_service().answer_early(request)->status;
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
  const Service for_all({false, std::nullopt, 1000}, echo);
  HttpRequest named = request_of("GET", "/schema");
  named.host = "gpu.example:8642";
  CHECK(for_all.answer_early(named)->status == 200);
}

TEST_CASE("with a token, who does not know it gets the page alone") {
  const Service closed({true, "secret", 1000}, echo);
  const auto by = [&](const char* authorization, const char* path = "/schema", const char* method = "GET") {
    HttpRequest request = request_of(method, path);
    request.authorization = authorization;
    request.content_length = "1";
    const auto answer = closed.answer_early(request);
    return answer ? answer->status : 100;
  };
  CHECK(by("Bearer secret") == 200);
  for (const char* wrong : {"", "Bearer ", "Bearer secreT", "Bearer secre", "Bearer secretsecret", "bearer secret",
                            "secret", "Bearer secrets", "Basic secret"}) {
    CHECK(by(wrong) == 401);
    CHECK(by(wrong, "/") == 200);
    CHECK(by(wrong, "/predict", "POST") == 401);
  }
  CHECK(by("Bearer secret", "/predict", "POST") == 100);
  const Service empty({true, "", 1000}, echo);
  HttpRequest request = request_of("GET", "/schema");
  request.authorization = "Bearer x";
  CHECK(empty.answer_early(request)->status == 401);
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
  for (const int status : {400, 408, 413, 414, 500, 503}) CHECK(complaint_of_status(status).status == status);
  CHECK_THAT(said(complaint_of_status(413)), Catch::Contains("too large"));
  CHECK_THAT(said(complaint_of_status(414)), Catch::Contains("too long"));
  CHECK_THAT(said(complaint_of_status(500)), Catch::Contains("cannot answer"));
  CHECK_THAT(said(complaint_of_status(503)), Catch::Contains("too many clients"));
  CHECK_THAT(said(complaint_of_status(400)), Catch::Contains("cannot be read"));
}

TEST_CASE("messages between processes are whole, late, or not to come") {
  using Clock = std::chrono::steady_clock;
  SocketPair pair;
  const int ours = pair.ours.number(), theirs = pair.theirs.number();
  std::string text;
  REQUIRE(send_message(ours, "hello"));
  REQUIRE(send_message(ours, ""));
  CHECK(receive_message(theirs) == "hello");
  CHECK(receive_message(theirs) == "");
  CHECK(receive_message(theirs, text, Clock::now(), -1) == Waited::too_long);
  const auto begin = Clock::now();
  CHECK(receive_message(theirs, text, begin + std::chrono::milliseconds(20), -1) == Waited::too_long);
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(20));
  // A length without its bytes is no message; what waits for neither ends where it is told to.
  const std::size_t five = 5;
  REQUIRE(::send(ours, &five, sizeof five, 0) == static_cast<ssize_t>(sizeof five));
  CHECK(receive_message(theirs, text, Clock::now() + std::chrono::milliseconds(5), -1) == Waited::too_long);
  SocketPair stop;
  REQUIRE(send_message(stop.ours.number(), "stop"));
  CHECK(receive_message(theirs, text, Clock::now() + std::chrono::hours(1), stop.theirs.number()) == Waited::stopped);
  const std::string large(300'000, 'x');  // more than a socket holds
  bool sent = false;
  std::thread sender([&] { sent = send_message(stop.theirs.number(), large); });
  CHECK(receive_message(stop.ours.number()) == large);
  sender.join();
  CHECK(sent);
  // A descriptor is another one of the same file; none is none.
  REQUIRE(send_descriptor(ours, stop.ours));
  REQUIRE(send_descriptor(ours, Descriptor()));
  const Descriptor copy = receive_descriptor(theirs);
  REQUIRE(copy.open());
  CHECK(copy.number() != stop.ours.number());
  CHECK_FALSE(receive_descriptor(theirs).open());
  pair.ours.close();
  CHECK(receive_message(theirs, text, Clock::now() + std::chrono::hours(1), -1) == Waited::gone);
  CHECK_FALSE(receive_message(theirs));
  CHECK_FALSE(receive_descriptor(theirs).open());
  CHECK_FALSE(send_message(theirs, "anybody?"));
}

TEST_CASE("a process that ends or takes too long is replaced, and answers go on") {
  Predictors predictors({.processes = 1, .time = std::chrono::milliseconds(300)}, [](const std::string& question) {
    if (question == "end") ::_exit(3);
    if (question == "wait") std::this_thread::sleep_for(std::chrono::seconds(20));
    return HttpAnswer{question == "teapot" ? 418 : 200, question + "\nand more"};
  });
  const auto ask = [&](const char* question) {
    const HttpAnswer answer = predictors.ask(question);
    return std::to_string(answer.status) + " " + answer.body;
  };
  CHECK(ask("one") == "200 one\nand more");
  CHECK(ask("teapot") == "418 teapot\nand more");
  CHECK_THAT(ask("end"), Catch::StartsWith("500 ") && Catch::Contains("has ended"));
  CHECK(ask("two") == "200 two\nand more");
  CHECK_THAT(ask("wait"), Catch::StartsWith("503 ") && Catch::Contains("no answer within 0.3 s"));
  CHECK(ask("three") == "200 three\nand more");
  predictors.stop();
  CHECK_THAT(ask("four"), Catch::StartsWith("503 "));
}
