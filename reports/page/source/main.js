// Puts the page together from its data: what is there is shown.
import { element, percent, seconds, table, tabs } from "./dom.js";
import { figurePanel } from "./figure.js";
import { section } from "./panel.js";
import { accuracy } from "./sections/accuracy.js";
import { breakdown } from "./sections/breakdown.js";
import { diagnosis } from "./sections/diagnosis.js";
import { memory } from "./sections/memory.js";
import { plans } from "./sections/plans.js";
import { provenance, settings } from "./sections/provenance.js";
import { roofline } from "./sections/roofline.js";
import { scaling, servers } from "./sections/scaling.js";
import { sensitivities } from "./sections/sensitivities.js";
import { summary, timeOf } from "./sections/summary.js";
import { sweeps } from "./sections/sweeps.js";
import { timeline } from "./sections/timeline.js";
import { topology } from "./sections/topology.js";
import { themeSwitch } from "./theme.js";

const ofScenario = {
  summary,
  breakdown,
  diagnosis,
  scaling,
  servers,
  memory,
  sensitivities,
  roofline,
  timeline,
  topology,
  settings,
  provenance,
};
const ofPage = { plans, sweeps, accuracy };

const data = JSON.parse(document.getElementById("data").textContent);

function comparison(scenarios) {
  const told = scenarios.filter((scenario) => scenario.result);
  if (told.length < 2) return null;
  const rows = told.map(({ name, gpus, result, ...rest }) => [
    name,
    gpus ?? null,
    timeOf({ result, ...rest }),
    result.samples_per_second ?? null,
    result.mfu ?? null,
    result.memory_per_gpu_bytes?.total ?? null,
    result.memory_per_gpu_bytes?.fits ?? null,
    rest.explanation?.bottleneck ?? result.bottleneck ?? result.bound ?? null,
  ]);
  return section(
    "comparison",
    "Comparison",
    table(
      "Scenarios",
      ["scenario", "GPUs", "time_s", "samples_per_second", "mfu", "memory_bytes", "fits", "bottleneck"],
      rows,
    ),
    figurePanel(data.comparison, { title: "Where the time goes" }),
  );
}

function scenarioPanel(scenario, index) {
  const panel = element("div", { class: "scenario" });
  let filled = false;
  return {
    name: scenario.name,
    panel,
    shown: () => {
      if (!filled)
        panel.append(
          ...Object.entries(ofScenario)
            .map(([name, make]) => make(scenario, `${name}-${index}`))
            .filter(Boolean),
        );
      filled = true;
      fillContents();
    },
  };
}

/** Links to the sections that are to be seen. */
const contents = element("nav", { "aria-label": "Contents" });
function fillContents() {
  const sections = [...document.querySelectorAll("main .section")].filter((one) => !one.closest("[hidden]"));
  contents.replaceChildren(
    element(
      "ul",
      {},
      sections.map((one) => element("li", {}, element("a", { href: `#${one.id}` }, one.dataset.title))),
    ),
  );
}

function subtitle() {
  const [only] = data.scenarios;
  if (data.scenarios.length !== 1 || !only.result) return `Made by ${data.program}`;
  const mfu = only.result.mfu === undefined ? "" : `, MFU ${percent(only.result.mfu)}`;
  return `${seconds(timeOf(only))}${only.result.step_time_s === undefined ? "" : " a step"}${mfu}. Made by ${data.program}`;
}

const main = element("main", { id: "content" });
document.body.append(
  element("a", { class: "skip", href: "#content" }, "To the content"),
  element("header", {}, element("div", {}, element("h1", {}, data.title), element("p", {}, subtitle())), themeSwitch()),
  contents,
  main,
  element(
    "footer",
    {},
    element(
      "p",
      {},
      `Made by ${data.program}. Times are predictions. Charts: Apache ECharts, whose licence stands in this file.`,
    ),
  ),
);

const compared = comparison(data.scenarios);
if (compared) main.append(compared);
if (data.scenarios.length > 1) {
  const all = tabs("Scenario", data.scenarios.map(scenarioPanel));
  all.list.classList.add("scenarios");
  main.append(all.list, ...all.panels);
  all.start();
} else if (data.scenarios.length === 1) {
  const only = scenarioPanel(data.scenarios[0], 0);
  main.append(only.panel);
  only.shown();
}
main.append(
  ...Object.entries(ofPage)
    .map(([name, make]) => make(data[name], name))
    .filter(Boolean),
);
fillContents();
document.documentElement.dataset.ready = "true";
