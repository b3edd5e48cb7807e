// What runs where, and when.
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export const timeline = ({ figures }, id) =>
  section(
    id,
    "Timeline",
    figurePanel(figures?.timeline, {
      title: "Timeline of a step",
      note: "Drag the slider or hold Ctrl and turn the wheel to zoom. The shortest tasks are joined.",
      zoom: true,
    }),
  );
