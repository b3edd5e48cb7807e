#include "reports/measured/rates.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// 2 · 4096³ FLOP, 137.4 GFLOP; and ten times 2 · 1024² · 64, 134.2 MFLOP.
constexpr const char* two_products =
    "case,cluster.node,cluster.gpus_per_node,workload.operator.kind,workload.operator.m,workload.operator.n,"
    "workload.operator.k,workload.operator.precision,workload.operator.repeat,measured.time\n"
    "large,dgx-a100-80gb,1,matmul,4096,4096,4096,bf16,1,1 ms\n"
    "small,dgx-h100,1,matmul,1024,1024,64,bf16,10,200 us\n";

/// All-reduces of eight ranks: 2 · 7/8 of the message pass each rank's links.
constexpr const char* three_messages =
    "case,cluster.node,cluster.nodes,workload.collective.operation,workload.collective.size,measured.time,"
    "measured.bus_bandwidth\n"
    "large,dgx-h100,1,all_reduce,1 GB,10 ms,\n"
    "small,dgx-h100,1,all_reduce,1 MB,,20 GB/s\n"
    "far,dgx-h100,2,all_reduce,1 MB,1 ms,\n";

Result operator_of(double seconds) {
  Result result;
  result.work.emplace<OperatorResult>().time = Seconds(seconds);
  return result;
}

Result collective_of(double seconds, double bus_bandwidth) {
  Result result;
  auto& collective = result.work.emplace<CollectiveResult>();
  collective.time = Seconds(seconds);
  collective.bus_bandwidth = BytesPerSecond(bus_bandwidth);
  return result;
}

RateFigure figure_of(RateKind kind, const std::string& table, const std::vector<Result>& results) {
  RateFigure figure{kind, {}};
  const std::vector<Case> rows = read_cases_text(table, "cases.csv");
  REQUIRE(rows.size() == results.size());
  for (std::size_t i = 0; i < rows.size(); ++i) add_case(figure, rows[i], scenario_of(rows[i]), results[i]);
  return figure;
}

RateFigure products() {
  return figure_of(RateKind::products, two_products, {operator_of(0.5e-3), operator_of(400e-6)});
}

RateFigure collectives() {
  return figure_of(RateKind::collectives, three_messages,
                   {collective_of(8e-3, 218.75e9), collective_of(70e-6, 25e9), collective_of(2e-3, 0.9375e9)});
}

void check_point(const RatePoint& point, double size, double measured, double predicted) {
  CHECK(point.size == Approx(size));
  CHECK(point.measured == Approx(measured));
  CHECK(point.predicted == Approx(predicted));
}

/// The points of a series that has one setting.
const std::vector<RatePoint>& points_of(const RateFigure& figure, const RateMachine& machine, const std::string& name) {
  const RateSeries& series = figure.panels.at(machine).at(name);
  REQUIRE(series.size() == 1);
  return series.begin()->second;
}

}  // namespace

TEST_CASE("A product's rate is its work over its time, once for each time that it runs") {
  const RateFigure figure = products();
  CHECK(figure.panels.size() == 2);
  // 137.4 GFLOP in 1 ms, and in half of that.
  check_point(points_of(figure, {"dgx-a100-80gb"}, "bf16").front(), 137.438953e9, 137.438953e12, 274.877907e12);
  // Ten products of 134.2 MFLOP in 200 µs, and in twice that: the size is that of one.
  check_point(points_of(figure, {"dgx-h100"}, "bf16").front(), 134.217728e6, 6.7108864e12, 3.3554432e12);
}

TEST_CASE("Messages of one setting are a curve by size, in bus bandwidth") {
  const RateFigure figure = collectives();
  CHECK(figure.panels.size() == 2);
  const std::vector<RatePoint>& points = points_of(figure, {"dgx-h100"}, "all reduce");
  REQUIRE(points.size() == 2);
  // A bandwidth stands as it was measured; 1 GB in 10 ms is 100 GB/s, 7/4 of that on the bus, and in 8 ms 5/4 of that.
  check_point(points[0], 1e6, 20e9, 25e9);
  check_point(points[1], 1e9, 175e9, 218.75e9);
  // Between nodes there are sixteen ranks: 15/8 of 1 MB in 1 ms.
  check_point(points_of(figure, {"dgx-h100", 2}, "all reduce").front(), 1e6, 1.875e9, 0.9375e9);
}

TEST_CASE("Scenarios are of the kind of their work") {
  const Scenario product = scenario_of(read_cases_text(two_products, "cases.csv").front());
  CHECK(is_of(RateKind::products, product));
  CHECK_FALSE(is_of(RateKind::attention, product));
  CHECK_FALSE(is_of(RateKind::collectives, product));
  CHECK(is_of(RateKind::collectives, scenario_of(read_cases_text(three_messages, "cases.csv").front())));
}

TEST_CASE("A picture without a rate is refused") { CHECK_THROWS_AS(to_svg(to_figure(RateFigure{})), UsageError); }

}  // namespace foretrain::test
