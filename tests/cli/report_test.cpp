#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json data_of_page(const std::string& path) {
  const std::string html = text_of_file(path), begin = R"(id="data">)";
  const std::size_t from = html.find(begin) + begin.size();
  return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("A report says of a scenario what predict, explain and memory say, twice the same") {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("step.yaml", small_step), one = folder.file("one.html"),
                    two = folder.file("two.html");
  for (const std::string& page : {one, two}) {
    CHECK(output_of({"report", scenario, "--gpus", "4,8", "-o", page}).empty());
  }
  CHECK(text_of_file(one) == text_of_file(two));
  const nlohmann::json data = data_of_page(one), part = data["scenarios"][0];
  CHECK(data["title"] == "small step");
  nlohmann::json predicted = nlohmann::json::parse(run_program({"predict", scenario, "--json"}).output);
  predicted.erase("resolved");  // the page has a section of its own for them
  CHECK(part["result"] == predicted);
  CHECK(part["memory"] == nlohmann::json::parse(run_program({"memory", scenario, "--json"}).output));
  const nlohmann::json explained = nlohmann::json::parse(run_program({"explain", scenario, "--json"}).output);
  CHECK(part["explanation"]["sensitivities"] == explained["sensitivities"]);
  CHECK(part["figures"]["scaling"][0]["x"]["tics"] == nlohmann::json::parse(R"([[4.0, "4"], [8.0, "8"]])"));
  for (const char* figure : {"breakdown", "memory", "roofline", "timeline", "links"}) {
    INFO(figure);
    CHECK_FALSE(part["figures"][figure].empty());
  }
}

TEST_CASE("A report has the plans that plan finds, and says which of its numbers are estimates") {
  const TemporaryFolder folder;
  const std::string scenario = folder.file("step.yaml", small_step), page = folder.file("page.html");
  const FilterResult result =
      run_program({"report", scenario, "--gpus", "4", "--plan", "--what-ifs", "estimate", "-o", page});
  INFO(result.errors);
  REQUIRE(result.status == 0);
  const nlohmann::json data = data_of_page(page), part = data["scenarios"][0];
  REQUIRE(data["plans"].size() == 1);
  CHECK(data["plans"][0] ==
        nlohmann::json::parse(run_program({"plan", scenario, "--fidelity", "estimate", "--json"}).output));
  CHECK(part["result"]["fidelity"] == "flows");
  CHECK(part["scaling"]["fidelity"] == "estimate");
  const nlohmann::json estimate =
      nlohmann::json::parse(run_program({"explain", scenario, "--fidelity", "estimate", "--json"}).output);
  CHECK(part["explanation"]["what_ifs"]["time_s"] == estimate["time_s"]);
  CHECK(part["explanation"]["sensitivities"] == estimate["sensitivities"]);
}

TEST_CASE("A report takes sweeps as tables and databases, measured cases, and answers in JSON") {
  const TemporaryFolder folder;
  const std::string page = folder.file("page.html"), answer = folder.file("answer.json");
  for (const char* sweep : {"sweep.csv", "sweep.sqlite"}) {
    output_of({"sweep", ring_of_four, "--vary", "workload.collective.size=1 MB,2 MB", "-o", folder.file(sweep)});
  }
  const std::string cases =
      folder.file("cases.csv", std::string("case,base,measured.time\nring,") + ring_of_four + ",16 ms\n");
  std::ofstream(answer) << run_program({"predict", ring_of_four, "--json"}).output;
  const FilterResult result =
      run_program({"report", folder.file("sweep.csv"), folder.file("sweep.sqlite"), cases, answer, "-o", page});
  INFO(result.errors);
  REQUIRE(result.status == 0);
  const nlohmann::json data = data_of_page(page);
  REQUIRE(data["sweeps"].size() == 2);
  CHECK(data["sweeps"][0]["columns"] == data["sweeps"][1]["columns"]);
  CHECK(data["sweeps"][0]["rows"] == 2);
  REQUIRE(data["accuracy"].size() == 1);
  CHECK(data["accuracy"][0]["cases"][0]["measured"] == 0.016);
  REQUIRE(data["scenarios"].size() == 1);
  CHECK(data["scenarios"][0]["result"]["chosen_algorithm"] == "ring");
}

TEST_CASE("A report answers what it cannot take, and leaves nothing behind") {
  const TemporaryFolder folder;
  const auto says = [&](const std::vector<std::string>& inputs, const char* what, const char* output = "page.html") {
    std::vector<std::string> command = {"report"};
    command.insert(command.end(), inputs.begin(), inputs.end());
    command.insert(command.end(), {"-o", folder.file(output)});
    check_refused(command, {what});
    CHECK_FALSE(std::filesystem::exists(folder.file(output)));
  };
  says({ring_of_four}, "name it .html", "page.pdf");
  says({"no-such-scenario"}, "no-such-scenario");
  says({folder.file("table.csv", "a,b\n1,2\n")}, "neither predicted.* columns");
  says({folder.file("bad.json", "{")}, "bad.json: this is no JSON");
  says({folder.file("other.json", "{}")}, "other.json: no answer of predict");
  says({folder.file("damaged.json", R"({"scenario": "a", "provenance": [], "breakdown_s": {"compute": "x"}})")},
       "damaged.json: fidelity");
  says({folder.file("none.sqlite")}, "there is no such file");
  says({folder.file("rows.jsonl")}, "reads sweeps as .csv or .sqlite");
}

}  // namespace foretrain::test
