// What a sweep predicted: a heat map over two keys (a line over one), what else varied held or at its best.
import { choice, element, formatOf, number, table, tick, words } from "../dom.js";
import { figurePanel } from "../figure.js";
import { chartPanel, counted, section } from "../panel.js";

/** A key's distinct values in order, and which of them each row has. */
function axisOf(column) {
  const value = (i) => column.numbers?.[i] ?? column.values[i];
  const texts = new Map();
  column.values.forEach((text, i) => texts.has(text) || texts.set(text, value(i)));
  const order = [...texts].sort((a, b) =>
    typeof a[1] === "number" && typeof b[1] === "number" ? a[1] - b[1] : String(a[1]).localeCompare(String(b[1])),
  );
  const place = new Map(order.map(([text], i) => [text, i]));
  return {
    key: column.key,
    labels: order.map(([text]) => text ?? "–"),
    rows: column.values.map((text) => place.get(text)),
  };
}

const moreIsBetter = (key) => /per_second|mfu|bandwidth/.test(key);

function sweepPanel(sweep) {
  const axes = sweep.columns
    .filter(
      ({ key, values }) =>
        !key.startsWith("predicted.") &&
        !key.startsWith("measured.") &&
        !["case", "base", "group", "source"].includes(key) &&
        new Set(values).size > 1,
    )
    .map(axisOf);
  const measures = sweep.columns.filter(
    ({ key, values }) => key.startsWith("predicted.") && values.some((value) => typeof value === "number"),
  );
  const errors = sweep.columns.find(({ key }) => key === "predicted.error");
  const fits = sweep.columns.find(({ key }) => key === "predicted.fits");
  if (!axes.length || !measures.length) return { axes, measures, errors, panel: null };
  let x = axes[0],
    y = axes[1] ?? null,
    measure = measures[0],
    onlyFits = false;
  const held = new Map();

  /** The best row of each cell. */
  const cells = () => {
    const best = new Map();
    const better = moreIsBetter(measure.key) ? (a, b) => a > b : (a, b) => a < b;
    for (let i = 0; i < sweep.rows; ++i) {
      const value = measure.values[i];
      if (typeof value !== "number" || (onlyFits && fits?.values[i] === false)) continue;
      if (axes.some((axis) => held.get(axis) !== undefined && axis.rows[i] !== held.get(axis))) continue;
      const key = x.rows[i] + (y ? y.rows[i] * x.labels.length : 0);
      const known = best.get(key);
      if (known === undefined || better(value, measure.values[known])) best.set(key, i);
    }
    return [...best]
      .map(([key, i]) => [key % x.labels.length, Math.floor(key / x.labels.length), measure.values[i], i])
      .sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  };
  const settingsOf = (i) => axes.map((axis) => `${words(axis.key)} ${axis.labels[axis.rows[i]]}`).join("\n");
  const format = (value) => formatOf(measure.key)(value);

  const heat = ({ ink, width }) => {
    const all = cells(),
      values = all.map((cell) => cell[2]).filter((value) => value > 0);
    const low = Math.min(...values),
      high = Math.max(...values),
      log = high / low > 50;
    const told = width / x.labels.length > 64 && all.length < 200;
    const level = (value) => (log ? Math.log10(value) : value);
    return {
      tooltip: {
        formatter: ({ data }) => `${settingsOf(data.row)}\n${words(measure.key)}: ${format(measure.values[data.row])}`,
      },
      grid: { bottom: 88 },
      xAxis: { type: "category", data: x.labels, name: words(x.key), splitArea: { show: false } },
      yAxis: {
        type: "category",
        data: y.labels,
        name: words(y.key),
        nameLocation: "end",
        nameGap: 8,
        nameTextStyle: { align: "left" },
        axisLabel: { width: width * 0.25, overflow: "truncate" },
      },
      visualMap: {
        min: level(low),
        max: level(high),
        calculable: true,
        orient: "horizontal",
        left: "center",
        bottom: 0,
        itemWidth: 14,
        itemHeight: Math.min(260, width / 2),
        textStyle: { color: ink.text },
        formatter: (value) => format(log ? 10 ** value : value),
        inRange: { color: [ink.low, ink.high] },
      },
      series: [
        {
          name: words(measure.key),
          type: "heatmap",
          progressive: 0,
          data: all.map(([a, b, value, row]) =>
            told
              ? {
                  value: [a, b, level(value)],
                  row,
                  label: {
                    color: level(value) - level(low) > 0.5 * (level(high) - level(low)) ? ink.ground : ink.text,
                  },
                }
              : { value: [a, b, level(value)], row },
          ),
          label: { show: told, fontSize: 10, formatter: ({ data }) => format(measure.values[data.row]) },
          itemStyle: { borderWidth: all.length < 800 ? 1 : 0, borderColor: ink.ground },
        },
      ],
    };
  };
  const line = () => ({
    tooltip: { trigger: "axis", valueFormatter: format },
    xAxis: { type: "category", data: x.labels, name: words(x.key) },
    yAxis: { type: "value", axisLabel: { formatter: format } },
    series: [
      {
        name: words(measure.key),
        type: "line",
        symbolSize: 8,
        lineStyle: { width: 2.5 },
        data: cells().map(([a, , value]) => [x.labels[a], value]),
      },
    ],
  });

  const filters = element("span", { class: "filters" });
  const refill = () => {
    held.clear();
    filters.replaceChildren(
      ...axes
        .filter((axis) => axis !== x && axis !== y)
        .map((axis) =>
          choice(words(axis.key), [["", "best"], ...axis.labels.map((label, i) => [i, label])], "", (value) => {
            held.set(axis, value === "" ? undefined : Number(value));
            panel.update();
          }),
        ),
    );
    panel.update();
  };
  const named = axes.map((axis, i) => [i, words(axis.key)]);
  const panel = chartPanel({
    title: `Sweep ${sweep.name}`,
    note:
      `${counted(sweep.rows, "point")}.` +
      (axes.length > 2 ? " Each cell has the best of what else varies, or what is chosen." : ""),
    controls: [
      choice(
        "Colour",
        measures.map(({ key }, i) => [i, words(key)]),
        0,
        (i) => {
          measure = measures[i];
          panel.update();
        },
      ),
      choice("Across", named, 0, (i) => {
        x = axes[i];
        if (x === y) y = axes.find((axis) => axis !== x);
        refill();
      }),
      y
        ? choice("Upwards", named, 1, (i) => {
            y = axes[i];
            if (x === y) x = axes.find((axis) => axis !== y);
            refill();
          })
        : null,
      fits?.values.includes(false)
        ? tick("only points that fit", false, (on) => {
            onlyFits = on;
            panel.update();
          })
        : null,
      filters,
    ].filter(Boolean),
    tall: () => (y ? 150 + Math.min(700, Math.max(140, 26 * y.labels.length)) : 320),
    chart: (look) => (y ? heat(look) : line(look)),
    table: () => [
      [x.key, ...(y ? [y.key] : []), measure.key],
      cells().map(([a, b, value]) => [x.labels[a], ...(y ? [y.labels[b]] : []), value]),
    ],
    csv: () => [
      sweep.columns.map(({ key }) => key),
      Array.from({ length: sweep.rows }, (_, i) => sweep.columns.map(({ values }) => values[i])),
    ],
  });
  refill();
  return { axes, measures, errors, panel };
}

