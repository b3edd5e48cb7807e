// Predictions beside measurements.
import { choice, element, formatOf, number, percent, table } from "../dom.js";
import { chartPanel, counted, section } from "../panel.js";

const symbols = ["circle", "rect", "triangle", "diamond", "pin", "arrow"];

function accuracyPanel(report) {
  if (!report.cases.length) return null;
  const quantities = [...new Set(report.cases.map((one) => one.quantity))];
  const groups = [...new Set(report.cases.map((one) => one.group))];
  let quantity = quantities[0],
    group = "";
  const unit = { step_time: "step_time_s", time: "time_s", memory_per_gpu: "bytes", bus_bandwidth: "bytes_per_second" };
  const left = () => report.cases.filter((one) => one.quantity === quantity && (!group || one.group === group));
  const panel = chartPanel({
    title: `Predicted against measured: ${report.name}`,
    note: `${number(report.overall.n)} measurements, mean absolute error ${percent(report.overall.mape)}. On the solid line a prediction is exact, between the dotted ones 10 % off.`,
    label: `Predicted against measured: mean absolute error ${percent(report.overall.mape)} of ${report.overall.n} measurements, median ${percent(report.overall.median_error)}.`,
    controls: [
      quantities.length > 1
        ? choice(
            "Quantity",
            quantities.map((one) => [one, one.replaceAll("_", " ")]),
            quantity,
            (value) => {
              quantity = value;
              panel.update();
            },
          )
        : null,
      groups.length > 1
        ? choice("Group", [["", "all"], ...groups], "", (value) => {
            group = value;
            panel.update();
          })
        : null,
    ].filter(Boolean),
    tall: ({ phone }) => (phone ? 380 : 460),
    chart: ({ colours, ink }) => {
      const shown = left(),
        format = formatOf(unit[quantity] ?? quantity);
      const values = shown.flatMap((one) => [one.measured, one.predicted]).filter((value) => value > 0);
      const low = Math.min(...values) / 1.15,
        high = Math.max(...values) * 1.15;
      const named = [...new Set(shown.map((one) => one.group))];
      const diagonal = (factor) => ({
        type: "line",
        silent: true,
        symbol: "none",
        data: [
          [low, low * factor],
          [high, high * factor],
        ],
        tooltip: { show: false },
        lineStyle: { color: ink.soft, width: factor === 1 ? 1.5 : 1, type: factor === 1 ? "solid" : "dotted" },
        clip: true,
      });
      return {
        legend: { data: named },
        grid: { left: 36 },
        tooltip: {
          trigger: "item",
          formatter: ({ data }) =>
            data.one
              ? `${data.one.case}\nmeasured ${format(data.one.measured)}\npredicted ${format(data.one.predicted)}\nerror ${percent(data.one.error)}`
              : "",
        },
        xAxis: {
          type: "log",
          min: low,
          max: high,
          name: "measured",
          axisLabel: { formatter: format, showMinLabel: false, showMaxLabel: false },
        },
        yAxis: {
          type: "log",
          min: low,
          max: high,
          name: "predicted",
          nameGap: 58,
          axisLabel: { formatter: format, showMinLabel: false, showMaxLabel: false },
        },
        series: [
          diagonal(1),
          diagonal(1.1),
          diagonal(1 / 1.1),
          ...named.map((name, i) => ({
            name: name || "cases",
            type: "scatter",
            symbol: symbols[i % symbols.length],
            symbolSize: 9,
            color: colours[i % colours.length],
            itemStyle: { opacity: 0.8 },
            data: shown
              .filter((one) => one.group === name)
              .map((one) => ({ value: [one.measured, one.predicted], one })),
          })),
        ],
      };
    },
    table: () => [
      ["case", "group", "quantity", "measured", "predicted", "error"],
      left().map((one) => [one.case, one.group, one.quantity, one.measured, one.predicted, one.error]),
    ],
  });
  return panel;
}

const groupTable = (report) =>
  table(
    "Errors by group",
    ["group", "n", "mean error", "median error", "bias", "worst"],
    Object.entries(report.groups).map(([name, one]) => [
      name || "all",
      one.n,
      one.mape,
      one.median_error,
      one.bias,
      one.worst,
    ]),
  );

const failedList = (report) =>
  report.failed.length
    ? element(
        "details",
        {},
        element("summary", {}, `${counted(report.failed.length, "case")} without a prediction`),
        table(
          "Cases without a prediction",
          ["case", "why"],
          report.failed.map((one) => [one.case, one.why]),
        ),
      )
    : null;

export const accuracy = (all, id) =>
  section(
    id,
    "Predicted and measured",
    all.flatMap((report) => [accuracyPanel(report), groupTable(report), failedList(report)]),
  );
