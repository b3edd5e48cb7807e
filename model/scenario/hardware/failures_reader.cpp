#include "model/scenario/hardware/hardware_reader.hpp"

#include <string>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "model/scenario/figures.hpp"

namespace foretrain {

namespace {

/// "50000 h" between failures, or "2e-5 /hour".
Seconds read_mtbf(const Field& field) {
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit != "/hour" && parts.unit != "/h") return field.quantity<Seconds>();
  if (!(parts.number > 0.0)) field.fail("no failures", "a rate above zero, or leave the key out");
  return Seconds(3600.0 / parts.number);
}

Failures::Stragglers read_stragglers(const Field& field) {
  const MappingReader keys = field.mapping(keys::stragglers);
  return {read_mtbf(keys["gpu"]), read_share(keys["speed"]), keys["noticed"].quantity<Seconds>(Zero::allowed)};
}

}  // namespace

Failures read_failures(const Field& field) {
  const YamlNode tree =
      entry_or_changes(hardware_table("failures.yaml").find("failures")->value, field, "failure rates");
  const MappingReader keys = Field(tree, field.path()).mapping(keys::failures);
  const YamlNode nothing = yaml_mapping(field.where());
  FigureLog log("failures", Field(nothing, field.path()));
  Failures failures;
  bool any = false;
  for (std::size_t part = 0; part < failing_parts; ++part) {
    const auto stated = keys.find(names_of<FailingPart>[part]);
    if (!stated) continue;
    any = true;
    failures.mtbf[part] = read_mtbf(*stated);
    // What a scenario states beside a preset is its own assumption.
    const bool from_table = keys.has("source") && stated->where().file == keys["source"].where().file;
    from_table ? log.add(*stated, read_source(keys["source"])) : log.add(*stated);
  }
  if (const auto stragglers = keys.find("stragglers")) {
    failures.stragglers = read_stragglers(*stragglers);
    any = true;
  }
  if (!any) field.fail("nothing fails", "preset: llama3-h100, or gpu: 50000 h");
  if (keys.has("switches")) failures.switches = keys.int_or("switches", 1, {1, 1'000'000});
  failures.seed = keys.int_or("seed", 1, {0, 1'000'000});
  failures.constants = std::move(log).take();
  return failures;
}

Recovery read_recovery(const std::optional<Field>& field, const Cluster& cluster) {
  const Field table(hardware_table("failures.yaml").find("recovery")->value, "recovery");
  const MappingReader usual = table.mapping(keys::usual_recovery);
  FigureLog log("recovery", table);
  std::optional<MappingReader> own;
  if (field) own = field->mapping(keys::recovery);
  Recovery recovery;
  usual.fill(recovery);
  if (own) own->fill(recovery);
  for (const char* key : {"heartbeat", "missed", "start", "repair"})
    log.add(own && own->has(key) ? *own : usual, {key});
  if (own && own->has("initialise")) {
    log.add(*own, {"initialise"});
  } else {
    recovery.initialise = figure<Seconds>(usual, "initialise_per_gpu", log) * cluster.gpus();
  }
  recovery.constants = std::move(log).take();
  return recovery;
}

}  // namespace foretrain
