// Bundles source/ into template.html: one script and one style sheet, each allowed by its hash alone, so that nothing
// that a page's data say can run. The licences of what is bundled stand in the script.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = dirname(fileURLToPath(import.meta.url));
const read = (...names) =>
  readFileSync(join(folder, ...names), "utf8")
    .replaceAll("\r\n", "\n")
    .trim();

const licences = ["echarts/NOTICE", "echarts/LICENSE", "zrender/LICENSE", "tslib/LICENSE.txt"]
  .map((name) => `${name}\n\n${read("node_modules", ...name.split("/"))}`)
  .join("\n\n----\n\n")
  .replaceAll("*/", "* /");

async function bundled(entry, options) {
  const result = await build({
    entryPoints: [join(folder, "source", entry)],
    bundle: true,
    minify: true,
    write: false,
    target: "es2020",
    charset: "utf8",
    legalComments: "none",
    ...options,
  });
  return result.outputFiles[0].text.trim();
}

const script = `/*! This script contains Apache ECharts, zrender and tslib.\n\n${licences}\n*/\n${await bundled("main.js", { format: "iife" })}`;
const style = await bundled("page.css");
if (/<\/script|<!--/i.test(script)) throw new Error("the script would end its own element");
const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

const parts = { "%SCRIPT-HASH%": hash(script), "%STYLE-HASH%": hash(style), "%STYLE%": style, "%SCRIPT%": script };
const page = Object.entries(parts).reduce(
  (text, [place, part]) => text.replace(place, () => part),
  read("source", "page.html"),
);
writeFileSync(join(folder, "template.html"), `${page}\n`);
console.log(`template.html: ${Math.ceil(page.length / 1000)} kB`);
