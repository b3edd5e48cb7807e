// Opens pages of every kind in Chromium, offline, and uses them as people do.
//   node page_test.mjs FORETRAIN MODULES [PICTURES]     MODULES: the folder of node_modules; PICTURES: where screenshots go
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  dataOf,
  file,
  finish,
  foretrain,
  open,
  panel,
  picture,
  report,
  rowsOf,
  seeAll,
  whole,
  withData,
} from "./browser.mjs";

async function scenarioPage() {
  const html = report("scenario.html", "gpt2-xl-dgx-a100", "--set", "cluster.price=2.5 USD/GPU/hour");
  await open(html, {}, async (page) => {
    const {
      scenarios: [{ result, figures, links }],
    } = await dataOf(page);
    const told = JSON.parse(
      foretrain("predict", "gpt2-xl-dgx-a100", "--set", "cluster.price=2.5 USD/GPU/hour", "--json"),
    );
    delete told.resolved;  // a section of its own
    assert.deepEqual(result, told, "the page says what predict says");
    for (const title of [
      "Summary",
      "Where the time goes",
      "Scaling",
      "Parameter server against ring",
      "Memory",
      "Sensitivity and changes",
      "Roofline",
      "Timeline",
      "Topology",
      "Scenario",
      "Provenance",
    ]) {
      assert.equal(await page.getByRole("heading", { level: 2, name: title, exact: true }).count(), 1, title);
      assert.equal(
        await page.getByRole("navigation").getByRole("link", { name: title, exact: true }).count(),
        1,
        title,
      );
    }
    const shownTime = `${(told.step_time_s * 1000).toPrecision(3)} ms`;
    assert((await page.locator(".cards").first().innerText()).includes(shownTime), shownTime);
    await seeAll(page);
    const parts = await rowsOf(page, "Step time breakdown");
    const step = parts.reduce((sum, row) => sum + Number(row.at(-1)), 0);
    assert(Math.abs(step / 1000 / result.step_time_s - 1) < 1e-9, `${step} ms are no ${result.step_time_s} s`);
    const boxes = ([panel]) => panel.series.flatMap((one) => one.boxes ?? []);
    for (const [title, figure] of [
      ["Sensitivity", figures.sensitivities],
      ["Single changes", figures.remedies],
      ["Memory over the step", figures.memory_over_step],
      ["Timeline of a step", figures.timeline],
    ]) {
      const lengths = (await rowsOf(page, title)).map((row) => Number(row.at(-1)));
      assert(lengths.length > 0 && lengths.length <= Math.min(200, boxes(figure).length), title);
    }
    const show = panel(page, "Scaling by number of GPUs").getByLabel("Show");
    for (const [i, { series }] of figures.scaling.entries()) {
      await show.selectOption(String(i));
      assert.deepEqual(
        (await rowsOf(page, "Scaling by number of GPUs")).map((row) => Number(row.at(-1))),
        series.flatMap((one) => one.points.map(({ at }) => at[1]).filter((y) => y !== null)),
      );
    }
    const busiest = page.getByRole("region", { name: "Links of a node" }).locator("tbody tr").first();
    assert.equal(
      Number(await busiest.locator("td").last().getAttribute("data-value")),
      Math.max(...links.links.map((link) => link.busiest_share)),
    );
    const saved = page.waitForEvent("download");
    await panel(page, "Timeline of a step").getByRole("button", { name: "CSV" }).click();
    const csv = readFileSync(await (await saved).path(), "utf8")
      .trim()
      .split("\n");
    assert.equal(csv.length, boxes(figures.timeline).length + 1);
    await zoom(page);
    await page.getByRole("button", { name: "Dark colours" }).click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    for (const tab of await page.getByRole("tab", { name: "Chart" }).all()) await tab.click();
    await whole(page, "scenario-dark");
  });
  await open(html, {}, async (page) => {
    await whole(page, "scenario");
    await picture(page, "report-light");
    await page.pdf({ path: file("scenario.pdf") });
    if (process.env.WHOLE) writeFileSync(join(process.env.WHOLE, "scenario.pdf"), readFileSync(file("scenario.pdf")));
  });
  await open(html, { colorScheme: "dark" }, (page) => picture(page, "report-dark"));
  await open(html, { size: "phone" }, async (page) => {
    await whole(page, "scenario-phone");
    await picture(page, "report-phone");
  });
}

async function zoom(page) {
  const timeline = panel(page, "Timeline of a step");
  await timeline.getByRole("tab", { name: "Chart" }).click();
  const width = () =>
    page.evaluate(() => {
      const [{ start, end }] = document.querySelector("[id^=timeline] .chart").chart.getOption().dataZoom;
      return end - start;
    });
  for (let i = 0; i < 3; ++i) await timeline.getByRole("button", { name: "Zoom in" }).click();
  assert(Math.abs((await width()) - 100 / 8) < 0.1, `zoomed to ${await width()} %`);
  await timeline.getByRole("button", { name: "Everything" }).click();
  assert.equal(await width(), 100);
}

