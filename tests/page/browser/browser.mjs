// Pages made by the program and opened in Chromium, offline; what every page must keep is held here.
//   node page_test.mjs FORETRAIN MODULES [PICTURES]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [program, modules, pictures] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(modules, "x.js")));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const folder = mkdtempSync(join(tmpdir(), "foretrain-page-"));
export const file = (name) => join(folder, name);
export const foretrain = (...words) =>
  execFileSync(program, words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 });
export const report = (name, ...inputs) => {
  foretrain("report", ...inputs, "-o", file(name));
  assert(statSync(file(name)).size < 5e6, `${name} is larger than 5 MB`);
  return file(name);
};
/** As the page holds them. */
export const dataOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
const place = /(<script type="application\/json" id="data">).*?(<\/script>)/s;

/** Another page with other data. */
export function withData(name, from, change) {
  const html = readFileSync(from, "utf8"),
    data = JSON.parse(html.match(/id="data">(.*?)<\/script>/s)[1]);
  change(data);
  const text = JSON.stringify(data).replaceAll("<", "\\u003c");
  writeFileSync(
    file(name),
    html.replace(place, (_, begin, end) => begin + text + end),
  );
  return file(name);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const sizes = { desk: { width: 1200, height: 900 }, phone: { width: 390, height: 800 } };

/** Opens the page, lets `use` work with it, and holds what every page must keep. */
export async function open(html, { size = "desk", colorScheme = "light" }, use) {
  const context = await browser.newContext({
    viewport: sizes[size],
    colorScheme,
    acceptDownloads: true,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  const wrong = [];
  page.on(
    "console",
    (message) => ["error", "warning"].includes(message.type()) && wrong.push(`console: ${message.text()}`),
  );
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on(
    "request",
    (request) =>
      /^(blob|data):/.test(request.url()) ||
      request.url() === pathToFileURL(html).href ||
      wrong.push(`request: ${request.url()}`),
  );
  await page.goto(pathToFileURL(html).href);
  await page.waitForSelector("html[data-ready]");
  await use(page);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const widest = await page.evaluate(() =>
    [...document.querySelectorAll("main *")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll"))
      .map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 40)}`),
  );
  assert(overflow <= 0, `${html}: ${overflow} pixels wider than the window: ${widest.slice(-5).join("; ")}`);
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll(".chart")].flatMap((canvas) =>
      (canvas.chart?.getZr().storage.getDisplayList(true) ?? [])
        .filter((one) => one.type === "tspan" && !one.invisible && !one.__clipPaths?.length)
        .filter((one) => {
          const box = one.getBoundingRect().clone();
          if (one.transform) box.applyTransform(one.transform);
          return (
            box.x < -1 ||
            box.y < -1 ||
            box.x + box.width > canvas.chart.getWidth() + 1 ||
            box.y + box.height > canvas.chart.getHeight() + 1
          );
        })
        .map((one) => `${canvas.getAttribute("aria-label").slice(0, 40)}: ${one.style.text}`),
    ),
  );
  assert.deepEqual(cut, [], `${html}: texts that leave their charts`);
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, impact, help, nodes } of found.violations) {
    if (["serious", "critical"].includes(impact))
      wrong.push(
        `axe: ${id}: ${help}: ${nodes
          .slice(0, 3)
          .map((node) => node.html)
          .join(" ")}`,
      );
  }
  assert.deepEqual(wrong, [], html);
  await context.close();
}

export const panel = (page, title) =>
  page.locator(".panel", { has: page.getByRole("heading", { name: title }) }).first();
/** The table's cells as the data say them. */
export async function rowsOf(page, title) {
  await panel(page, title).getByRole("tab", { name: "Table" }).click();
  return panel(page, title)
    .locator("tbody tr")
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.dataset.value)));
}
export async function seeAll(page) {
  for (const one of await page.locator(".panel:visible").all()) {
    await one.scrollIntoViewIfNeeded();
    await one.locator(".chart canvas, .rows:not([hidden])").first().waitFor();
  }
  await page.evaluate(() => scrollTo(0, 0));
}
/** Of the visible window, or of one panel. */
export async function picture(page, name, title) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  if (title) await panel(page, title).scrollIntoViewIfNeeded();
  await page.waitForTimeout(150);
  await (title ? panel(page, title) : page).screenshot({ path: join(pictures, `${name}.png`) });
}
/** Of everything, for people who look for what is ugly. */
export async function whole(page, name) {
  if (!process.env.WHOLE) return;
  await seeAll(page);
  await page.waitForTimeout(150);
  const { width, height } = await page.evaluate(() => ({
    width: innerWidth,
    height: document.documentElement.scrollHeight,
  }));
  for (let y = 0; y < height; y += 1300) {
    const clip = { x: 0, y, width, height: Math.min(1300, height - y) };
    await page.screenshot({ path: join(process.env.WHOLE, `${name}-${y / 1300}.png`), fullPage: true, clip });
  }
}

export async function finish() {
  await browser.close();
  rmSync(folder, { recursive: true });
}
