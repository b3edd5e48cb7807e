// The same training on fewer and more GPUs, and parameter servers against rings.
import { element } from "../dom.js";
import { figurePanel } from "../figure.js";
import { counted, section } from "../panel.js";

export function scaling(scenario, id) {
  const { scaling: data, figures } = scenario;
  if (
    !data ||
    !figures.scaling.some((panel) => panel.series.some((one) => one.points.some(({ at }) => at[1] !== null)))
  ) {
    return null;
  }
  const panel = figurePanel(figures.scaling, {
    title: "Scaling by number of GPUs",
    note:
      `${data.kept}: constant work per GPU, so an ideal network keeps the time constant. ` +
      (data.fidelity === "estimate" ? "Estimates ignore contention between transfers. " : "") +
      (data.not_predicted.length ? `Missing points: ${counted(data.not_predicted.length, "reason")} below.` : ""),
  });
  const missing = data.not_predicted.length
    ? element(
        "details",
        {},
        element("summary", {}, "Why points are missing"),
        element(
          "ul",
          {},
          data.not_predicted.map((why) => element("li", {}, why)),
        ),
      )
    : null;
  return section(id, "Scaling", panel, missing);
}

export const servers = (scenario, id) =>
  section(
    id,
    "Parameter server against ring",
    figurePanel(scenario.figures?.servers, {
      title: "Step time: parameter server ÷ ring",
      note: "Above 1 the ring is faster, below 1 the servers are.",
    }),
  );
