#include "model/scenario/hardware/hardware_reader.hpp"

#include <cctype>

#include "model/base/text.hpp"
#include "model/scenario/overrides.hpp"

namespace foretrain {

namespace {

/// "50000 h" between failures, or "2e-5 /hour".
Seconds read_mtbf(const Field& field) {
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit == "/hour" || parts.unit == "/h") {
    if (!(parts.number > 0.0)) field.fail("no failures", "a rate above zero, or leave the key out");
    return Seconds(3600.0 / parts.number);
  }
  const Seconds time = field.parse(parse_quantity<Seconds>);
  if (!(time > Seconds(0.0))) field.fail("zero is impossible here", "a value above zero");
  return time;
}

constexpr std::string_view per_node = "USD/node/hour";

/// A kind of machine in the cluster, by the name that the scenario calls it.
struct MachineKind {
  Field name;
  NodeKind of;
};

std::vector<MachineKind> kinds_in(const Field& cluster_field, const Cluster& cluster) {
  const auto groups = cluster_field.find("groups");
  const std::vector<Field> list = groups ? groups->list() : std::vector{cluster_field};
  std::vector<MachineKind> kinds;
  for (const NodeKind& kind : cluster.kinds()) kinds.push_back({list[kinds.size()].at("node"), kind});
  return kinds;
}

double board_watts(const MachineKind& kind) { return kind.of.node.gpu.board_power_watts * kind.of.node.gpus; }

bool is_word(const std::string& text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
}

double listed_price(const Field& machine, const Field& purchase, std::vector<Constant>& constants) {
  if (!machine.is_scalar()) machine.fail("a machine without a name", "a price in USD/GPU/hour");
  const Field offers =
      named_entry(hardware_table("prices.yaml", keys::prices_file)["prices"], machine, "machine with prices");
  static_cast<void>(named_entry(offers, purchase, "way to buy " + machine.text() + ":"));
  const MappingReader offer = offers.mapping()[purchase.text()].mapping();
  const NumberAndUnit parts = offer["price"].parse(split_number_and_unit);
  if (parts.unit != per_node) offer.fail("price", "no price of a machine's hour", "98 USD/node/hour");
  constants.push_back({fmt::format("{}.{}", machine.text(), purchase.text()), parts.number, std::string(per_node),
                       ConstantKind::datasheet, fmt::format("{} ({})", offer["source"].text(), offer["date"].text())});
  return parts.number;
}

MappingReader energy_table() { return hardware_table("energy.yaml", keys::energy_file); }

double usual_figure(const char* key, std::vector<Constant>& constants) {
  const MappingReader figure = energy_table()[key].mapping();
  const double value = figure["value"].as<double>();
  constants.push_back(
      {fmt::format("energy.{}", key), value, "", figure["kind"].as<ConstantKind>(), figure["source"].text()});
  return value;
}

/// Power of a machine besides its GPU boards.
double rest_watts(const MachineKind& kind, std::vector<Constant>& constants) {
  const double boards = board_watts(kind);
  const auto listed = kind.name.is_scalar() ? energy_table()["machines"].find(kind.name.text()) : std::nullopt;
  if (listed) {
    const MappingReader machine = listed->mapping();
    const double watts = machine["power"].parse(parse_watts);
    constants.push_back({kind.name.text() + ".power", watts, "W", ConstantKind::datasheet, machine["source"].text()});
    return std::max(watts - boards, 0.0);
  }
  return usual_figure("rest_of_machine", constants) * boards;
}

/// A grid's name, or "56 g/kWh".
double read_grid(const Field& field, std::vector<Constant>& constants) {
  if (is_word(field.text())) {
    const MappingReader grids = energy_table()["grids"].mapping();
    const auto grams = named_entry(grids["g_per_kwh"], field, "grid").as<double>();
    constants.push_back({"grid." + field.text(), grams, "g/kWh", ConstantKind::measurement, grids["source"].text()});
    return grams;
  }
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit != "g/kWh") field.fail("no grid", "its name, or 56 g/kWh");
  return parts.number;
}

/// The entry that `look_up` finds for a name, with the keys that a mapping has beside `preset: NAME`.
Field with_changes(const Field& field, const auto& look_up) {
  if (field.is_scalar()) return field.replaced(look_up(field));
  const auto preset = field.find("preset");
  if (!preset) return field;
  YamlNode changes = field.node();
  changes.erase("preset");
  return field.replaced(merged(look_up(*preset), changes));
}

/// A preset may have a preset of its own: `depth` is how many stand before it.
Field resolved(const Field& field, Catalogue section, int depth) {
  constexpr int deepest = 8;
  return with_changes(field, [&](const Field& name) {
    name.fail_if(depth > deepest, "presets without an end", "a file that needs no other");
    const Field file(cached_yaml_file(catalogue_file(section, name).string()), name.path());
    return resolved(file, section, depth + 1).node();
  });
}

}  // namespace

