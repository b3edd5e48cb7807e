#include "reports/page/page.hpp"

#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/figure/plot.hpp"
#include "reports/page/page_json.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

using Json = nlohmann::ordered_json;

/// A page with one of everything, made by hand.
Page sample_page() {
  Page page;
  page.title = "A page";
  page.program = "foretrain 1.2.3";
  ScenarioPart& part = page.scenarios.emplace_back();
  part.gpus = 1024;
  part.explanation.result = large_step();
  part.explanation.result.timeline = {
      {"stage 0 compute", "forward", Seconds(0.0), Seconds(1.5), 0, "compute"},
      {"stage 0 compute", "backward", Seconds(1.5), Seconds(3.0), 0, "compute"},
      {"stage 0 gradients", "all-reduce", Seconds(4.5), Seconds(1e-6), -1, "communication"}};
  part.explanation.bottleneck = "arithmetic";
  part.explanation.sensitivities = {{"network bandwidth", Seconds(43.0), Seconds(45.5), 0.3}};
  part.explanation.remedies = {{.name = "gradients sent in bf16",
                                .overrides = {"plan.sync.gradient_precision=bf16"},
                                .result = large_step(),
                                .speedup = 1.25},
                               {.name = "more samples", .why_not = "/home/me/big.yaml:9:19: batch: 3 samples"}};
  // Twice the GPUs with as much work each: 40 s become 50 s, 80 % of the rate of a GPU.
  part.scaling = ScalingPart{{{.subtitle = "1.5 sequences per GPU",
                               .places = {8, 16},
                               .curves = {{"ring", {40.0, 50.0}}, {"auto", {NAN, 40.0}}}},
                              "sequences",
                              {12.0, 24.0}},
                             3.6,
                             {"auto: not on 8 GPUs"}};
  LinkUses& links = part.links.emplace(LinkUses{{}, 2, Seconds(10.0)});
  links.links.push_back({.name = "gpu0>nvswitch",
                         .kind = LinkKind::nvlink,
                         .bandwidth = BytesPerSecond(3e11),
                         .links = 2,
                         .busiest = Bytes(3e11),
                         .mean = 0.05,
                         .most = 0.1});
  page.sweeps.emplace_back(
      "sweep.csv",
      parse_csv("case,plan.tensor,cluster.network.nic_bandwidth,predicted.step_time_s,predicted.fits,predicted.error\n"
                "a,2,100 Gbit/s,1.5,true,\n"
                "b,2,200 Gbit/s,,,no such plan\n",
                "sweep.csv"));
  page.accuracy.emplace_back("cases.csv",
                             accuracy_report({{"one", "group", "step_time", 2.0, 2.2}}, {{"two", "cannot be"}}, 0));
  page.answers.emplace_back("result.json", to_json(step_that_does_not_fit()));
  page.answers.emplace_back("plan.json",
                            R"({"scenario": "GPT", "space": {}, "plans": [{"plan": "tensor 8"}], "do_not_fit": []})");
  return page;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

std::string data_in(const std::string& html) {
  return between(html, R"(<script type="application/json" id="data">)", "</script>");
}

}  // namespace

TEST_CASE("The page's data are those of the golden file, and the same in every run", "[golden]") {
  const std::string data = page_data(sample_page()).dump(1) + "\n";
  CHECK(data == golden("page.json", data));
  CHECK(to_html(sample_page()) == to_html(sample_page()));
}

TEST_CASE("What stands in the page is its data") {
  CHECK(Json::parse(data_in(to_html(sample_page()))) == page_data(sample_page()));
}

TEST_CASE("Scaling is compared with the best rate of a GPU at the smallest number of GPUs") {
  const Json figures = page_data(sample_page())["scenarios"][0]["figures"];
  const auto value = [&](int panel, int curve, int place) {
    return figures["scaling"][panel]["series"][curve]["points"][place]["at"][1];
  };
  CHECK(value(2, 0, 0).get<double>() == Approx(100.0));  // per cent
  CHECK(value(2, 0, 1).get<double>() == Approx(80.0));
  // 1.5 samples a GPU in 40 s: 0.3 samples/s of 8 GPUs.
  CHECK(value(1, 0, 0).get<double>() == Approx(0.3));
  // 3.6 USD an hour are 0.001 USD a second, 40 s · 0.001 USD/s ÷ 1.5 samples: 26,667 USD for a million.
  CHECK(value(3, 0, 0).get<double>() == Approx(26666.67));
  CHECK(value(0, 1, 0).is_null());
  CHECK(figures["servers"].empty());  // none was predicted
}

