// Whole trainings: failures and what follows them, prices, electricity.
#include "model/hardware/failures.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/recovery.hpp"

namespace foretrain::keys {

namespace {

constexpr Value time_between_failures = quantity("h") | text;  // or "2e-5 /hour"
constexpr Key stragglers_keys[] = {
    {"gpu", time_between_failures, "needed", "Mean time until a GPU becomes slow."},
    {"speed", quantity("%") | number, "needed", "Remaining speed."},
    Key{"noticed", quantity("h"), "needed", "Time until a slow GPU is detected and its node replaced."}.with(
        Zero::allowed),
};

constexpr Key failures_keys[] = {
    {"gpu", time_between_failures, "never", "Mean time between failures of one GPU, or their rate: 2e-5 /hour."},
    {"node", time_between_failures, "never", "Failures of a node, with all parts without their own key."},
    {"nic", time_between_failures, "never", "Failures of a NIC."},
    {"link", time_between_failures, "never", "Failures of a NIC's cable."},
    {"switch", time_between_failures, "never", "The same of an edge switch, whose failure stops the training."},
    {"software", time_between_failures, "never", "Software failures of a node, restarted in place."},
    member<&Failures::switches>("Number of switches.", {.usual = "as the fabric has", .range = {1, 1'000'000}}),
    {"stragglers", mapping_of<stragglers_keys, "stragglers">, "none", "Stragglers: GPUs that become slow."},
    member<&Failures::seed>("Random seed: the same seed gives the same prediction.",
                            {.usual = "1", .range = {0, 1'000'000}}),
    {"source", mapping(source), "", "Source of the values.", "Entries of failures.yaml."},
};

constexpr Key recovery_keys[] = {
    member<&Recovery::heartbeat>("s", "5 s", "Heartbeat interval.", may_be_zero),
    member<&Recovery::missed>("Missed heartbeats before a process counts as failed.",
                              {.usual = "3", .range = {1, 1000}}),
    member<&Recovery::start>("s", "60 s", "Time to start all processes.", may_be_zero),
    member<&Recovery::initialise>("s", "3 ms for each GPU", "Time to initialise NCCL communicators.", may_be_zero),
    member<&Recovery::spares>("Spare nodes.", {.usual = "always one", .range = {0, 1'000'000}}),
    member<&Recovery::repair>("h", "24 h", "Repair time of a node.", may_be_zero),
    member<&Recovery::servers>("State recovery of a parameter server.",
                               {.usual = "checkpointed", .together = "With parameter servers."}),
};

constexpr Key usual_recovery_keys[] = {
    needed<&Recovery::heartbeat>("s", "Heartbeat interval.", may_be_zero),
    needed<&Recovery::missed>("Signs of life that must fail to appear.", {.range = {1, 1000}}),
    needed<&Recovery::start>("s", "Time to start all processes.", may_be_zero),
    {"initialise_per_gpu", quantity("ms"), "needed", "Communicator initialisation time per GPU."},
    needed<&Recovery::repair>("h", "Repair time of a node.", may_be_zero),
    {"sources", by_name(mapping(source)), "needed", "Source of each value; default: of all others."},
};

constexpr Key price_keys[] = {
    {"of", text, "needed", "A node of scenarios/hardware/prices.yaml."},
    {"purchase", text, "needed", "A purchase option listed there, such as on_demand."},
};

constexpr Key offer_keys[] = {
    {"price", quantity("USD/node/hour"), "needed", "Price per node hour."},
    {"date", text, "needed", "Year and month of the price."},
    {"source", text, "needed", "Publication."},
};

constexpr Key energy_keys[] = {
    {"grid", text, "", "A grid of scenarios/hardware/energy.yaml, or its emissions: 56 g/kWh."},
    {"pue", number, "1.56", "Power usage effectiveness (PUE)."},
    {"machine", quantity("kW"), "as listed, or estimated", "Maximum node power, with GPUs."},
};

constexpr Key machine_power_keys[] = {
    {"power", quantity("kW"), "needed", "Its power at most, GPUs included."},
    {"source", text, "needed", "Publication."},
};

constexpr Key usual_figure_keys[] = {
    {"value", number, "needed", "The figure."},
    {"kind", word<ConstantKind>, "needed", "Kind of source: published, measured, fitted or assumed."},
    {"source", text, "needed", "Source."},
};

constexpr Key grids_keys[] = {
    {"source", text, "needed", "Publication."},
    {"g_per_kwh", by_name(number), "needed", "Grams of CO2 for a kilowatt-hour, by the grid's name."},
};

constexpr Key energy_file_keys[] = {
    {"kind", text, "", "Kind of file: energy."},
    {"machines", by_name(mapping_of<machine_power_keys, "power of a node">), "needed", "Power of nodes, by name."},
    {"rest_of_machine", mapping_of<usual_figure_keys, "default value">, "needed",
     "Power of a node without GPUs, relative to its GPU boards, if not listed."},
    {"pue", mapping_of<usual_figure_keys, "default value">, "needed",
     "Power usage effectiveness where none is stated."},
    {"grids", mapping_of<grids_keys, "grids">, "needed", "Emissions of electricity grids."},
};

constexpr Key failures_file_keys[] = {
    {"kind", text, "", "Kind of file: failures."},
    {"failures", by_name(mapping(failures)), "needed", "Failure rates, by source."},
    {"recovery", mapping_of<usual_recovery_keys, "usual recovery">, "needed", "Default restart times."},
};

constexpr Key offers_keys[] = {
    {"on_demand", mapping_of<offer_keys, "offer">, "", "Paid by the hour."},
    {"capacity_block", mapping_of<offer_keys, "offer">, "", "Booked for some days."},
    {"reserved", mapping_of<offer_keys, "offer">, "", "Booked for a year or more."},
    {"spot", mapping_of<offer_keys, "offer">, "", "Memory not used by others."},
};

constexpr Key prices_file_keys[] = {
    {"kind", text, "", "Kind of file: prices."},
    {"prices", by_name(mapping_of<offers_keys, "offers">), "needed", "Price per node hour, by node name."},
};

}  // namespace

constinit const Mapping failures = {"failures", failures_keys};
constinit const Mapping recovery = {"recovery", recovery_keys};
constinit const Mapping price = {"price of others", price_keys};
constinit const Mapping energy = {"energy", energy_keys};
constinit const Mapping energy_file = {"file of electricity", energy_file_keys};
constinit const Mapping failures_file = {"file of failures", failures_file_keys};
constinit const Mapping prices_file = {"file of prices", prices_file_keys};

}  // namespace foretrain::keys
