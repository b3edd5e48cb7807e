// What each resource is worth, and what would help.
import { element, number, percent, seconds, table } from "../dom.js";
import { chartPanel, section } from "../panel.js";

function tornado({ sensitivities, time_s: time }) {
  const change = (after) => after / time - 1;
  const told = sensitivities.filter((one) => Math.max(Math.abs(change(one.faster_s)), Math.abs(change(one.slower_s))) >= 0.0005);
  if (!told.length) return null;
  const by = Math.round((sensitivities[0].scale - 1) * 100);
  return chartPanel({
    title: "What each resource is worth", note: `Change of the time when one resource is ${by} % faster or slower.`,
    label: `Sensitivities. ${told.map((one) => `${one.resource}: ${percent(change(one.faster_s))} when faster, ${percent(change(one.slower_s))} when slower`).join(". ")}`,
    tall: () => 110 + 32 * told.length,
    chart: ({ width, colours }) => ({
      legend: {}, tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: percent },
      xAxis: { type: "value", axisLabel: { formatter: percent }, name: "change of the time" },
      yAxis: { type: "category", inverse: true, data: told.map((one) => one.resource), axisTick: { show: false }, axisLine: { onZero: false },
        axisLabel: { width: width * 0.34, overflow: "break" } },
      series: [[`${by} % faster`, "faster_s", colours[2]], [`${by} % slower`, "slower_s", colours[1]]].map(([name, key, color]) => ({
        name, type: "bar", stack: "change", barMaxWidth: 22, color, data: told.map((one) => change(one[key])) })),
    }),
    table: () => [["resource", "faster_s", "slower_s", "share"], sensitivities.map((one) => [one.resource, one.faster_s, one.slower_s, one.share])],
  });
}

function remediesPanel(remedies) {
  const known = remedies.filter((one) => one.speedup !== undefined);
  if (!known.length) return null;
  return chartPanel({
    title: "What would help, each by itself", note: "Speed over the scenario's own, without regard to what the change does to the training's result.",
    label: `Remedies. ${known.map((one) => `${one.change}: ${number(one.speedup)} times`).join(", ")}`,
    tall: () => 70 + 27 * known.length,
    chart: ({ width, colours, ink }) => ({
      tooltip: { trigger: "item", formatter: ({ dataIndex: i }) => `${known[i].change}\n${number(known[i].speedup)} times the speed, ${seconds(known[i].time_s)}${known[i].fits ? "" : "\ndoes not fit"}` },
      xAxis: { type: "value", axisLabel: { formatter: (value) => `${number(value)}×` } },
      yAxis: { type: "category", inverse: true, data: known.map((one) => one.change), axisTick: { show: false },
        axisLabel: { width: width * 0.42, overflow: "break" } },
      series: [{ name: "speed", type: "bar", barMaxWidth: 18, data: known.map(({ speedup, fits }) => ({ value: speedup,
        itemStyle: { color: !fits ? ink.soft : speedup >= 1 ? colours[2] : colours[1] } })),
        label: { show: true, position: "right", color: ink.text, formatter: ({ value }) => `${number(value)}×` },
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: ink.text, type: "solid" }, data: [{ xAxis: 1 }] } }],
    }),
    table: () => [["change", "settings", "times the speed", "time_s", "fits"], known.map((one) => [one.change, one.set.join(" "), one.speedup, one.time_s, one.fits])],
  });
}

export function sensitivities(scenario, id) {
  const { explanation } = scenario;
  if (!explanation) return null;
  const impossible = explanation.remedies.filter((one) => one.why_not);
  const details = impossible.length ? element("details", {}, element("summary", {}, "What is not possible here"),
    table("What is not possible here", ["change", "why"], impossible.map((one) => [one.change, one.why_not]))) : null;
  return section(id, "What it depends on", tornado(explanation), remediesPanel(explanation.remedies), details);
}
