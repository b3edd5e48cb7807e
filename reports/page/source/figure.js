// Charts that the program describes (reports/figure): panels with axes, series of points and boxes, levels and labels.
import { choice, element, number } from "./dom.js";
import { graphic } from "./echarts.js";
import { chartPanel } from "./panel.js";

const symbols = ["circle", "rect", "triangle", "diamond", "pin", "arrow"];
const dashes = ["solid", "dashed", "dotted", [8, 3, 2, 3]];
const palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"];

/** Pictures are on white: greys, and colours that have a lighter one on dark ground, follow the theme. */
function colourOf({ colour }, i, { colours, ink }) {
  if (!colour) return colours[i % colours.length];
  const place = palette.indexOf(colour.toLowerCase());
  if (place >= 0) return colours[place];
  const [, r, g, b] = colour.match(/#(..)(..)(..)/);
  if (r !== g || g !== b) return colour;
  return parseInt(r, 16) < 0x50 ? ink.text : ink.soft;
}

/** "1.2 ms" at the tics of an axis that has a unit; the program's own label where it has one. */
function writer({ tics = [], unit }) {
  const prefixes = {
    s: [1, "s", 1e-3, "ms", 1e-6, "µs"],
    B: [1e9, "GB", 1e6, "MB", 1e3, "kB"],
    "B/s": [1e9, "GB/s", 1e6, "MB/s"],
  };
  const known = new Map(tics.map(([at, label]) => [at, label]));
  return (value) => {
    if (known.has(value)) return known.get(value);
    const steps = prefixes[unit] ?? [];
    for (let i = 0; i < steps.length; i += 2)
      if (Math.abs(value) >= steps[i]) return `${number(value / steps[i])} ${steps[i + 1]}`;
    return number(value);
  };
}

function axisOf(axis, { width, phone }, upward, rows) {
  const tics = axis.tics?.map(([at]) => at);
  const inverse = axis.range?.[0] > axis.range?.[1];
  const range = axis.range ?? (upward ? [] : ["dataMin", "dataMax"]);
  const [min, max] = inverse ? [...range].reverse() : range;
  return {
    type: axis.logarithmic ? "log" : "value",
    min,
    max,
    inverse,
    name: axis.name,
    nameGap: upward ? 52 : 30,
    axisLabel: {
      formatter: writer(axis),
      customValues: tics,
      ...(rows ? { width: width * (phone ? 0.26 : 0.32), overflow: "break", hideOverlap: false } : {}),
      ...(tics ? {} : { showMinLabel: !axis.logarithmic && upward, showMaxLabel: false }),
    },
    axisTick: { show: !rows, customValues: tics },
    splitLine: { show: !rows },
  };
}

/** A rectangle of an area, within the axes. */
function box({ coordSys }, api) {
  const [left, low] = api.coord([api.value(0), api.value(2)]),
    [right, high] = api.coord([api.value(1), api.value(3)]);
  const x = Math.min(left, right),
    y = Math.min(low, high);
  const shape = graphic.clipRectByRect(
    { x, y, width: Math.max(0.5, Math.abs(right - left)), height: Math.max(0.5, Math.abs(high - low)) },
    coordSys,
  );
  return (
    shape && { type: "rect", shape, style: { fill: api.visual("color"), stroke: api.visual("color"), lineWidth: 0.6 } }
  );
}

function seriesOf(one, i, look) {
  const common = { name: one.name, color: colourOf(one, i, look) };
  const made = [];
  if (one.boxes) {
    made.push({
      ...common,
      type: "custom",
      renderItem: box,
      data: one.boxes.map(({ at, what }) => ({ value: at, what })),
      encode: { x: [0, 1], y: [2, 3] },
      clip: true,
    });
  }
  if (one.points) {
    made.push({
      ...common,
      type: one.line ? "line" : "scatter",
      data: one.points.map(({ at: [x, y], size, what }) => ({
        value: [x, y ?? "-"],
        what,
        symbolSize: one.dots ? 9 * size : 0,
      })),
      symbol: one.dots ? symbols[i % symbols.length] : "none",
      lineStyle: { width: Math.max(1.5, one.line), type: one.dashed ? "dashed" : one.dots ? "solid" : dashes[i % 4] },
      itemStyle: { opacity: one.line ? 1 : 0.8 },
      clip: true,
    });
  }
  return made;
}

/** Labels of boxes where these have room, those of points where they cover nothing. */
function labelsOf(panel, { width, phone, ink }) {
  const [low, high] = panel.x.range ?? [0, 1];
  const fits = ({ text, room }) => !room || (room / Math.abs(high - low)) * width * 0.7 > 8 * text.length;
  const isLate = (x) =>
    (panel.x.logarithmic ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low)) > 0.6;
  const shown = panel.labels.filter((label) => (panel.rows || !phone) && fits(label));
  return {
    type: "scatter",
    silent: true,
    symbolSize: 0.1,
    data: shown.map((label) => ({
      value: label.at,
      label: {
        show: true,
        formatter: label.text,
        fontSize: 11,
        position: label.room ? "inside" : !panel.rows && isLate(label.at[0]) ? "left" : "right",
        color: label.room ? "#fff" : ink.text,
        ...(label.room && { textBorderColor: "#0009", textBorderWidth: 2 }),
      },
    })),
    labelLayout: { hideOverlap: true, moveOverlap: "shiftY" },
  };
}

