// Operators beneath the roofs of their GPU.
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export const roofline = (scenario, id) =>
  section(
    id,
    "Roofline",
    figurePanel(scenario.figures?.roofline, {
      title: "Roofline of the step's operators",
      note: "One point per operator name; its size is its share of operator time.",
    }),
  );