async function diagnosedPage() {
  const run = "gpt2-xl-dgx-a100";
  const trace = fileURLToPath(new URL("../../import/data/kineto_gpu.json.gz", import.meta.url));
  writeFileSync(file("diagnosis.json"), foretrain("diagnose", run, "--trace", trace, "--measured", "1 s", "--json"));
  const html = report("diagnosed.html", run, file("diagnosis.json"), "--beside", trace);
  await open(html, {}, async (page) => {
    const { scenarios } = await dataOf(page);
    const causes = page.getByRole("region", { name: "Single causes" }).locator("tbody tr");
    assert.equal(await causes.count(), Math.min(6, scenarios[0].diagnosis.causes.length));
    assert((await page.getByRole("region", { name: "Step by category" }).locator("tbody tr").count()) > 3);
    await seeAll(page);
    const tasks = await rowsOf(page, "Timeline of a step");
    assert(tasks.some((row) => row.some((cell) => cell.startsWith("measured "))), "both timelines");
    await whole(page, "diagnosed");
  });
}

async function severalScenarios() {
  const html = report(
    "several.html",
    "gpt3-175b-1024-a100",
    "llama3-70b-64-mi300x",
    "sync-ring-4",
    "--title",
    "Three </script> kinds",
  );
  await open(html, {}, async (page) => {
    assert.equal(await page.locator("h1").innerText(), "Three </script> kinds");
    const { scenarios } = await dataOf(page);
    const chosen = () => page.locator(".scenarios [aria-selected=true]").innerText();
    assert.equal(await chosen(), scenarios[0].name);
    await whole(page, "several");
    await picture(page, "report-timeline", "Timeline of a step");
    await page.evaluate(() => scrollTo(0, 0));
    await page.locator(".scenarios [role=tab]").first().focus();
    for (const name of [scenarios[1].name, scenarios[2].name, scenarios[0].name]) {
      await page.keyboard.press("ArrowRight");
      assert.equal(await chosen(), name);
    }
    assert.equal(
      await page.locator("#comparison tbody tr").first().locator("td").nth(1).getAttribute("data-value"),
      String(scenarios[0].result.step_time_s),
    );
    await page.keyboard.press("ArrowLeft");
    await whole(page, "several-collective");
  });
}

async function sweepPage() {
  foretrain(
    "sweep",
    "gpt2-xl-dgx-a100",
    "--fidelity",
    "estimate",
    "--vary",
    "plan.sync.algorithm=ring,parameter_server",
    "--vary",
    "cluster.network.nic_bandwidth=25 Gbit/s,50 Gbit/s,100 Gbit/s,200 Gbit/s,400 Gbit/s",
    "--vary",
    "workload.train.micro_batch=1,2,4,8",
    "-o",
    file("sweep.csv"),
  );
  const html = report("sweep.html", file("sweep.csv"));
  await open(html, {}, async (page) => {
    const {
      sweeps: [sweep],
    } = await dataOf(page);
    const column = (key) => sweep.columns.find((one) => one.key === key);
    const time = column("predicted.step_time_s").values,
      algorithm = column("plan.sync.algorithm").values,
      speed = column("cluster.network.nic_bandwidth");
    assert.equal(sweep.rows, 40);
    const best = async () =>
      Object.fromEntries((await rowsOf(page, "Sweep sweep.csv")).map(([a, b, value]) => [`${a} ${b}`, Number(value)]));
    for (const [key, value] of Object.entries(await best())) {
      const at = time.filter((_, i) => key === `${algorithm[i]} ${speed.values[i]}`);
      assert.equal(value, Math.min(...at), key);
    }
    await panel(page, "Sweep sweep.csv").getByLabel("micro batch").selectOption({ label: "1" });
    for (const [key, value] of Object.entries(await best())) {
      const i = time.findIndex(
        (_, at) =>
          key === `${algorithm[at]} ${speed.values[at]}` && column("workload.train.micro_batch").values[at] === "1",
      );
      assert.equal(value, time[i], key);
    }
    await panel(page, "Sweep sweep.csv").getByLabel("Across").selectOption({ label: "network card bandwidth" });
    await panel(page, "Sweep sweep.csv").getByLabel("Upwards").selectOption({ label: "micro batch" });
    await panel(page, "Sweep sweep.csv").getByRole("tab", { name: "Chart" }).click();
    await whole(page, "sweep");
    await picture(page, "report-sweep", "Sweep sweep.csv");
  });
}

async function planPage() {
  writeFileSync(
    file("plan.json"),
    foretrain("plan", "gpt2-xl-dgx-a100", "--top", "60", "--json", "--set", "cluster.price=2.5 USD/GPU/hour"),
  );
  await open(report("plan.html", file("plan.json")), {}, async (page) => {
    const {
      plans: [plan],
    } = await dataOf(page);
    const title = `Plans for ${plan.scenario}`;
    const status = page.getByRole("status");
    assert.match(await status.innerText(), new RegExp(`^${plan.plans.length} of`));
    const sharded = plan.plans.filter((one) => one.set.includes("plan.zero=1"));
    assert(sharded.length > 0 && sharded.length < plan.plans.length);
    const zero = panel(page, title).getByLabel("zero", { exact: true });
    await zero.selectOption("1");
    assert.match(await status.innerText(), new RegExp(`^${sharded.length} of`));
    assert.deepEqual(
      (await rowsOf(page, title)).map((row) => Number(row[2])),
      sharded.map((one) => one.step_time_s),
    );
    await zero.selectOption("");
    await panel(page, title).getByLabel("Pareto front only").check();
    assert.match(await status.innerText(), new RegExp(`^${plan.plans.filter((one) => one.in_front).length} of`));
    await panel(page, title).getByLabel("Pareto front only").uncheck();
    await panel(page, title).getByRole("tab", { name: "Chart" }).click();
    await whole(page, "plan");
    await picture(page, "report-plan", title);
  });
}

