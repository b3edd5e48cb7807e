// A measured step beside the expected one: its causes and, from traces, its categories.
import { element, seconds, table } from "../dom.js";
import { section } from "../panel.js";

export function diagnosis({ diagnosis: told }, id) {
  if (!told) return null;
  const interval = `${seconds(told.low_s)}–${seconds(told.high_s)}`;
  const { verdict, categories = [] } = told.trace ?? {};
  return section(
    id,
    "Diagnosis",
    element(
      "p",
      { class: "note" },
      `Measured ${seconds(told.measured_s)}, expected ${seconds(told.expected_s)} (90 % interval ${interval}). ${verdict ?? ""}`,
    ),
    table(
      "Single causes, each at its best-fitting severity",
      ["cause", "severity", "step_s", "likelihood share", "command", "look at"],
      told.causes
        .slice(0, 6)
        .map((one) => [one.name, one.severity, one.step_s, one.likelihood, one.command, one.look_at]),
    ),
    categories.length
      ? table(
          "Step by category",
          ["category", "expected_s", "measured_s", "difference"],
          categories.map((one) => [one.name, one.expected_s, one.measured_s, one.difference]),
        )
      : null,
  );
}
