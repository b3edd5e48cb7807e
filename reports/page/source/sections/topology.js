// The wiring of a machine, each link as busy as the busiest of its kind.
import { byteRate, bytes, percent, seconds } from "../dom.js";
import { chartPanel, section } from "../panel.js";

const levels = [["fabric"], ["nic"], ["cpu", "host"], ["pcie_switch"], ["gpu"], ["nvswitch"]];

function places(vertices, width, height) {
  const rows = levels
    .map((kinds) => vertices.filter((vertex) => kinds.includes(vertex.kind)))
    .filter((row) => row.length);
  return new Map(
    rows.flatMap((row, r) =>
      row.map((vertex, i) => [
        vertex.name,
        {
          x: ((i + 0.5) / row.length) * width,
          y: ((r + 0.5) / rows.length) * height,
          many: row.length,
        },
      ]),
    ),
  );
}

/** Vertices of the wiring, and ends of links that are none: cards and what lies behind them. */
function verticesOf({ vertices, links }) {
  const known = new Map(vertices.map((vertex) => [vertex.name, vertex]));
  for (const { from, to } of links) {
    for (const name of [from, to]) {
      if (name && !known.has(name)) known.set(name, { name, kind: /^(nic|card)/.test(name) ? "nic" : "fabric" });
    }
  }
  return [...known.values()];
}

function topologyPanel(topology) {
  const vertices = verticesOf(topology);
  const both = new Map(); // one line for both directions
  for (const link of topology.links) {
    if (!link.from || link.from === link.to) continue;
    const key = [link.from, link.to].sort().join("|");
    const other = both.get(key);
    if (!other || link.busiest_share > other.busiest_share) both.set(key, link);
  }
  const busiest = [...topology.links].sort((a, b) => b.busiest_share - a.busiest_share);
  return chartPanel({
    title: "Links of a machine, and how busy they are",
    note: `Share of ${seconds(topology.time_s)} in which a link carries data, in the busier direction${topology.nodes > 1 ? `; of ${topology.nodes} machines the busiest` : ""}.`,
    label: `Topology. Busiest links: ${busiest
      .slice(0, 6)
      .map((link) => `${link.name} ${percent(link.busiest_share)}`)
      .join(", ")}`,
    tall: ({ phone }) => (phone ? 380 : 430),
    chart: ({ width, phone, colours, ink }) => {
      const height = (phone ? 380 : 430) - 90;
      const at = places(vertices, width - 60, height);
      const heat = (share) =>
        share > 0.6
          ? ink.bad
          : share > 0.3
            ? colours[1]
            : share > 0.1
              ? colours[4]
              : share > 0.001
                ? colours[0]
                : ink.line;
      const size = (name) => Math.max(14, Math.min(46, ((width - 60) / at.get(name).many) * 0.8));
      return {
        tooltip: {
          formatter: ({ dataType, data }) =>
            dataType === "edge"
              ? `${data.link.name}\n${byteRate(data.link.bandwidth_bytes_per_second)}, busy ${percent(data.link.busiest_share)} of the time\n${bytes(data.link.busiest_bytes)}`
              : data.name,
        },
        legend: {
          data: [
            ["over 60 %", ink.bad],
            ["30 to 60 %", colours[1]],
            ["10 to 30 %", colours[4]],
            ["less", colours[0]],
            ["idle", ink.line],
          ].map(([name, color]) => ({ name, itemStyle: { color }, icon: "rect" })),
          selectedMode: false,
        },
        series: [
          {
            type: "graph",
            layout: "none",
            left: 30,
            right: 30,
            top: 60,
            bottom: 30,
            roam: false,
            cursor: "default",
            categories: ["over 60 %", "30 to 60 %", "10 to 30 %", "less", "idle"].map((name) => ({ name })),
            data: vertices.map((vertex) => ({
              name: vertex.name,
              x: at.get(vertex.name).x,
              y: at.get(vertex.name).y,
              symbol: vertex.kind === "gpu" ? "roundRect" : "rect",
              symbolSize: [size(vertex.name), 22],
              itemStyle: {
                color: vertex.kind === "gpu" ? colours[2] : ink.soft,
                borderColor: ink.text,
                borderWidth: 0.5,
              },
              label: { show: size(vertex.name) > 20, color: ink.ground, fontSize: size(vertex.name) < 36 ? 8 : 10 },
            })),
            links: [...both.values()].map((link) => ({
              source: link.from,
              target: link.to,
              link,
              lineStyle: {
                color: heat(link.busiest_share),
                width: 1.5 + 5 * Math.min(1, link.busiest_share),
                opacity: 1,
              },
            })),
          },
        ],
      };
    },
    table: () => [
      ["link", "kind", "links", "bandwidth_bytes_per_second", "busiest_bytes", "mean share", "busiest share"],
      busiest.map((link) => [
        link.name,
        link.kind,
        link.links,
        link.bandwidth_bytes_per_second,
        link.busiest_bytes,
        link.mean_share,
        link.busiest_share,
      ]),
    ],
  });
}

export const topology = (scenario, id) =>
  section(id, "Topology", scenario.topology ? topologyPanel(scenario.topology) : null);