TEST_CASE("Servers are compared with rings where both are predicted") {
  const Figure figure =
      servers_figure({.places = {8, 16}, .curves = {{"ring", {2.0, 4.0}}, {"parameter server", {3.0, 3.0}}}});
  REQUIRE(figure.panels.size() == 1);
  CHECK(figure.panels[0].series[0].points[0].y == Approx(1.5));
  CHECK(figure.panels[0].series[0].points[1].y == Approx(0.75));
}

TEST_CASE("Answers in JSON have the figures of their commands") {
  const AccuracyReport accuracy = accuracy_report({{"one", "group", "step_time", 2.0, 2.2}}, {}, 0);
  CHECK(accuracy_figure(Json::parse(to_json(accuracy))) == figure_json(to_figure(accuracy)));
  Explanation explanation;
  explanation.result = large_step();
  explanation.sensitivities = {{"network bandwidth", Seconds(43.0), Seconds(45.5), 0.3}};
  explanation.remedies = {{.name = "bf16", .result = large_step(), .speedup = 1.25},
                          {.name = "no change", .result = large_step()}};
  const Json drawn = explanation_figures(Json::parse(to_json(explanation)));
  CHECK(drawn["sensitivities"][0]["series"] == figure_json(to_figure(explanation))[0]["series"]);
  REQUIRE(drawn["remedies"][0]["series"][0]["boxes"].size() == 1);
  CHECK(drawn["remedies"][0]["series"][0]["boxes"][0]["at"][1].get<double>() == Approx(25.0));
  MemoryReport memory;
  memory.scenario = "a step";
  memory.gpu = "capacity";
  memory.timeline.capacity = memory.footprint.capacity = Bytes(10e9);
  memory.timeline.moments.resize(2);
  memory.timeline.moments[1].phase = MemoryTimeline::Phase::optimizer;
  memory.timeline.moments[1].parts[MemoryPart::weights] = Bytes(4e9);
  memory.timeline.peak = 1;
  CHECK(memory_figures(Json::parse(to_json(memory)))["memory_over_step"] == figure_json(to_figure(memory)));
  const Json result = result_figures(Json::parse(to_json(large_step())));
  CHECK(result["breakdown"] ==
        figure_json(to_figure(std::vector<BreakdownBar>{{large_step().scenario, large_step().train()->breakdown}})));
}

TEST_CASE("Answers are identified by what they say, and scenarios of one name are one") {
  Page page;
  page.answers = {{"a.json", to_json(std::vector{large_step(), step_that_does_not_fit()})},
                  {"b.json", R"({"scenario": "GPT-3 175B on 1,024 A100", "sensitivities": [], "remedies": []})"},
                  {"c.json", R"({"scenario": "GPT-3 175B on 1,024 A100", "measured_s": 40, "causes": []})"}};
  const Json data = page_data(page);
  REQUIRE(data["scenarios"].size() == 2);
  CHECK(data["scenarios"][0].contains("result"));
  CHECK(data["scenarios"][0].contains("explanation"));
  CHECK(data["scenarios"][0]["diagnosis"]["measured_s"] == 40);
  for (const char* part : {R"({"plans": []})", R"({"space": {}})", R"({"groups": []})", R"({"overall": {}})",
                           R"({"scenario": "x"})", R"({"timeline": []})", "[1]", "3"}) {
    page.answers = {{"part.json", part}};
    INFO(part);
    CHECK_THROWS_WITH(page_data(page), Catch::StartsWith("part.json: no answer of predict"));
  }
  page.answers = {{"d.json", "{"}};
  CHECK_THROWS_WITH(page_data(page), Catch::Contains("d.json: this is no JSON"));
}

