// What a manager reads first: cards, one paragraph, warnings.
import { bytes, count, dollars, element, flopRate, number, percent, seconds } from "../dom.js";
import { section } from "../panel.js";

export const parts = {
  compute: "compute",
  exposed_communication: "exposed communication",
  pipeline_bubble: "pipeline bubble",
  data_stall: "data stall",
  host_overhead: "host overhead",
  optimizer: "optimizer",
};

const card = (name, value, remark, bad) =>
  element(
    "div",
    { class: bad ? "card bad" : "card" },
    element("dt", {}, name),
    element("dd", {}, value),
    remark ? element("dd", { class: "remark" }, remark) : null,
  );

export const timeOf = (scenario) =>
  scenario.result?.step_time_s ?? scenario.result?.time_s ?? scenario.explanation?.time_s;

function verdict(scenario) {
  const { result, explanation } = scenario;
  const sentences = [];
  if (result?.memory_per_gpu_bytes?.fits === false) sentences.push("It does not fit in memory.");
  if (result?.breakdown_s) {
    const [most] = Object.entries(result.breakdown_s).sort((a, b) => b[1] - a[1]);
    sentences.push(`${percent(most[1] / result.step_time_s)} of a step is ${parts[most[0]]}.`);
  }
  if (explanation?.bottleneck) sentences.push(`Bottleneck: ${explanation.bottleneck}.`);
  const best = explanation?.remedies.find((remedy) => remedy.speedup > 1.005 && remedy.fits);
  if (best)
    sentences.push(`Largest single gain: ${best.change} (${number(best.speedup)}x).`);
  return sentences.length ? element("p", { class: "verdict" }, sentences.join(" ")) : null;
}

function cards(scenario) {
  const { result } = scenario;
  const range = `90 % interval ${seconds(result.uncertainty.low_s)} to ${seconds(result.uncertainty.high_s)}`;
  const made = [card(result.step_time_s === undefined ? "Time" : "Step time", seconds(timeOf(scenario)), range)];
  if (result.samples_per_second !== undefined) {
    const tokens = result.tokens_per_second ? `${count(result.tokens_per_second)} tokens/s` : null;
    made.push(card("Throughput", `${count(result.samples_per_second)} samples/s`, tokens));
    made.push(
      card("Model FLOP utilisation", percent(result.mfu), `${flopRate(result.model_flops_per_second_per_gpu)} per GPU`),
    );
    const memory = result.memory_per_gpu_bytes;
    made.push(
      card(
        "Peak GPU memory",
        bytes(memory.total),
        `${memory.fits ? "fits" : "does not fit"}: ${bytes(memory.capacity)}`,
        !memory.fits,
      ),
    );
  }
  if (scenario.gpus > 1) made.push(card("GPUs", number(scenario.gpus)));
  const interval = (range, format) => (range ? `90 % interval ${format(range.low)} to ${format(range.high)}` : null);
  if (result.time_to_train_s) {
    made.push(card("Training", seconds(result.time_to_train_s), interval(result.training?.time_to_train_s, seconds)));
  }
  if (result.cost !== null && result.cost !== undefined) {
    made.push(card("Cost", dollars(result.cost), interval(result.training?.cost, dollars)));
  }
  if (result.bus_bandwidth)
    made.push(card("Bus bandwidth", `${number(result.bus_bandwidth / 1e9)} GB/s`, result.chosen_algorithm));
  if (result.bound) made.push(card("Bound by", result.bound));
  return element("dl", { class: "cards" }, made);
}

function warnings(result) {
  if (!result?.warnings?.length) return null;
  return element(
    "div",
    { class: "warnings", role: "note", "aria-label": "Warnings" },
    element("h3", {}, "Warnings"),
    element(
      "ul",
      {},
      result.warnings.map((text) => element("li", {}, text)),
    ),
  );
}

export const summary = (scenario, id) =>
  section(id, "Summary", verdict(scenario), scenario.result ? cards(scenario) : null, warnings(scenario.result));
