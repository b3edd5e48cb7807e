// The same training on fewer and more GPUs, and parameter servers against rings.
import { choice, dollars, element, number, percent, seconds } from "../dom.js";
import { chartPanel, counted, quantities, section } from "../panel.js";

const symbols = ["circle", "rect", "triangle", "diamond"];
const kinds = ["solid", "dashed", "dotted", [8, 3, 2, 3]];

function curvesPanel(scaling) {
  const all = [
    { name: "time of a step", key: "time_s", format: seconds },
    { name: "throughput", key: "samples_per_second", format: (value) => `${number(value)} samples/s`, log: true },
    { name: "efficiency", key: "efficiency", format: percent, ideal: 1 },
    { name: "cost of a million samples", key: "usd_per_million_samples", format: dollars },
  ].filter(({ key }) => scaling.curves.some((curve) => curve[key].some((value) => value !== null)));
  let shown = all[0];
  const panel = chartPanel({
    title: "Scaling by number of GPUs",
    note:
      `${scaling.kept}: the work of a GPU stays the same, so an ideal network keeps the time as it is. ` +
      (scaling.fidelity === "estimate" ? "These are estimates, as if no two transfers met. " : "") +
      (scaling.not_predicted.length
        ? `Beneath: ${counted(scaling.not_predicted.length, "reason")} for missing points.`
        : ""),
    controls: [
      quantities("Show", all, (chosen) => {
        shown = chosen;
        panel.update();
      }),
    ],
    chart: () => ({
      legend: {},
      tooltip: { trigger: "axis", valueFormatter: (value) => (value === undefined ? "–" : shown.format(value)) },
      xAxis: { type: "category", data: scaling.gpus.map(String), name: "GPUs", boundaryGap: false },
      yAxis: {
        type: shown.log ? "log" : "value",
        min: shown.log ? undefined : 0,
        axisLabel: { formatter: shown.format },
      },
      series: scaling.curves.map((curve, i) => ({
        name: curve.algorithm,
        type: "line",
        symbol: symbols[i % 4],
        symbolSize: 9,
        lineStyle: { type: kinds[i % 4], width: 2.5 },
        data: curve[shown.key],
        markLine:
          shown.ideal && i === 0
            ? {
                silent: true,
                symbol: "none",
                label: { formatter: "ideal", position: "insideEndTop" },
                lineStyle: { type: "dotted" },
                data: [{ yAxis: shown.ideal }],
              }
            : undefined,
      })),
    }),
    table: () => [
      ["gpus", ...scaling.curves.flatMap((c) => all.map(({ key }) => `${c.algorithm} ${key}`))],
      scaling.gpus.map((gpus, i) => [gpus, ...scaling.curves.flatMap((c) => all.map(({ key }) => c[key][i]))]),
    ],
  });
  return panel;
}

export function scaling(scenario, id) {
  const data = scenario.scaling;
  if (!data?.curves.some((curve) => curve.time_s.some((time) => time !== null))) return null;
  const missing = data.not_predicted.length
    ? element(
        "details",
        {},
        element("summary", {}, "Why points are missing"),
        element(
          "ul",
          {},
          data.not_predicted.map((why) => element("li", {}, why)),
        ),
      )
    : null;
  return section(id, "Scaling", curvesPanel(data), missing);
}

function ratioPanel(data) {
  const find = (name) => data.curves.find((curve) => curve.algorithm === name)?.time_s;
  const servers = find("parameter server"),
    ring = find("ring");
  const ratios = servers?.map((time, i) => (time !== null && ring?.[i] ? time / ring[i] : null));
  if (!ratios?.some((ratio) => ratio !== null)) return null;
  return chartPanel({
    title: "Time of a step by parameter servers over that by a ring",
    note: "Above 1 the ring is faster, below 1 the servers are.",
    tall: () => 260,
    label: `Parameter servers against a ring. ${data.gpus.map((n, i) => `${n} GPUs: ${number(ratios[i])}`).join(", ")}`,
    chart: ({ colours, ink }) => ({
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        valueFormatter: (value) => `${number(value)} times as long`,
      },
      xAxis: { type: "category", data: data.gpus.map(String), name: "GPUs" },
      yAxis: { type: "value", min: 0 },
      series: [
        {
          name: "servers ÷ ring",
          type: "bar",
          barMaxWidth: 46,
          data: ratios.map((value) => ({ value, itemStyle: { color: colours[value > 1 ? 1 : 0] } })),
          label: { show: true, position: "top", color: ink.text, formatter: ({ value }) => number(value) },
          markLine: {
            silent: true,
            symbol: "none",
            label: { show: false },
            lineStyle: { color: ink.text },
            data: [{ yAxis: 1 }],
          },
        },
      ],
    }),
    table: () => [
      ["gpus", "parameter server time_s", "ring time_s", "servers over ring"],
      data.gpus.map((gpus, i) => [gpus, servers[i], ring[i], ratios[i]]),
    ],
  });
}

export const servers = (scenario, id) =>
  section(id, "Parameter server against ring", scenario.scaling ? ratioPanel(scenario.scaling) : null);

/** From a sweep that has both: one cell for each pair of values. */
export function mapPanel(map, sweep) {
  const names = map.panels.map((one) => `${one.compares}${one.label ? `, ${map.panel} ${one.label}` : ""}`);
  let shown = 0;
  const cells = () =>
    map.panels[shown].ratio
      .map((ratio, i) => [i % map.x.labels.length, Math.floor(i / map.x.labels.length), ratio])
      .filter(([, , ratio]) => ratio !== null);
  const panel = chartPanel({
    title: `Servers over rings: ${sweep}`,
    note: "Time by servers ÷ time by the other way. Below 1 (blue) servers are faster.",
    controls: [
      choice(
        "Compare",
        names.map((name, i) => [i, name]),
        0,
        (value) => {
          shown = Number(value);
          panel.update();
        },
      ),
    ],
    tall: () => 130 + 26 * map.y.labels.length,
    chart: ({ colours, ink }) => ({
      tooltip: {
        formatter: ({ value: [x, y, ratio] }) =>
          `${map.x.title} ${map.x.labels[x]}\n${map.y.title} ${map.y.labels[y]}\n${number(10 ** ratio)} times as long`,
      },
      grid: { bottom: 88 },
      xAxis: { type: "category", data: map.x.labels, name: map.x.title },
      yAxis: { type: "category", data: map.y.labels, name: map.y.title, nameGap: 60 },
      visualMap: {
        min: -1,
        max: 1,
        calculable: false,
        orient: "horizontal",
        left: "center",
        bottom: 0,
        itemHeight: 180,
        textStyle: { color: ink.text },
        text: ["10 times as long", "a tenth"],
        inRange: { color: [colours[0], ink.ground, colours[1]] },
      },
      series: [
        {
          type: "heatmap",
          data: cells().map(([x, y, ratio]) => [x, y, Math.log10(ratio)]),
          itemStyle: { borderColor: ink.ground, borderWidth: 1 },
          label: {
            show: map.x.labels.length <= 12,
            color: ink.text,
            fontSize: 10,
            formatter: ({ value }) => number(10 ** value[2]),
          },
        },
      ],
    }),
    table: () => [
      [map.x.title, map.y.title, "servers over the other way"],
      cells().map(([x, y, ratio]) => [map.x.labels[x], map.y.labels[y], ratio]),
    ],
  });
  return panel;
}