function bestTable(sweep, axes, measures) {
  const measure = measures.find(({ key }) => key.endsWith("samples_per_second")) ?? measures[0];
  const sign = moreIsBetter(measure.key) ? -1 : 1;
  const rows = Array.from({ length: sweep.rows }, (_, i) => i)
    .filter((i) => typeof measure.values[i] === "number")
    .sort((a, b) => sign * (measure.values[a] - measure.values[b]))
    .slice(0, 10);
  const told = measures.filter(({ key }) => /step_time|samples_per|mfu|memory|cost|\.time_s|bus_band/.test(key));
  return table(
    `Ten best by ${words(measure.key)}`,
    [...axes.map(({ key }) => key), ...told.map(({ key }) => key)],
    rows.map((i) => [...axes.map((axis) => axis.labels[axis.rows[i]]), ...told.map(({ values }) => values[i])]),
  );
}

function failures(errors) {
  const reasons = new Map();
  for (const why of errors?.values ?? []) if (why) reasons.set(why, (reasons.get(why) ?? 0) + 1);
  if (!reasons.size) return null;
  const all = [...reasons.values()].reduce((sum, one) => sum + one, 0);
  return element(
    "details",
    {},
    element("summary", {}, `${counted(all, "point")} without a prediction`),
    table(
      "Points without a prediction",
      ["points", "why"],
      [...reasons].sort((a, b) => b[1] - a[1]).map(([why, n]) => [n, why]),
    ),
  );
}

export function sweeps(all, id) {
  return section(
    id,
    "Sweeps",
    all.flatMap((sweep) => {
      const { axes, measures, errors, panel } = sweepPanel(sweep);
      return [
        panel,
        panel ? bestTable(sweep, axes, measures) : null,
        failures(errors),
        figurePanel(sweep.servers_against_rings, {
          title: `Parameter servers against rings: ${sweep.name}`,
          note: "Time with servers ÷ time without. Blue with a dot: servers are faster; red: slower.",
        }),
      ];
    }),
  );
}
