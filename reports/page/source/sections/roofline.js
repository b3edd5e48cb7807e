// Operators beneath the roofs of their GPU.
import { byteRate, flopRate, number, percent, seconds } from "../dom.js";
import { chartPanel, section } from "../panel.js";

function rooflinePanel({ gpu, bandwidth_bytes_per_second: bandwidth, roofs, points }) {
  if (!points.length) return null;
  const total = points.reduce((sum, point) => sum + point.time_s, 0);
  const intensities = points.map((point) => point.flops_per_byte);
  const low = 10 ** Math.floor(Math.log10(Math.min(...intensities)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...intensities, (roofs[0].flops_per_second / bandwidth) * 2)));
  const drawn = roofs.filter((roof) => points.some((point) => roof.name.split(", ").includes(point.precision)));
  const roofLine = ({ flops_per_second: rate }) => [
    [low, low * bandwidth],
    [rate / bandwidth, rate],
    [high, rate],
  ];
  return chartPanel({
    title: `Roofline of ${gpu}`,
    note: `Operators of one name in a step together; as large as their share of the operators' time. Memory: ${byteRate(bandwidth)}.`,
    label: `Roofline. ${points
      .slice(0, 8)
      .map((p) => `${p.operator}: ${flopRate(p.flops_per_second)}, ${percent(p.of_the_roof)} of the roof, ${p.bound}`)
      .join(". ")}`,
    tall: ({ phone }) => (phone ? 360 : 420),
    chart: ({ colours, ink, width }) => ({
      legend: {
        data: ["bound by compute", "bound by memory", "bound by latency"].filter((name) =>
          points.some((p) => name.endsWith(p.bound)),
        ),
      },
      tooltip: {
        trigger: "item",
        formatter: ({ data }) =>
          data.point
            ? `${data.point.operator} (${data.point.precision})\n${seconds(data.point.time_s)}, ${percent(data.point.time_s / total)} of the operators' time\n` +
              `${number(data.point.flops_per_byte)} FLOP/byte, ${flopRate(data.point.flops_per_second)}\n${percent(data.point.of_the_roof)} of the roof, bound by ${data.point.bound}`
            : "",
      },
      xAxis: { type: "log", min: low, max: high, name: "FLOP per byte", axisLabel: { formatter: number } },
      yAxis: { type: "log", axisLabel: { formatter: flopRate } },
      series: [
        ...drawn.map((roof) => ({
          name: roof.name,
          type: "line",
          symbol: "none",
          data: roofLine(roof),
          silent: true,
          color: ink.soft,
          lineStyle: { color: ink.soft, width: 2 },
          endLabel: {
            show: true,
            color: ink.text,
            offset: [-8, -12],
            align: "right",
            formatter: () => `${roof.name}: ${flopRate(roof.flops_per_second)}`,
          },
        })),
        ...["compute", "memory", "latency"].map((bound, i) => ({
          name: `bound by ${bound}`,
          type: "scatter",
          symbol: ["circle", "rect", "triangle"][i],
          color: colours[i],
          itemStyle: { opacity: 0.8, borderColor: ink.text, borderWidth: 0.5 },
          label: {
            show: true,
            position: "right",
            color: ink.text,
            fontSize: 11,
            formatter: ({ data }) => (data.point.time_s > 0.04 * total && width > 420 ? data.point.operator : ""),
          },
          labelLayout: { hideOverlap: true },
          data: points
            .filter((p) => p.bound === bound)
            .map((point) => ({
              value: [point.flops_per_byte, point.flops_per_second],
              point,
              symbolSize: 8 + 34 * Math.sqrt(point.time_s / total),
            })),
        })),
      ],
    }),
    table: () => [
      ["operator", "precision", "time_s", "FLOP/byte", "flops_per_second", "roof share", "bound"],
      points.map((p) => [
        p.operator,
        p.precision,
        p.time_s,
        p.flops_per_byte,
        p.flops_per_second,
        p.of_the_roof,
        p.bound,
      ]),
    ],
  });
}

export const roofline = (scenario, id) => section(id, "Roofline", (scenario.roofline ?? []).map(rooflinePanel));