async function accuracyPage() {
  const cases = fileURLToPath(new URL("../../../scenarios/cases/cases_megatron_papers.csv", import.meta.url));
  await open(report("accuracy.html", cases), {}, async (page) => {
    const {
      accuracy: [accuracy],
    } = await dataOf(page);
    const points = accuracy.figure[0].series.filter((one) => one.name).flatMap((one) => one.points);
    assert.deepEqual(
      (await rowsOf(page, "Predicted against measured")).map((row) => Number(row.at(-1))),
      points.slice(0, 200).map(({ at }) => at[1]),
    );
    await panel(page, "Predicted against measured").getByRole("tab", { name: "Chart" }).click();
    await whole(page, "accuracy");
  });
}

/** 5,000 points of a sweep and 50,000 bars of a timeline. */
async function largePage() {
  writeFileSync(file("few.csv"), "case,cluster.nodes,predicted.step_time_s\na,1,1.5\nb,2,1.25\n");
  const html = withData("large.html", report("small.html", "gpt3-175b-1024-a100", file("few.csv")), (data) => {
    const rows = Array.from({ length: 5000 }, (_, i) => i);
    data.sweeps[0] = {
      name: "large",
      rows: 5000,
      kept: {},
      columns: [
        { key: "cluster.nodes", values: rows.map((i) => String(1 + (i % 50))), numbers: rows.map((i) => 1 + (i % 50)) },
        {
          key: "workload.train.global_batch",
          values: rows.map((i) => String(8 * (1 + Math.floor(i / 50)))),
          numbers: rows.map((i) => 8 * (1 + Math.floor(i / 50))),
        },
        { key: "predicted.step_time_s", values: rows.map((i) => 1 + Math.sin(i) / 2) },
      ],
    };
    const [timeline] = data.scenarios[0].figures.timeline;
    timeline.x.range = [0, 31250];
    timeline.y = { name: "", range: [0.5, 16.5], tics: Array.from({ length: 16 }, (_, i) => [i + 1, `gpu ${i}`]) };
    timeline.series = ["forward", "backward", "communication"].map((name, kind) => ({
      name,
      colour: "",
      boxes: Array.from({ length: 16667 }, (_, i) => {
        const bar = 3 * i + kind,
          row = 1 + Math.floor(bar / 3126),
          left = (bar % 3126) * 10;
        return { at: [left, left + 8.5, row - 0.37, row + 0.37], what: name };
      }),
    }));
  });
  assert(statSync(html).size < 5e6);
  await open(html, {}, async (page) => {
    const opened = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
    const drawn = (title) =>
      panel(page, title).evaluate(
        (box) =>
          new Promise((done) => {
            const begun = performance.now();
            box.scrollIntoView();
            const look = () =>
              box.querySelector("canvas")
                ? requestAnimationFrame(() => done(Math.round(performance.now() - begun)))
                : setTimeout(look, 1);
            look();
          }),
      );
    const timeline = await drawn("Timeline of a step"),
      heat = await drawn("Sweep large");
    console.log(
      `${Math.round(statSync(html).size / 1e4) / 100} MB with 5,000 points and 50,000 bars: open in ${Math.round(opened)} ms, timeline drawn in ${timeline} ms, heat map in ${heat} ms`,
    );
    assert(opened < Number(process.env.OPEN_WITHIN_MS ?? 1000), `took ${opened} ms to open`);
    await zoom(page);
    await whole(page, "large");
  });
}

/** What differs from page to page is seen on a phone, where room is least: kinds of machines, remedies, servers, loaders. */
async function phonePages() {
  const runs = process.env.RUNS?.split(",") ?? [
    "llama3-70b-64-mi300x",
    "deepseek-v3-128-gb200",
    "servers-server-beats-ring",
    "loading-1-serial",
    "unequal-h100-beside-a100",
  ];
  for (const run of runs) await open(report(`${run}.html`, run), { size: "phone" }, seeAll);
}

try {
  const kinds = {
    scenarioPage,
    diagnosedPage,
    phonePages,
    severalScenarios,
    sweepPage,
    planPage,
    accuracyPage,
    largePage,
  };
  for (const [name, run] of Object.entries(kinds)) {
    if (process.env.ONLY && !process.env.ONLY.split(",").includes(name)) continue;
    await run();
    console.log(`${name}: as it should be`);
  }
} finally {
  await finish();
}