const lineAcross = ({ levels }, ink) => ({
  silent: true,
  symbol: "none",
  lineStyle: { color: ink.soft, type: "dashed" },
  label: { color: ink.text, formatter: ({ name }) => name, position: "insideStartTop" },
  data: levels.map(({ at, name, vertical }) => ({ name, [vertical ? "xAxis" : "yAxis"]: at })),
});

function optionOf(panel, look) {
  const names = [...new Set(panel.series.map((one) => one.name).filter(Boolean))];
  const x = writer(panel.x),
    y = writer(panel.y);
  const tell = ({ seriesName, data }) => {
    const value = data.value ?? data;
    const [left, right, low, high] = value;
    const places =
      value.length === 4
        ? [panel.rows && rowAt(panel, low, high), `${panel.x.name || "x"}: ${x(left)} to ${x(right)}`]
        : [`${panel.x.name || "x"}: ${x(left)}`, `${panel.y.name}: ${y(right)}`];
    return [seriesName, data.what, ...places].filter(Boolean).join("\n");
  };
  const series = panel.series.flatMap((one, i) => seriesOf(one, i, look));
  return {
    legend: { data: names },
    grid: { left: panel.y.name ? 48 : 16, right: 56, ...(look.zoom && { bottom: 66 }) },
    dataZoom: look.zoom && [
      { type: "slider", filterMode: "none", bottom: 8, height: 24, showDataShadow: false, brushSelect: false },
      { type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
    ],
    tooltip: { trigger: "item", formatter: tell },
    xAxis: axisOf(panel.x, look, false, false),
    yAxis: axisOf(panel.y, look, true, panel.rows),
    series: [...series, { ...labelsOf(panel, look), markLine: lineAcross(panel, look.ink) }],
  };
}

/** What the row of a bar is called. */
const rowAt = ({ y }, low, high) =>
  y.tics?.reduce((near, one) =>
    Math.abs(2 * one[0] - low - high) < Math.abs(2 * near[0] - low - high) ? one : near,
  )[1];

/** The same as the program's CSV: a row for each point and box. */
function tableOf(panel) {
  const rows = panel.series
    .filter((one) => one.name)
    .flatMap((one) => {
      const name = one.measured ? `${one.name}, measured` : one.name;
      const points = (one.points ?? []).filter(({ at }) => at[1] !== null).map(({ at, what }) => [name, what, ...at]);
      const boxes = (one.boxes ?? []).map(({ at: [left, right, low, high], what }) =>
        panel.rows
          ? [name, what, rowAt(panel, low, high), left, right - left]
          : [name, what, (left + right) / 2, high - low],
      );
      return [...points, ...boxes];
    });
  const across = panel.x.name || "x";
  const header = panel.rows
    ? ["series", "what", "row", `${across}, begin`, `${across}, length`]
    : ["series", "what", across, panel.y.name || "y"];
  return [header, rows];
}

/** Buttons that show less, more or all of the time. */
function zoomButtons(chartOf) {
  const zoom = (change) => {
    const [{ start, end }] = chartOf().getOption().dataZoom;
    const [from, until] = change(start, end);
    chartOf().dispatchAction({
      type: "dataZoom",
      dataZoomIndex: 0,
      start: Math.max(0, from),
      end: Math.min(100, until),
    });
  };
  const button = (name, text, change) =>
    element("button", { type: "button", "aria-label": name, title: name, onclick: () => zoom(change) }, text);
  return [
    button("Zoom in", "+", (a, b) => [a + (b - a) / 4, b - (b - a) / 4]),
    button("Zoom out", "−", (a, b) => [a - (b - a) / 2, b + (b - a) / 2]),
    button("Earlier", "←", (a, b) => [Math.max(0, a - (b - a) / 2), Math.max(b - a, b - (b - a) / 2)]),
    button("Later", "→", (a, b) => [Math.min(100 - b + a, a + (b - a) / 2), Math.min(100, b + (b - a) / 2)]),
    button("Everything", "Everything", () => [0, 100]),
  ];
}

/** A chart of the figure's panels, of which one is chosen; null where there is no figure. */
export function figurePanel(panels, { title, note, label, zoom }) {
  if (!panels?.length) return null;
  let shown = panels[0];
  const same = new Set(panels.map((one) => one.title)).size < 2;
  const nameOf = (one) => (same && one.y.name) || [one.title, one.subtitle].filter(Boolean).join(", ");
  const choose = (i) => {
    shown = panels[Number(i)];
    panel.update();
  };
  const several =
    panels.length > 1
      ? choice(
          "Show",
          panels.map((one, i) => [i, nameOf(one)]),
          0,
          choose,
        )
      : null;
  const names = [...new Set(shown.series.map((one) => one.name).filter(Boolean))];
  const panel = chartPanel({
    title,
    note,
    label: label ?? `${title}: ${names.join(", ")}; its table has the numbers.`,
    controls: [several, ...(zoom ? zoomButtons(() => panel.box.querySelector(".chart").chart) : [])].filter(Boolean),
    tall: ({ phone }) =>
      110 + Math.min(700, shown.rows ? shown.height * (phone ? 1.4 : 1) : Math.max(220, shown.height)),
    chart: (look) => optionOf(shown, { ...look, zoom }),
    table: () => tableOf(shown),
  });
  return panel;
}
