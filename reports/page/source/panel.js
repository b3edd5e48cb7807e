// A chart with its table beside it, and both as CSV.
import { download, element, newId, number, table, tabs } from "./dom.js";
import { init } from "./echarts.js";
import { colours, ink, onTheme, setPrinting } from "./theme.js";

const panels = new Set();

/** "1 reason", "2 reasons" */
export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/** Text in lines of at most so many pixels, at about 6.5 a letter. */
const wrapped = (text, width) =>
  text.replace(new RegExp(`(.{1,${Math.floor(width / 6.5)}})( |$)`, "g"), "$1\n").trimEnd();

/** What every chart has in common, beneath what its own option says. */
function dressed(option, { phone, width }) {
  const { text, soft, line, ground } = ink();
  const across = option.xAxis?.name && wrapped(option.xAxis.name, width - 72);
  const below = across ? 12 + 14 * across.split("\n").length : 8;
  const axis = (one) => ({
    nameLocation: "middle",
    nameGap: 30,
    nameTextStyle: { color: soft, fontSize: 12 },
    ...one,
    axisLabel: { color: soft, hideOverlap: true, ...(phone && { lineHeight: 14 }), ...one.axisLabel },
    axisLine: { lineStyle: { color: line }, ...one.axisLine },
    splitLine: { lineStyle: { color: line }, ...one.splitLine },
    axisTick: { lineStyle: { color: line }, ...one.axisTick },
  });
  const every = (one) => (Array.isArray(one) ? one.map(axis) : one && axis(one));
  return {
    animation: false,
    color: colours(),
    textStyle: { color: text, fontFamily: "system-ui, sans-serif" },
    ...option,
    grid: {
      left: phone ? 8 : 16,
      right: phone ? 16 : 28,
      top: option.legend ? 44 : 20,
      bottom: below,
      containLabel: true,
      ...option.grid,
    },
    // Rich text is drawn on the canvas: an HTML tip would need inline styles, which the page's policy forbids.
    tooltip: {
      renderMode: "richText",
      confine: true,
      backgroundColor: ground,
      borderColor: line,
      textStyle: { color: text, fontSize: 12 },
      ...option.tooltip,
    },
    legend: option.legend && {
      type: "scroll",
      top: 4,
      itemGap: 14,
      textStyle: { color: text },
      pageTextStyle: { color: soft },
      pageIconColor: soft,
      pageIconInactiveColor: line,
      inactiveColor: line,
      ...option.legend,
    },
    xAxis: every(across ? { ...option.xAxis, name: across } : option.xAxis),
    yAxis: every(option.yAxis),
  };
}

/**
 * chart: (look) => the option of ECharts; look: { phone, width, ink, colours }.
 * table: () => [header, rows] of plain values; csv: the same where the file has more than the table.
 * tall: (look) => height in pixels.
 */
export function chartPanel({ title, note, label, chart, table: rowsOf, csv, tall = () => 320, controls = [] }) {
  const heading = element("h3", { id: newId("title") }, title);
  const canvas = element("div", { class: "chart", role: "img", "aria-label": label ?? title });
  const rows = element("div", { class: "rows" });
  const file = `${title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")}.csv`;
  let drawn = null,
    seen = false,
    shows = "chart";

  const look = () => {
    const width = canvas.clientWidth || 640;
    return { width, phone: width < 480, ink: ink(), colours: colours() };
  };
  const draw = () => {
    if (!seen || shows !== "chart") return;
    const now = look();
    const height = tall(now);
    if (canvas.style.height !== `${height}px`) canvas.style.height = `${height}px`;
    if (drawn === null) drawn = canvas.chart = init(canvas, null, { renderer: "canvas" });
    else drawn.resize();
    drawn.setOption(dressed(chart(now), now), { notMerge: true });
  };
  const fill = () => rows.replaceChildren(table(title, ...rowsOf()));
  const switched = tabs(`${title}: chart or table`, [
    {
      name: "Chart",
      panel: element("div", {}, canvas),
      shown: () => {
        shows = "chart";
        draw();
      },
    },
    {
      name: "Table",
      panel: rows,
      shown: () => {
        shows = "table";
        fill();
      },
    },
  ]);
  const save = element(
    "button",
    {
      type: "button",
      class: "save",
      "aria-label": `${title} as CSV`,
      onclick: () => download(file, ...(csv ?? rowsOf)()),
    },
    "CSV",
  );
  const box = element(
    "section",
    { class: "panel", "aria-labelledby": heading.id },
    element("div", { class: "head" }, heading, element("div", { class: "tools" }, switched.list, save)),
    note ? element("p", { class: "note" }, note) : null,
    controls.length ? element("div", { class: "controls" }, controls) : null,
    switched.panels,
  );
  switched.start();

  const handle = {
    box,
    update: () => (shows === "chart" ? draw() : fill()),
    see: () => {
      seen = true;
      draw();
    },
  };
  panels.add(handle);
  new IntersectionObserver(
    (entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      handle.see();
    },
    { rootMargin: "150px" },
  ).observe(canvas);
  return handle;
}

onTheme(() => panels.forEach((panel) => panel.update()));

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  panels.forEach((panel) => panel.update());
});
addEventListener("beforeprint", () => {
  document.body.classList.add("printing");
  setPrinting(true);
  panels.forEach((panel) => panel.see());
});
addEventListener("afterprint", () => {
  document.body.classList.remove("printing");
  setPrinting(false);
});

/** A heading with what belongs beneath it; null where nothing does. */
export function section(id, title, ...content) {
  const inside = content
    .flat()
    .filter(Boolean)
    .map((one) => one.box ?? one);
  if (!inside.length) return null;
  return element(
    "section",
    { id, class: "section", "aria-labelledby": `${id}-title`, "data-title": title },
    element("h2", { id: `${id}-title` }, title),
    inside,
  );
}
