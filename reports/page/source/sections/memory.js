// What fills the fullest GPU, by kind and over the step.
import { bytes, element } from "../dom.js";
import { chartPanel, section } from "../panel.js";

function kindsPanel(memory) {
  const kinds = Object.entries(memory).filter(
    ([key, value]) =>
      typeof value === "number" && value > 0 && !["total", "capacity", "host", "host_capacity"].includes(key),
  );
  return chartPanel({
    title: "Memory by kind",
    tall: () => 140,
    note: `${bytes(memory.total)} of ${bytes(memory.capacity)}: ${memory.fits ? "fits" : "does not fit"}.`,
    label: `Memory by kind. ${kinds.map(([key, value]) => `${key} ${bytes(value)}`).join(", ")}; capacity ${bytes(memory.capacity)}`,
    chart: ({ ink }) => ({
      legend: {},
      tooltip: { trigger: "item", valueFormatter: bytes },
      xAxis: {
        type: "value",
        max: Math.max(memory.total, memory.capacity) * 1.02,
        axisLabel: { formatter: bytes, showMaxLabel: false },
      },
      yAxis: { type: "category", data: ["memory"], axisLabel: { show: false }, axisTick: { show: false } },
      series: kinds.map(([name, value], i) => ({
        name,
        type: "bar",
        stack: "memory",
        barMaxWidth: 36,
        data: [value],
        markLine: i
          ? undefined
          : {
              silent: true,
              symbol: "none",
              lineStyle: { color: ink.bad, type: "solid", width: 2 },
              label: { color: ink.text, formatter: "capacity", position: "end", distance: 3, align: "right" },
              data: [{ xAxis: memory.capacity }],
            },
      })),
    }),
    table: () => [
      ["kind", "bytes"],
      [...kinds, ["total", memory.total], ["capacity", memory.capacity]],
    ],
  });
}

function stepPanel({ timeline, peak, memory_per_gpu_bytes: footprint }) {
  const kinds = Object.keys(timeline[0].bytes).filter(
    (key) => key !== "total" && timeline.some((moment) => moment.bytes[key] > 0),
  );
  const when = (moment) =>
    moment.layer === undefined
      ? moment.phase
      : `${moment.phase}, layer ${moment.layer + 1} (${moment.layer_name}), micro-batch ${moment.micro_batch + 1}`;
  return chartPanel({
    title: "Memory over the step",
    note: `The peak of ${bytes(peak.bytes.total)} comes in ${when(peak)}.`,
    tall: ({ phone }) => (phone ? 360 : 340),
    chart: ({ ink }) => ({
      legend: {},
      tooltip: {
        trigger: "axis",
        order: "seriesDesc",
        formatter: (entries) =>
          [
            when(timeline[entries[0].dataIndex]),
            ...entries
              .filter((one) => one.value > 0)
              .reverse()
              .map((one) => `${one.seriesName}: ${bytes(one.value)}`),
          ].join("\n"),
      },
      xAxis: {
        type: "category",
        boundaryGap: false,
        data: timeline.map((moment) => moment.phase),
        name: "layers in the order of the work",
        axisLabel: { interval: (i) => i === 0 || timeline[i].phase !== timeline[i - 1].phase },
      },
      yAxis: {
        type: "value",
        max: Math.ceil((Math.max(footprint.capacity, peak.bytes.total) * 1.05) / 1e9) * 1e9,
        axisLabel: { formatter: bytes, showMaxLabel: false },
      },
      series: kinds.map((name, i) => ({
        name,
        type: "line",
        stack: "memory",
        step: "middle",
        symbol: "none",
        areaStyle: { opacity: 0.85 },
        lineStyle: { width: 0.5 },
        data: timeline.map((moment) => moment.bytes[name]),
        markLine: i
          ? undefined
          : {
              silent: true,
              symbol: "none",
              lineStyle: { color: ink.bad, type: "solid", width: 2 },
              label: { color: ink.text, formatter: "capacity", position: "insideStartTop" },
              data: [{ yAxis: footprint.capacity }],
            },
      })),
    }),
    table: () => [
      ["moment", "phase", "micro-batch", "layer", ...kinds.map((key) => `${key}_bytes`), "total_bytes"],
      timeline.map((moment, i) => [
        i + 1,
        moment.phase,
        moment.micro_batch === undefined ? null : moment.micro_batch + 1,
        moment.layer === undefined ? null : `${moment.layer + 1} ${moment.layer_name}`,
        ...kinds.map((key) => moment.bytes[key]),
        moment.bytes.total,
      ]),
    ],
  });
}

export function memory(scenario, id) {
  const footprint = scenario.memory?.memory_per_gpu_bytes ?? scenario.result?.memory_per_gpu_bytes;
  if (!footprint) return null;
  const largest = scenario.memory
    ? element(
        "p",
        {},
        scenario.memory.largest_micro_batch > 0
          ? `The largest micro-batch that fits is ${scenario.memory.largest_micro_batch}; now it is ${scenario.memory.micro_batch}. `
          : "No micro-batch fits. ",
        scenario.memory.remedies.join(". "),
      )
    : null;
  return section(
    id,
    "Memory",
    kindsPanel(footprint),
    scenario.memory?.timeline.length ? stepPanel(scenario.memory) : null,
    largest,
  );
}
