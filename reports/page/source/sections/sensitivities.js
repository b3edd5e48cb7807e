// What each resource is worth, and what would help.
import { element, number, percent, seconds, table } from "../dom.js";
import { chartPanel, section } from "../panel.js";

/** Where what-ifs are estimates beside a simulation, they are held against an estimate. */
const basis = ({ what_ifs: estimated }) =>
  estimated
    ? ` These are estimates, as if no two transfers met, held against that of the scenario: ${seconds(estimated.time_s)}.`
    : "";

function tornado(explanation) {
  const { sensitivities } = explanation;
  const time = explanation.what_ifs?.time_s ?? explanation.time_s;
  const change = (after) => after / time - 1;
  const told = sensitivities.filter(
    (one) => Math.max(Math.abs(change(one.faster_s)), Math.abs(change(one.slower_s))) >= 0.0005,
  );
  if (!told.length) return null;
  const by = Math.round((sensitivities[0].scale - 1) * 100);
  return chartPanel({
    title: "What each resource is worth",
    note: `Change of the time when one resource is ${by} % faster or slower.${basis(explanation)}`,
    label: `Sensitivities. ${told.map((one) => `${one.resource}: ${percent(change(one.faster_s))} when faster, ${percent(change(one.slower_s))} when slower`).join(". ")}`,
    tall: () => 90 + 32 * told.length,
    chart: ({ width, colours }) => ({
      legend: {},
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: percent },
      xAxis: { type: "value", axisLabel: { formatter: percent }, name: "change of the time" },
      yAxis: {
        type: "category",
        inverse: true,
        data: told.map((one) => one.resource),
        axisTick: { show: false },
        axisLine: { onZero: false },
        axisLabel: { width: width * 0.34, overflow: "break" },
      },
      series: [
        [`${by} % faster`, "faster_s", colours[2]],
        [`${by} % slower`, "slower_s", colours[1]],
      ].map(([name, key, color]) => ({
        name,
        type: "bar",
        stack: "change",
        barMaxWidth: 22,
        color,
        data: told.map((one) => change(one[key])),
      })),
    }),
    table: () => [
      ["resource", "faster_s", "slower_s", "share"],
      sensitivities.map((one) => [one.resource, one.faster_s, one.slower_s, one.share]),
    ],
  });
}

/** An axis from the least change of the speed to the most, and beyond it as far as labels of bars reach. */
function withRoom(remedies, width, phone) {
  const changes = [0, ...remedies.map((one) => one.speedup - 1)],
    min = Math.min(...changes),
    most = Math.max(...changes);
  const label = remedies.every((one) => one.fits) ? 60 : phone ? 90 : 140;
  const share = Math.min(0.7, label / (width * 0.45));
  return { min, max: most + ((most - min) * share) / (1 - share) };
}

function remediesPanel(explanation) {
  const { remedies } = explanation;
  const known = remedies.filter((one) => one.speedup !== undefined);
  const told = known.filter((one) => Math.abs(one.speedup - 1) >= 0.005);
  if (!told.length) return null;
  const gain = ({ speedup }) => `${speedup > 1 ? "+" : ""}${percent(speedup - 1)}`;
  const others = known.length - told.length;
  return chartPanel({
    title: "What would help, each by itself",
    note:
      `Change of the speed, without regard to what it does to the training's result.${basis(explanation)}` +
      (others ? ` What makes less than half a percent of difference (${others}) is in the table alone.` : ""),
    label: `Remedies. ${told.map((one) => `${one.change}: ${gain(one)}`).join(", ")}`,
    tall: ({ phone }) => 44 + (phone ? 36 : 27) * told.length,
    chart: ({ phone, width, colours, ink }) => ({
      tooltip: {
        trigger: "item",
        formatter: ({ dataIndex: i }) =>
          `${told[i].change}\n${gain(told[i])} speed, ${seconds(told[i].time_s)}${told[i].fits ? "" : "\ndoes not fit"}`,
      },
      xAxis: {
        type: "value",
        axisLabel: { formatter: percent, showMaxLabel: false },
        splitLine: { showMinLine: false, showMaxLine: false },
        ...withRoom(told, width, phone),
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: told.map((one) => one.change),
        axisTick: { show: false },
        axisLine: { onZero: false },
        axisLabel: { width: width * 0.42, overflow: "break" },
      },
      series: [
        {
          name: "speed",
          type: "bar",
          barMaxWidth: 18,
          data: told.map((one) => ({
            value: one.speedup - 1,
            itemStyle: { color: !one.fits ? ink.soft : one.speedup > 1 ? colours[2] : colours[1] },
            label: {
              show: true,
              position: "right",
              color: ink.text,
              lineHeight: 14,
              formatter: () => gain(one) + (one.fits ? "" : `${phone ? "\n" : ", "}does not fit`),
            },
          })),
        },
      ],
    }),
    table: () => [
      ["change", "settings", "times the speed", "time_s", "fits"],
      known.map((one) => [one.change, one.set.join(" "), one.speedup, one.time_s, one.fits]),
    ],
  });
}

export function sensitivities(scenario, id) {
  const { explanation } = scenario;
  if (!explanation) return null;
  const impossible = explanation.remedies.filter((one) => one.why_not);
  const details = impossible.length
    ? element(
        "details",
        {},
        element("summary", {}, "What is not possible here"),
        table(
          "What is not possible here",
          ["change", "why"],
          impossible.map((one) => [one.change, one.why_not]),
        ),
      )
    : null;
  return section(id, "What it depends on", tornado(explanation), remediesPanel(explanation), details);
}
