// Sensitivity to each resource, and single changes.
import { element, seconds, table } from "../dom.js";
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

/** What-ifs that are estimates are compared with an estimate, not with the simulation. */
const basis = ({ what_ifs: estimated }) =>
  estimated
    ? ` These are estimates without contention, relative to the estimate of the scenario: ${seconds(estimated.time_s)}.`
    : "";

function tornado({ explanation, figures }) {
  const [first] = explanation.sensitivities;
  const by = first && Math.round((first.scale - 1) * 100);
  return figurePanel(figures?.sensitivities, {
    title: "Sensitivity",
    note: `Change of the time when one resource is ${by} % faster or slower.${basis(explanation)}`,
  });
}

function remediesPanel({ explanation, figures }) {
  const known = explanation.remedies.filter((one) => one.speedup !== undefined);
  return [
    figurePanel(figures?.remedies, {
      title: "Single changes",
      note: `Change of the speed; effects on convergence are ignored.${basis(explanation)}`,
    }),
    known.length
      ? table(
          "Changes and their settings",
          ["change", "settings", "speed-up", "time_s", "fits"],
          known.map((one) => [one.change, one.set.join(" "), one.speedup, one.time_s, one.fits]),
        )
      : null,
  ];
}

export function sensitivities(scenario, id) {
  const { explanation } = scenario;
  if (!explanation) return null;
  const impossible = explanation.remedies.filter((one) => one.why_not);
  const details = impossible.length
    ? element(
        "details",
        {},
        element("summary", {}, "Infeasible changes"),
        table(
          "Infeasible changes",
          ["change", "why"],
          impossible.map((one) => [one.change, one.why_not]),
        ),
      )
    : null;
  return section(id, "Sensitivity and changes", tornado(scenario), remediesPanel(scenario), details);
}
