// Peak GPU memory by kind, and memory over the step.
import { bytes, element } from "../dom.js";
import { figurePanel } from "../figure.js";
import { section } from "../panel.js";

export function memory({ memory: report, result, figures }, id) {
  const footprint = report?.memory_per_gpu_bytes ?? result?.memory_per_gpu_bytes;
  if (!footprint) return null;
  const largest = report
    ? element(
        "p",
        {},
        report.largest_micro_batch > 0
          ? `Largest micro-batch size that fits: ${report.largest_micro_batch} (now ${report.micro_batch}). `
          : "No micro-batch fits. ",
        report.remedies.join(". "),
      )
    : null;
  return section(
    id,
    "Memory",
    figurePanel(figures?.memory, {
      title: "Memory by kind",
      note: `${bytes(footprint.total)} of ${bytes(footprint.capacity)}: ${footprint.fits ? "fits" : "does not fit"}.`,
    }),
    figurePanel(figures?.memory_over_step, {
      title: "Memory over the step",
      note: report && `Peak: ${bytes(report.peak.bytes.total)} in the ${report.peak.phase} phase.`,
    }),
    largest,
  );
}
