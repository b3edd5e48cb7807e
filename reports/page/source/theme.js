// Light or dark: as the system says, or as the reader chose.
import { element } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let chosen = null; // "light" or "dark"; null: the system's
let printing = false;

export const isDark = () => !printing && (chosen ?? (system.matches ? "dark" : "light")) === "dark";

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

/** Calls back whenever colours change. */
export const onTheme = (listener) => listeners.push(listener);

/** Paper is white. */
export function setPrinting(on) {
  printing = on;
  apply();
}

export function themeSwitch() {
  const button = element("button", {
    type: "button",
    class: "theme",
    onclick: () => {
      chosen = isDark() ? "light" : "dark";
      apply();
    },
  });
  const name = () => (button.textContent = isDark() ? "Light colours" : "Dark colours");
  onTheme(name);
  system.addEventListener("change", apply);
  apply();
  return button;
}

// Okabe and Ito's colours, which all kinds of sight tell apart; on dark ground the two darkest are lighter.
const light = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#4d4d4d",
  "#8c6d31",
  "#9467bd",
  "#b5bd3c",
  "#7f7f7f",
];
const dark = [
  "#4ba3dd",
  "#ff8a3d",
  "#2fc79b",
  "#e39cc4",
  "#f2b632",
  "#8fd0f5",
  "#b9bfc7",
  "#c5a35f",
  "#c5a3e6",
  "#d8e05a",
  "#8a929e",
];
export const colours = () => (isDark() ? dark : light);

/** What charts take from the style sheet. */
export function ink() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    text: of("--text"),
    soft: of("--soft"),
    line: of("--line"),
    ground: of("--card"),
    low: of("--low"),
    high: of("--high"),
    bad: of("--bad"),
  };
}
