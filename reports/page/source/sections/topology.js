// The links of a machine, each as busy as the busiest of its kind.
import { element, seconds, table } from "../dom.js";
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export function topology({ links: uses, figures }, id) {
  if (!uses) return null;
  const busiest = [...uses.links].sort((a, b) => b.busiest_share - a.busiest_share);
  const note = `Link utilisation over ${seconds(uses.time_s)}${uses.nodes > 1 ? `, busiest of ${uses.nodes} nodes` : ""}.`;
  return section(
    id,
    "Topology",
    figurePanel(figures.links, {
      title: "Link utilisation over time",
      note: "Darker: higher utilisation.",
    }),
    element("p", { class: "note" }, note),
    table(
      "Links of a node",
      ["link", "kind", "links", "bandwidth_bytes_per_second", "busiest_bytes", "mean utilisation", "highest utilisation"],
      busiest.map((link) => [
        link.name,
        link.kind,
        link.links,
        link.bandwidth_bytes_per_second,
        link.busiest_bytes,
        link.mean_share,
        link.busiest_share,
      ]),
    ),
  );
}
