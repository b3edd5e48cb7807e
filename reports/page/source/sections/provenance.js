// What exactly was predicted, and what the numbers depend on.
import { choice, download, element, table } from "../dom.js";
import { counted, section } from "../panel.js";

export function settings(scenario, id) {
  const rows = scenario.result?.settings?.map((one) => [
    one.of,
    one.name,
    one.value,
    one.default ? "default" : "stated",
  ]);
  return rows?.length
    ? section(id, "Scenario", table("Resolved settings", ["part", "setting", "value", "origin"], rows, 500))
    : null;
}

export function provenance(scenario, id) {
  const constants = scenario.result?.provenance;
  if (!constants?.length) return null;
  const kinds = [...new Set(constants.map((one) => one.kind))];
  const header = ["constant", "value", "unit", "kind", "source"];
  const rowsOf = (kind) =>
    constants
      .filter((one) => !kind || one.kind === kind)
      .map((one) => [one.name, one.value, one.unit, one.kind, one.source]);
  const place = element("div", {}, table("Constants and their sources", header, rowsOf(""), 500));
  const show = (kind) => place.replaceChildren(table("Constants and their sources", header, rowsOf(kind), 500));
  const counts = kinds.map((kind) => `${constants.filter((one) => one.kind === kind).length} ${kind}`).join(", ");
  return section(
    id,
    "Provenance",
    element("p", {}, `Model constants: ${constants.length} (${counts}).`),
    element(
      "details",
      {},
      element("summary", {}, "All constants with their sources"),
      element(
        "div",
        { class: "controls" },
        choice("Kind", [["", "all"], ...kinds], "", show),
        element(
          "button",
          { type: "button", class: "save", onclick: () => download("constants.csv", header, rowsOf("")) },
          "CSV",
        ),
      ),
      place,
    ),
  );
}
