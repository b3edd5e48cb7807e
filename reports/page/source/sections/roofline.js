// Operators beneath the roofs of their GPU.
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export const roofline = (scenario, id) =>
  section(
    id,
    "Roofline",
    figurePanel(scenario.figures?.roofline, {
      title: "Operators beneath the roofs of their GPU",
      note: "Operators of one name in a step together; as large as their share of the operators' time.",
    }),
  );