Failures read_failures(const Field& field) {
  const Field table = hardware_table("failures.yaml", keys::failures_file)["failures"];
  const MappingReader keys = entry_or_changes(table, field, "failure rates").mapping(keys::failures);
  FigureLog log("failures", field.path());
  Failures failures;
  for (std::size_t part = 0; part < failing_parts; ++part) {
    const auto stated = keys.find(names_of<FailingPart>[part]);
    if (!stated) continue;
    failures.mtbf[part] = read_mtbf(*stated);
    // Keys of a scenario beside a preset are its own assumptions.
    const bool from_table = keys.has("source") && stated->where().file == keys["source"].where().file;
    from_table ? log.add(*stated, read_source(keys["source"])) : log.add(*stated);
  }
  if (const auto slow = keys.find("stragglers")) {
    const MappingReader parts = slow->mapping();
    failures.stragglers = {read_mtbf(parts["gpu"]), read_share(parts["speed"]), parts["noticed"].as<Seconds>()};
  }
  field.fail_if(failures == Failures{}, "nothing fails", "preset: llama3-h100, or gpu: 50000 h");
  keys.fill(failures);
  failures.constants = std::move(log).take();
  return failures;
}

Recovery read_recovery(const std::optional<Field>& field, const Cluster& cluster) {
  const MappingReader usual = hardware_table("failures.yaml", keys::failures_file)["recovery"].mapping();
  FigureLog log("recovery", usual.field());
  std::optional<MappingReader> own;
  if (field) own = field->mapping(keys::recovery);
  auto recovery = usual.filled<Recovery>();
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

void read_price(const Field& field, const Field& cluster_field, Cluster& cluster) {
  double per_hour = 0.0;  // of all machines
  if (field.is_mapping()) {
    const MappingReader keys = field.mapping(keys::price);
    per_hour = listed_price(keys["of"], keys["purchase"], cluster.price_constants) * cluster.nodes;
  } else if (is_word(field.text())) {
    for (const MachineKind& kind : kinds_in(cluster_field, cluster)) {
      per_hour += listed_price(kind.name, field, cluster.price_constants) * kind.of.nodes;
    }
  } else {
    const NumberAndUnit parts = field.parse(split_number_and_unit);
    if (parts.unit != per_node) {
      cluster.usd_per_gpu_hour = field.parse(parse_usd_per_gpu_hour);
      return;
    }
    per_hour = parts.number * cluster.nodes;
  }
  cluster.usd_per_gpu_hour = per_hour / cluster.gpus();
}

Energy read_energy(const Field& field, const Field& cluster_field, const Cluster& cluster) {
  Energy energy;
  std::optional<double> stated_pue, machine_watts;
  if (field.is_mapping()) {
    const MappingReader keys = field.mapping(keys::energy);
    if (const auto grid = keys.find("grid")) energy.grams_per_kwh = read_grid(*grid, energy.constants);
    if (const auto pue = keys.find("pue")) stated_pue = pue->as<double>();
    keys.fail_if(stated_pue && *stated_pue < 1.0, "pue", "below 1, less than the machines' own electricity",
                 "1 or more");
    if (const auto machine = keys.find("machine")) machine_watts = machine->parse(parse_watts);
  } else {
    energy.grams_per_kwh = read_grid(field, energy.constants);
  }
  energy.pue = stated_pue ? *stated_pue : usual_figure("pue", energy.constants);
  for (const MachineKind& kind : kinds_in(cluster_field, cluster)) {
    energy.rest_watts += kind.of.nodes * (machine_watts ? std::max(*machine_watts - board_watts(kind), 0.0)
                                                        : rest_watts(kind, energy.constants));
  }
  return energy;
}

const YamlNode& hardware_table(std::string_view file) {
  return cached_yaml_file((data_directory() / "hardware" / file).string());
}

MappingReader hardware_table(std::string_view file, const keys::Mapping& keys) {
  return Field(hardware_table(file), "").mapping(keys);
}

Field named_entry(const Field& table, const Field& name, std::string_view what) {
  if (const auto entry = table.find(name.text())) return *entry;
  std::vector<std::string> known;
  for (const YamlEntry& entry : table.node().entries) known.push_back(entry.key);
  const std::vector<std::string> near = near_names(name.text(), known);
  name.fail(fmt::format("unknown {} \"{}\"", what, name.text()),
            near.empty() ? "one of " + or_list(known) : fmt::format("did you mean {}?", or_list(near)));
}

Field entry_or_changes(const Field& table, const Field& field, std::string_view what) {
  return with_changes(field, [&](const Field& name) { return named_entry(table, name, what).node(); });
}

Field resolve_preset(const Field& field, Catalogue section) { return resolved(field, section, 0); }

std::optional<double> percentage(const Field& field, std::string_view expected) {
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit != "%") return std::nullopt;
  field.fail_if(!(parts.number > 0.0 && parts.number <= 100.0), "{} %", "{1}", parts.number, expected);
  return parts.number / 100.0;
}

double read_share(const Field& field, std::string_view expected) {
  const std::optional<double> share = percentage(field);
  if (!share) field.fail("no share", std::string(expected));
  return *share;
}

}  // namespace foretrain
