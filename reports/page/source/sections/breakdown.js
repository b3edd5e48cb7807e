// Where the time of a step goes, and how much of each communication is hidden behind work.
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export const breakdown = ({ figures }, id) =>
  section(
    id,
    "Where the time goes",
    figurePanel(figures?.breakdown, { title: "Parts of a step" }),
    figurePanel(figures?.communication, {
      title: "Communication",
      note: "What is not exposed happens beside the computing and costs no time of its own.",
    }),
  );
