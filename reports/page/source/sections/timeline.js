// What runs where, and when. Bars that are narrower than a pixel are drawn as one, anew at each zoom.
import { element, number, seconds } from "../dom.js";
import { graphic } from "../echarts.js";
import { chartPanel, counted, section } from "../panel.js";

const kinds = ["forward", "backward", "compute", "communication", "optimizer", "host", "data"];

function kindOf(slices, i) {
  const category = slices.categories[slices.category[i]];
  if (category !== "compute") return category;
  const name = slices.names[slices.name[i]];
  return name.startsWith("backward") ? "backward" : name.startsWith("forward") ? "forward" : "compute";
}

/**
 * Bars that can be told apart where `least` microseconds are the width of one: [row, from, until, slice or -1, tasks].
 * Narrower slices are gathered by their place; what most of that time goes to gives the bar its kind.
 */
export function visible(slices, kindOfSlice, from, until, least) {
  const bars = Object.fromEntries(kinds.map((kind) => [kind, []]));
  let gathered = null,
    last = null,
    lastKind = null;
  const close = () => {
    if (!gathered) return;
    const [kind] = Object.entries(gathered.busy).reduce((most, one) => (one[1] > most[1] ? one : most));
    const { row, start, end, slice, tasks } = gathered;
    gathered = null;
    if (last && lastKind === kind && last[0] === row && start - last[2] < least) {
      last[2] = Math.max(last[2], end);
      last[3] = -1;
      last[4] += tasks;
      return;
    }
    last = [row, start, end, slice, tasks];
    lastKind = kind;
    bars[kind].push(last);
  };
  for (let i = 0; i < slices.start_us.length; ++i) {
    const start = slices.start_us[i],
      length = slices.duration_us[i],
      end = start + length,
      row = slices.resource[i];
    if (end < from || start > until) continue;
    const tasks = slices.tasks[i],
      slice = tasks > 1 ? -1 : i,
      column = Math.floor(start / least);
    if (gathered && (length >= least || gathered.row !== row || gathered.column !== column)) close();
    if (length >= least) {
      last = null;
      bars[kindOfSlice[i]].push([row, start, end, slice, tasks]);
      continue;
    }
    gathered ??= { row, column, start, end, slice, tasks: 0, busy: {} };
    if (gathered.tasks > 0) gathered.slice = -1;
    gathered.end = Math.max(gathered.end, end);
    gathered.tasks += tasks;
    gathered.busy[kindOfSlice[i]] = (gathered.busy[kindOfSlice[i]] ?? 0) + length;
  }
  close();
  return bars;
}

function sums(slices, kindOfSlice, span) {
  const rows = new Map();
  slices.start_us.forEach((_, i) => {
    const key = `${slices.resource[i]} ${kindOfSlice[i]}`;
    const row = rows.get(key) ?? [slices.resources[slices.resource[i]], kindOfSlice[i], 0, 0, 0];
    row[2] += slices.tasks[i];
    row[3] += slices.duration_us[i] * 1e-6;
    row[4] = row[3] / (span * 1e-6);
    rows.set(key, row);
  });
  return [["resource", "kind", "tasks", "busy_s", "share"], [...rows.values()]];
}