TEST_CASE("No name ends the element that holds the data, or a line of it") {
  const std::string hostile =
      "</script><script>alert(1)</script><!-- \u2028\u2029 & \" %FORETRAIN-DATA% %FORETRAIN-TITLE%";
  Page page;
  page.title = hostile;
  page.scenarios.emplace_back().explanation.result = large_step();
  page.scenarios.back().explanation.result.scenario = hostile;
  page.sweeps.emplace_back(hostile, parse_csv("case,predicted.step_time_s\n</script>,1\n", "x.csv"));
  const std::string html = to_html(page), data = data_in(html);
  for (const char* bad : {"<", ">", "&", "\u2028", "\u2029"}) CHECK(data.find(bad) == std::string::npos);
  const Json read = Json::parse(data);
  CHECK(read["scenarios"][0]["name"] == hostile);
  CHECK(read["sweeps"][0]["name"] == hostile);
  CHECK(between(html, "<title>", "</title>").find('<') == std::string::npos);
  // Bytes that are no UTF-8 become replacement characters.
  page.title = "\xff";
  CHECK_NOTHROW(to_html(page));
}

TEST_CASE("Titles are written as they are") {
  Page page;
  page.title = "a < b > c & d \u00e9";
  CHECK(between(to_html(page), "<title>", "</title>") == "a &lt; b &gt; c &amp; d \u00e9");
  CHECK_THAT(data_in(to_html(page)), Catch::Contains("a \\u003c b \\u003e c \\u0026 d \u00e9"));
}

TEST_CASE("Scaling is compared with the fewest GPUs on which anything is predicted") {
  ScalingPart part;
  part.chart = {{.places = {8, 16, 32}, .curves = {{"ring", {NAN, NAN, 50.0}}, {"auto", {NAN, 40.0, 80.0}}}},
                "sequences",
                {8.0, 16.0, 32.0}};
  const Figure figure = scaling_figure(part);
  REQUIRE(figure.panels.size() == 3);  // without a price
  const std::vector<Series>& efficiency = figure.panels[2].series;
  CHECK(efficiency[0].points[2].y == Approx(80.0));
  CHECK(efficiency[1].points[1].y == Approx(100.0));
  CHECK(efficiency[1].points[2].y == Approx(50.0));
}

TEST_CASE("A sweep's columns have numbers where all are quantities, cases never") {
  const Json sweep = sweep_json("s", parse_csv("case,plan.tensor,plan.size,predicted.step_time_s,plan.same\n"
                                               "1,2,1 MB,1.5,x\n2,4,large,2.5,x\n",
                                               "s.csv"));
  CHECK(sweep["rows"] == 2);
  CHECK(sweep["kept"]["plan.same"] == "x");
  REQUIRE(sweep["columns"].size() == 4);
  CHECK(sweep["columns"][0]["key"] == "case");
  CHECK_FALSE(sweep["columns"][0].contains("numbers"));
  CHECK(sweep["columns"][1]["numbers"] == Json{2.0, 4.0});
  CHECK_FALSE(sweep["columns"][2].contains("numbers"));  // one of its values is none
  CHECK(sweep["columns"][3]["values"] == Json{1.5, 2.5});
  CHECK_FALSE(sweep["columns"][3].contains("numbers"));
}

TEST_CASE("The template asks nobody for anything, is small, and has its licences") {
  const std::string page = text_of(FORETRAIN_SOURCE_DIR "/reports/page/template.html");
  CHECK(page.size() > 100'000);
  CHECK(page.size() < 900'000);
  const std::string policy = between(page, R"(Content-Security-Policy" content=")", "\"");
  CHECK_THAT(policy, Catch::StartsWith("default-src 'none'; script-src 'sha256-"));
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(policy.find("http") == std::string::npos);
  for (const char* licence : {"Apache ECharts\nCopyright", "Apache License", "zrender/LICENSE",
                              "Redistributions in binary form", "Microsoft Corporation"}) {
    CHECK_THAT(page, Catch::Contains(licence));
  }
}

}  // namespace foretrain::test
