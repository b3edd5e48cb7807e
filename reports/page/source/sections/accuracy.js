// Predictions beside measurements.
import { element, number, percent, table } from "../dom.js";
import { figurePanel } from "../figure.js";
import { counted, section } from "../panel.js";

const casesTable = (report) =>
  element(
    "details",
    {},
    element("summary", {}, "Every case"),
    table(
      `Cases: ${report.name}`,
      ["case", "group", "quantity", "measured", "predicted", "error"],
      report.cases.map((one) => [one.case, one.group, one.quantity, one.measured, one.predicted, one.error]),
    ),
  );

const accuracyPanel = (report) =>
  figurePanel(report.figure, {
    title: `Predicted against measured: ${report.name}`,
    note: `${number(report.overall.n)} measurements, mean absolute error ${percent(report.overall.mape)}. Solid line: exact; dashed lines: 10 % off.`,
    label: `Predicted against measured: mean absolute error ${percent(report.overall.mape)} of ${report.overall.n} measurements, median ${percent(report.overall.median_error)}.`,
  });

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
    all.flatMap((report) => [accuracyPanel(report), groupTable(report), casesTable(report), failedList(report)]),
  );
