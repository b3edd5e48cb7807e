// Elements, and numbers as people read them.

/** An element with attributes, listeners ("onclick") and children (elements, texts; null is left out). */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

let made = 0;
/** An id that no other element has. */
export const newId = (beginning) => `${beginning}-${++made}`;

/** "1.24" with three significant digits, never an exponent between 0.001 and 10⁶. */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? Math.ceil(Math.log10(size + 1)) : 3 });
}

function scaled(value, units) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const [factor, unit] = units.find(([least, , from = least]) => size >= from * 0.9995) ?? units[units.length - 1];
  return `${number(value / factor)} ${unit}`.trim();
}

export const seconds = (value) =>
  value === 0
    ? "0 s"
    : scaled(value, [
        [86400, "days", 172800],
        [3600, "h", 7200],
        [60, "min", 120],
        [1, "s"],
        [1e-3, "ms"],
        [1e-6, "µs"],
        [1e-9, "ns"],
      ]);
export const bytes = (value) =>
  value === 0
    ? "0 B"
    : scaled(value, [
        [1e12, "TB"],
        [1e9, "GB"],
        [1e6, "MB"],
        [1e3, "kB"],
        [1, "B"],
      ]);
export const count = (value) =>
  scaled(value, [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
    [1, ""],
  ]);
export const percent = (value) =>
  value === null || value === undefined
    ? "–"
    : `${number(Math.abs(value) < 0.0005 ? 0 : Math.round(value * 1000) / 10)} %`;
export const flopRate = (value) =>
  scaled(value, [
    [1e15, "PFLOP/s"],
    [1e12, "TFLOP/s"],
    [1e9, "GFLOP/s"],
    [1e-9, "FLOP/s"],
  ]);
export const byteRate = (value) =>
  scaled(value, [
    [1e12, "TB/s"],
    [1e9, "GB/s"],
    [1e6, "MB/s"],
    [1e-9, "B/s"],
  ]);
export const dollars = (value) =>
  value === null || value === undefined
    ? "–"
    : `${value >= 1e6 ? count(value) : value >= 100 ? Math.round(value).toLocaleString("en") : number(value)} USD`;

/** How a column of this name is written: its unit is the end of its name. */
export function formatOf(name) {
  if (/share$|(^|\.)mfu$|efficiency|mape|error$|bias|worst/.test(name)) return percent;
  if (/_us$/.test(name)) return (value) => seconds(value * 1e-6);
  if (/bytes_per_second/.test(name)) return byteRate;
  if (/flops_per_second/.test(name)) return flopRate;
  if (/bytes/.test(name)) return bytes;
  if (/usd|cost/.test(name)) return dollars;
  if (/per_second/.test(name)) return number;
  if (/(^|_)s$/.test(name)) return seconds;
  return number;
}

/** "step time" for "predicted.step_time_s", "NIC bandwidth" for "cluster.network.nic_bandwidth". */
export function words(key) {
  const parents = ["predicted", "measured", "workload", "train", "plan", "cluster", "collective", "operator"];
  return key
    .split(".")
    .slice(-2)
    .filter((part, i, all) => i === all.length - 1 || !parents.includes(part))
    .join(" ")
    .replace(/_(s|us|bytes|bytes_per_second)$/, "")
    .replace(/\b(network )?nic_/, "NIC ")
    .replaceAll("_", " ")
    .replace(/\b(gpus?|mfu|usd)\b/g, (word) => word.toUpperCase().replace("GPUS", "GPUs"))
    .replace(/^n$/, "cases");
}

const csvCell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Header and rows as a file that the browser saves. */
export function download(file, header, rows) {
  const text = [header, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = element("a", { href: address, download: file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** A table of plain values; numbers are written as their column's name says. At most `most` rows are shown. */
export function table(caption, header, rows, most = 200) {
  const formats = header.map(formatOf);
  const numeric = header.map((_, c) => rows.some((row) => typeof row[c] === "number"));
  const cell = (value, c) => {
    const text =
      typeof value === "number" ? formats[c](value) : value === true ? "yes" : value === false ? "no" : (value ?? "–");
    return element(
      c === 0 ? "th" : "td",
      { scope: c === 0 ? "row" : null, class: numeric[c] ? "number" : null, "data-value": value },
      text,
    );
  };
  const shown = rows.slice(0, most);
  const note =
    rows.length > most
      ? element(
          "p",
          { class: "note" },
          `The first ${most} of ${rows.length.toLocaleString("en")} rows; the CSV has all.`,
        )
      : null;
  return element(
    "div",
    {},
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      element(
        "table",
        {},
        element("caption", {}, caption),
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            header.map((name, c) => element("th", { scope: "col", class: numeric[c] ? "number" : null }, words(name))),
          ),
        ),
        element(
          "tbody",
          {},
          shown.map((row) => element("tr", {}, row.map(cell))),
        ),
      ),
    ),
    note,
  );
}

/** A labelled choice; `options` are texts or [value, text]. */
export function choice(label, options, chosen, changed) {
  const id = newId("choice");
  const select = element(
    "select",
    { id, onchange: () => changed(select.value) },
    options.map((option) => {
      const [value, text] = Array.isArray(option) ? option : [option, option];
      return element("option", { value, selected: String(value) === String(chosen) }, text);
    }),
  );
  return element("span", { class: "choice" }, element("label", { for: id }, label), select);
}

/** A labelled box to tick. */
export function tick(label, checked, changed) {
  const id = newId("tick");
  const box = element("input", { type: "checkbox", id, checked, onchange: () => changed(box.checked) });
  return element("span", { class: "choice" }, box, element("label", { for: id }, label));
}

/** Tabs by the pattern of WAI-ARIA: arrows move among them, the chosen one's panel is shown. */
export function tabs(label, entries, chosen = 0) {
  const buttons = [],
    panels = [];
  const choose = (which, focus = true) => {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === which));
      button.tabIndex = i === which ? 0 : -1;
      panels[i].hidden = i !== which;
    });
    if (focus) buttons[which].focus();
    entries[which].shown?.(panels[which]);
  };
  entries.forEach((entry, i) => {
    const button = element(
      "button",
      { type: "button", role: "tab", id: newId("tab"), onclick: () => choose(i) },
      entry.name,
    );
    const panel = entry.panel ?? element("div");
    panel.id ||= newId("panel");
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    button.setAttribute("aria-controls", panel.id);
    buttons.push(button);
    panels.push(panel);
  });
  const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
  const list = element(
    "div",
    {
      role: "tablist",
      "aria-label": label,
      onkeydown: (event) => {
        const at = buttons.indexOf(document.activeElement);
        if (!(event.key in move) || at < 0) return;
        event.preventDefault();
        choose((at + move[event.key] + buttons.length) % buttons.length);
      },
    },
    buttons,
  );
  return { list, panels, start: () => choose(chosen, false) };
}
