// Where the time of a step goes, and how much of each communication is hidden behind work.
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export const breakdown = ({ figures }, id) =>
  section(
    id,
    "Where the time goes",
    figurePanel(figures?.breakdown, { title: "Step time breakdown" }),
    figurePanel(figures?.communication, {
      title: "Communication",
      note: "Hidden communication overlaps with compute and adds no step time.",
    }),
  );
