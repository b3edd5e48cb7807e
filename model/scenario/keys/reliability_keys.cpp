// Whole trainings: failures and what follows them, prices, electricity.
#include "model/hardware/failures.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/recovery.hpp"

namespace foretrain::keys {

namespace {

constexpr Value time_between_failures = quantity("h") | text;  // or "2e-5 /hour"
constexpr Key failures_keys[] = {
    {"gpu", time_between_failures, "never", "Mean time between failures of one GPU, or their rate: 2e-5 /hour."},
    {"node", time_between_failures, "never", "The same of a machine, with all in it that has no key of its own."},
    {"nic", time_between_failures, "never", "The same of a network card."},
    {"link", time_between_failures, "never", "The same of a card's cable into the fabric."},
    {"switch", time_between_failures, "never", "The same of a switch at the fabric's edge, which stops all."},
    {"software", time_between_failures, "never", "The same of a machine's software, which is started again in place."},
    {"switches", whole, "as the fabric has", "How many switches there are."},
    {"stragglers", mapping(stragglers), "none", "GPUs that become slow and hold up all others."},
    {"seed", whole, "1", "Where the random numbers begin: the same seed gives the same prediction."},
    {"source", mapping(source), "", "Where the figures were published or measured.", "Entries of failures.yaml."},
};

constexpr Key stragglers_keys[] = {
    {"gpu", time_between_failures, "needed", "Mean time until a GPU becomes slow."},
    {"speed", quantity("%") | number, "needed", "What is left of its speed."},
    {"noticed", quantity("h"), "needed", "How long until somebody notices, and its machine is replaced."},
};

constexpr Key recovery_keys[] = {
    member<&Recovery::heartbeat>("s", "5 s", "Time between a process's signs of life.", {.zero = Zero::allowed}),
    member<&Recovery::missed>("Signs of life that must fail to appear before a process counts as dead.",
                              {.usual = "3", .range = {1, 1000}}),
    member<&Recovery::start>("s", "60 s", "What starting all processes takes.", {.zero = Zero::allowed}),
    member<&Recovery::initialise>("s", "3 ms for each GPU", "What building communicators between all GPUs takes.",
                                  {.zero = Zero::allowed}),
    member<&Recovery::spares>("Machines that wait for a failure.", {.usual = "always one", .range = {0, 1'000'000}}),
    member<&Recovery::repair>("h", "24 h", "How long until a broken machine is back.", {.zero = Zero::allowed}),
    member<&Recovery::servers>("Where a lost parameter server's state comes from.",
                               {.usual = "checkpointed", .together = "With parameter servers."}),
};

constexpr Key usual_recovery_keys[] = {
    needed<&Recovery::heartbeat>("s", "Time between a process's signs of life.", {.zero = Zero::allowed}),
    needed<&Recovery::missed>("Signs of life that must fail to appear.", {.range = {1, 1000}}),
    needed<&Recovery::start>("s", "What starting all processes takes.", {.zero = Zero::allowed}),
    {"initialise_per_gpu", quantity("ms"), "needed", "What each GPU adds to building communicators."},
    needed<&Recovery::repair>("h", "How long until a broken machine is back.", {.zero = Zero::allowed}),
    {"sources", by_name(mapping(source)), "needed", "Where each figure comes from; default: that of the others."},
};

constexpr Key price_keys[] = {
    {"of", text, "needed", "A machine of scenarios/hardware/prices.yaml."},
    {"purchase", text, "needed", "A way of buying it that is listed there, such as on_demand."},
};

constexpr Key offer_keys[] = {
    {"price", quantity("USD/node/hour"), "needed", "What an hour of the machine costs."},
    {"date", text, "needed", "The year and month of the figure."},
    {"source", text, "needed", "Where it was published."},
};

constexpr Key energy_keys[] = {
    {"grid", text, "", "A grid of scenarios/hardware/energy.yaml, or what it emits: 56 g/kWh."},
    {"pue", number, "1.56", "The data centre's electricity over that of its machines."},
    {"machine", quantity("kW"), "as listed, or estimated", "A machine's power at most, its GPUs included."},
};

constexpr Key energy_file_keys[] = {
    {"kind", text, "", "What the file describes: energy."},
    {"machines", by_name(mapping(machine_power)), "needed", "Power of whole machines, by name."},
    {"rest_of_machine", mapping(usual_figure), "needed", "The rest of a machine over its GPUs' boards, if not listed."},
    {"pue", mapping(usual_figure), "needed", "Power usage effectiveness where none is stated."},
    {"grids", mapping(grids), "needed", "What grids emit."},
};

constexpr Key machine_power_keys[] = {
    {"power", quantity("kW"), "needed", "Its power at most, GPUs included."},
    {"source", text, "needed", "Where it was published."},
};

constexpr Key usual_figure_keys[] = {
    {"value", number, "needed", "The figure."},
    {"kind", word<ConstantKind>, "needed", "Whether it is published, measured, fitted or assumed."},
    {"source", text, "needed", "Where it comes from."},
};

constexpr Key grids_keys[] = {
    {"source", text, "needed", "Where the figures were published."},
    {"g_per_kwh", by_name(number), "needed", "Grams of CO2 for a kilowatt-hour, by the grid's name."},
};

constexpr Key failures_file_keys[] = {
    {"kind", text, "", "What the file describes: failures."},
    {"failures", by_name(mapping(failures)), "needed", "How often parts fail, by the name of who counted."},
    {"recovery", mapping(usual_recovery), "needed", "What a restart takes where a scenario does not say."},
};

constexpr Key prices_file_keys[] = {
    {"kind", text, "", "What the file describes: prices."},
    {"prices", by_name(mapping(offers)), "needed", "What a machine's hour costs, by its name."},
};

constexpr Key offers_keys[] = {
    {"on_demand", mapping(offer), "", "Paid by the hour."},
    {"capacity_block", mapping(offer), "", "Booked for some days."},
    {"reserved", mapping(offer), "", "Booked for a year or more."},
    {"spot", mapping(offer), "", "What nobody else takes."},
};

}  // namespace

constinit const Mapping failures = {"failures", failures_keys};
constinit const Mapping stragglers = {"stragglers", stragglers_keys};
constinit const Mapping recovery = {"recovery", recovery_keys};
constinit const Mapping usual_recovery = {"usual recovery", usual_recovery_keys};
constinit const Mapping price = {"price of others", price_keys};
constinit const Mapping offer = {"offer", offer_keys};
constinit const Mapping energy = {"energy", energy_keys};
constinit const Mapping energy_file = {"file of electricity", energy_file_keys};
constinit const Mapping machine_power = {"power of a machine", machine_power_keys};
constinit const Mapping usual_figure = {"usual figure", usual_figure_keys};
constinit const Mapping failures_file = {"file of failures", failures_file_keys};
constinit const Mapping prices_file = {"file of prices", prices_file_keys};
constinit const Mapping offers = {"offers", offers_keys};
constinit const Mapping grids = {"grids", grids_keys};

}  // namespace foretrain::keys