function timelinePanel(slices) {
  const span = slices.start_us.reduce((end, start, i) => Math.max(end, start + slices.duration_us[i]), 0);
  const kindOfSlice = slices.start_us.map((_, i) => kindOf(slices, i));
  const present = kinds.filter((kind) => kindOfSlice.includes(kind));
  const rows = slices.resources.length,
    fits = rows <= 40;
  const joined = slices.tasks.some((tasks) => tasks > 1);
  let from = 0,
    until = span,
    wait = 0;

  const dataOf = (width) => {
    const bars = visible(slices, kindOfSlice, from, until, ((until - from) / Math.max(200, width - 150)) * 1.5);
    return present.map((kind) => ({ name: kind, data: bars[kind] }));
  };
  const bar = ({ coordSys }, api) => {
    const [x, y] = api.coord([api.value(1), api.value(0)]);
    const height = Math.max(2, api.size([0, 1])[1] * 0.72);
    const shape = graphic.clipRectByRect(
      { x, y: y - height / 2, width: Math.max(1, api.coord([api.value(2), 0])[0] - x), height },
      coordSys,
    );
    return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
  };
  const tip = ({ value: [row, start, end, i, tasks], seriesName }) =>
    [
      i < 0 ? `${tasks} tasks, most of their time ${seriesName}` : slices.names[slices.name[i]],
      slices.resources[row],
      i >= 0 && slices.micro_batch[i] >= 0 ? `micro-batch ${slices.micro_batch[i] + 1}` : null,
      `from ${seconds(start * 1e-6)}, for ${seconds((end - start) * 1e-6)}`,
    ]
      .filter(Boolean)
      .join("\n");

  const zoom = (a, b) => {
    const width = Math.min(Math.max(b - a, span / 1e5), span),
      start = Math.min(Math.max(a, 0), span - width);
    panel.chart?.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, startValue: start, endValue: start + width });
  };
  const step = (name, text, act) =>
    element("button", { type: "button", "aria-label": name, title: name, onclick: act }, text);
  const panel = chartPanel({
    title: "Timeline of a step",
    note: `${counted(slices.start_us.length, "bar")} over ${seconds(span * 1e-6)}.${joined ? " The shortest tasks are joined." : ""} Drag the slider or hold Ctrl and turn the wheel to zoom; the table has sums.`,
    label: `Timeline of ${seconds(span * 1e-6)} on ${counted(rows, "resource")}; its table has what each is busy with.`,
    controls: [
      step("Zoom in", "+", () => zoom(from + (until - from) / 4, until - (until - from) / 4)),
      step("Zoom out", "−", () => zoom(from - (until - from) / 2, until + (until - from) / 2)),
      step("Earlier", "←", () => zoom(from - (until - from) / 2, from + (until - from) / 2)),
      step("Later", "→", () => zoom(from + (until - from) / 2, until + (until - from) / 2)),
      step("Everything", "Everything", () => zoom(0, span)),
    ],
    tall: () => 115 + (fits ? rows : 40) * (rows > 12 ? 16 : 26),
    chart: ({ width, colours, phone }) => ({
      legend: { data: present },
      tooltip: { formatter: tip },
      grid: { bottom: 48 },
      xAxis: { type: "value", min: 0, max: span, axisLabel: { formatter: (value) => seconds(value * 1e-6) } },
      yAxis: {
        type: "category",
        inverse: true,
        data: slices.resources,
        axisTick: { show: false },
        axisLabel: { width: phone ? 84 : 190, overflow: "truncate", fontSize: rows > 12 ? 10 : 12 },
      },
      dataZoom: [
        {
          type: "slider",
          xAxisIndex: 0,
          filterMode: "none",
          bottom: 8,
          height: 24,
          startValue: from,
          endValue: until,
          showDataShadow: false,
          labelFormatter: (value) => seconds(value * 1e-6),
          brushSelect: false,
        },
        {
          type: "inside",
          xAxisIndex: 0,
          filterMode: "none",
          startValue: from,
          endValue: until,
          zoomOnMouseWheel: "ctrl",
          moveOnMouseWheel: false,
        },
        ...(fits
          ? []
          : [
              {
                type: "slider",
                yAxisIndex: 0,
                width: 14,
                right: 2,
                startValue: 0,
                endValue: 39,
                showDetail: false,
                brushSelect: false,
              },
            ]),
      ],
      series: dataOf(width).map(({ name, data }) => ({
        name,
        type: "custom",
        renderItem: bar,
        data,
        encode: { x: [1, 2], y: 0 },
        color: colours[[0, 5, 7, 1, 2, 6, 4][kinds.indexOf(name)]],
        clip: true,
      })),
    }),
    ready: (chart, isNew) => {
      if (!isNew) return;
      chart.on("datazoom", () => {
        const { startValue, endValue } = chart.getOption().dataZoom[0];
        from = startValue;
        until = endValue;
        cancelAnimationFrame(wait);
        wait = requestAnimationFrame(() => chart.setOption({ series: dataOf(chart.getWidth()) }));
      });
    },
    table: () => sums(slices, kindOfSlice, span),
    csv: () => [
      ["resource", "task", "category", "micro_batch", "start_us", "duration_us", "tasks"],
      slices.start_us.map((start, i) => [
        slices.resources[slices.resource[i]],
        slices.names[slices.name[i]],
        slices.categories[slices.category[i]],
        slices.micro_batch[i] < 0 ? null : slices.micro_batch[i] + 1,
        start,
        slices.duration_us[i],
        slices.tasks[i],
      ]),
    ],
  });
  return panel;
}

export const timeline = (scenario, id) =>
  section(id, "Timeline", scenario.timeline ? timelinePanel(scenario.timeline) : null);
