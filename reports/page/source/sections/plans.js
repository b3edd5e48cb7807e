// Plans that a search ranked: no plan of the front is beaten in time, cost and memory at once.
import { bytes, choice, dollars, element, number, percent, seconds, table, tick } from "../dom.js";
import { chartPanel, section } from "../panel.js";

const measures = [
  { name: "step time", key: "step_time_s", of: (plan) => plan.step_time_s, format: seconds },
  { name: "peak GPU memory", key: "memory_bytes", of: (plan) => plan.memory_per_gpu_bytes.total, format: bytes },
  { name: "cost per step", key: "usd_per_step", of: (plan) => plan.usd_per_step, format: dollars },
  {
    name: "energy per step",
    key: "joules_per_step",
    of: (plan) => plan.joules_per_step,
    format: (value) => `${number(value)} J`,
  },
  { name: "model FLOP utilisation", key: "mfu", of: (plan) => plan.mfu, format: percent },
];

const settingsOf = (plan) =>
  new Map([
    ...(plan.hardware ? [["hardware", plan.hardware]] : []),
    ...plan.set.map((change) => [change.slice(0, change.indexOf("=")), change.slice(change.indexOf("=") + 1)]),
  ]);

function planPanel(report) {
  const plans = [
    ...report.plans.map((plan) => ({ ...plan, fits: true })),
    ...report.do_not_fit.map((plan) => ({ ...plan, fits: false })),
  ].map((plan, rank) => ({ ...plan, rank: rank + 1, settings: settingsOf(plan) }));
  if (!plans.length) return null;
  const shown = measures.filter(({ of }) => plans.some((plan) => of(plan) > 0));
  let x = shown[0],
    y = shown[1],
    front = false,
    unfit = false;
  const wanted = new Map();
  const keys = [...new Set(plans.flatMap((plan) => [...plan.settings.keys()]))];
  const filters = keys
    .map((key) => [key, [...new Set(plans.map((plan) => plan.settings.get(key)).filter(Boolean))]])
    .filter(([, values]) => values.length > 1)
    .map(([key, values]) =>
      choice(
        key.split(".").pop().replaceAll("_", " "),
        [["", "any"], ...values.sort((a, b) => Number(a) - Number(b) || String(a).localeCompare(b))],
        "",
        (value) => {
          wanted.set(key, value);
          update();
        },
      ),
    );
  const left = () =>
    plans.filter(
      (plan) =>
        (unfit || plan.fits) &&
        (!front || plan.in_front) &&
        [...wanted].every(([key, value]) => !value || plan.settings.get(key) === value),
    );
  const status = element("p", { class: "note", role: "status" });
  const rows = () => [
    ["rank", "plan", ...shown.map(({ key }) => key), "on Pareto front", "fits", "why slower"],
    left().map((plan) => [
      plan.rank,
      (plan.hardware ? `${plan.hardware}: ` : "") + plan.plan,
      ...shown.map(({ of }) => of(plan)),
      plan.in_front,
      plan.fits,
      plan.why,
    ]),
  ];
  const panel = chartPanel({
    title: `Plans for ${report.scenario}`,
    note: `${number(report.space.plans)} candidate plans; objective: ${report.objective}. Diamonds: Pareto front of time, cost and memory.${report.fidelity === "estimate" ? " Times are estimates, as if no two transfers met." : ""}`,
    label: `Pareto front. Best plan: ${plans[0].plan}, ${seconds(plans[0].step_time_s)}`,
    controls: [
      choice(
        "Across",
        shown.map((one, i) => [i, one.name]),
        0,
        (i) => {
          x = shown[i];
          update();
        },
      ),
      choice(
        "Upwards",
        shown.map((one, i) => [i, one.name]),
        1,
        (i) => {
          y = shown[i];
          update();
        },
      ),
      ...filters,
      tick("Pareto front only", front, (on) => {
        front = on;
        update();
      }),
      report.do_not_fit.length
        ? tick("include plans that do not fit", unfit, (on) => {
            unfit = on;
            update();
          })
        : null,
    ].filter(Boolean),
    tall: ({ phone }) => (phone ? 360 : 420),
    chart: ({ colours, ink }) => {
      const group = (name, of, style) => ({
        name,
        type: "scatter",
        ...style,
        data: left()
          .filter(of)
          .map((plan) => ({ value: [x.of(plan), y.of(plan)], plan })),
      });
      const capacity =
        y.key === "memory_bytes" && unfit
          ? {
              silent: true,
              symbol: "none",
              lineStyle: { color: ink.bad },
              label: { color: ink.text, formatter: "capacity" },
              data: [{ yAxis: plans[0].memory_per_gpu_bytes.capacity }],
            }
          : undefined;
      return {
        legend: {},
        tooltip: {
          trigger: "item",
          formatter: ({ data: { plan } }) =>
            `${plan.plan}\n${shown.map(({ name, of, format }) => `${name}: ${format(of(plan))}`).join("\n")}`,
        },
        xAxis: { type: "value", scale: true, name: x.name, axisLabel: { formatter: x.format } },
        yAxis: { type: "value", scale: true, axisLabel: { formatter: y.format } },
        series: [
          group("other plans", (plan) => plan.fits && !plan.in_front, {
            symbolSize: 9,
            color: colours[5],
            itemStyle: { opacity: 0.75 },
            markLine: capacity,
          }),
          group("front", (plan) => plan.fits && plan.in_front, {
            symbolSize: 13,
            symbol: "diamond",
            color: colours[1],
          }),
          ...(unfit
            ? [group("does not fit", (plan) => !plan.fits, { symbolSize: 11, symbol: "triangle", color: ink.bad })]
            : []),
        ],
      };
    },
    table: rows,
  });
  const update = () => {
    status.textContent = `${left().length} of ${plans.length} plans are shown.`;
    panel.update();
  };
  update();
  const best = plans.find((plan) => plan.fits);
  const advice = best
    ? element(
        "p",
        { class: "verdict" },
        `Best: ${best.hardware ? `${best.hardware}: ` : ""}${best.plan}. ${seconds(best.step_time_s)} a step, MFU ${percent(best.mfu)}, ` +
          `${bytes(best.memory_per_gpu_bytes.total)} of ${bytes(best.memory_per_gpu_bytes.capacity)}.`,
      )
    : null;
  return [advice, panel, status, table("Pareto front", ...frontOf(plans, shown))];
}

const frontOf = (plans, shown) => [
  ["plan", ...shown.map(({ key }) => key)],
  plans.filter((plan) => plan.in_front && plan.fits).map((plan) => [plan.plan, ...shown.map(({ of }) => of(plan))]),
];

export const plans = (all, id) => section(id, "Plans", all.flatMap(planPanel));
