// Where the time of a step goes, and how much of each communication is hidden behind work.
import { percent, seconds } from "../dom.js";
import { chartPanel, section } from "../panel.js";
import { parts } from "./summary.js";

/** Stacked bars, one for each scenario. */
export function breakdownPanel(scenarios, title = "Where the time goes") {
  const told = scenarios.filter((scenario) => scenario.result?.breakdown_s);
  if (!told.length) return null;
  const keys = Object.keys(parts).filter((key) => told.some((scenario) => scenario.result.breakdown_s[key] > 0));
  const longest = Math.max(...told.map((scenario) => scenario.result.step_time_s));
  const of = (scenario, key) => scenario.result.breakdown_s[key];
  return chartPanel({
    title,
    label: `${title}. ${told.map((s) => `${s.name}: ${keys.map((key) => `${parts[key]} ${seconds(of(s, key))}`).join(", ")}`).join(". ")}`,
    tall: ({ phone }) => 96 + told.length * (phone ? 64 : 44),
    chart: ({ width }) => ({
      legend: {},
      tooltip: {
        trigger: "item",
        formatter: ({ seriesName, name, value }) => {
          const scenario = told.find((one) => one.name === name);
          return `${seriesName}\n${seconds(value)}, ${percent(value / scenario.result.step_time_s)}`;
        },
      },
      xAxis: { type: "value", name: "time", axisLabel: { formatter: seconds } },
      yAxis: {
        type: "category",
        inverse: true,
        data: told.map((s) => s.name),
        axisTick: { show: false },
        axisLabel: { show: told.length > 1, width: width * 0.3, overflow: "break" },
      },
      series: keys.map((key) => ({
        name: parts[key],
        type: "bar",
        stack: "step",
        barMaxWidth: 34,
        data: told.map((s) => of(s, key)),
        label: {
          show: true,
          color: "#fff",
          textBorderColor: "#0007",
          textBorderWidth: 2,
          fontSize: 11,
          formatter: ({ value, name }) =>
            (value / longest) * width > 80 ? percent(value / told.find((s) => s.name === name).result.step_time_s) : "",
        },
      })),
    }),
    table: () => [
      ["scenario", ...keys.map((key) => `${key}_s`), "step_time_s"],
      told.map((s) => [s.name, ...keys.map((key) => of(s, key)), s.result.step_time_s]),
    ],
  });
}

function communicationPanel(result) {
  const entries = Object.entries(result?.communication_s ?? {}).filter(([, time]) => time.total > 0);
  if (!entries.length) return null;
  const hidden = (time) => Math.max(0, time.total - time.exposed);
  return chartPanel({
    title: "Communication",
    note: "What is hidden happens beside the computing and costs no time of its own.",
    label: `Communication. ${entries.map(([name, time]) => `${name}: ${seconds(time.total)}, of which ${seconds(time.exposed)} exposed`).join(". ")}`,
    tall: () => 90 + 36 * entries.length,
    chart: ({ width, colours }) => ({
      legend: {},
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: seconds },
      xAxis: { type: "value", name: "time", axisLabel: { formatter: seconds } },
      yAxis: {
        type: "category",
        inverse: true,
        data: entries.map(([name]) => name),
        axisTick: { show: false },
        axisLabel: { width: width * 0.32, overflow: "break" },
      },
      series: [
        ["exposed", (time) => time.exposed, colours[1]],
        ["hidden", hidden, colours[5]],
      ].map(([name, value, color]) => ({
        name,
        type: "bar",
        stack: "all",
        barMaxWidth: 26,
        color,
        data: entries.map(([, time]) => value(time)),
      })),
    }),
    table: () => [
      ["communication", "total_s", "hidden_s", "exposed_s"],
      entries.map(([name, time]) => [name, time.total, hidden(time), time.exposed]),
    ],
  });
}

export const breakdown = (scenario, id) =>
  section(
    id,
    "Where the time goes",
    breakdownPanel([scenario], "Parts of a step"),
    communicationPanel(scenario.result),
  );
