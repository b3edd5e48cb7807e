#include <array>
#include <vector>

#include "model/scenario/catalogue.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/table.hpp"

namespace foretrain {

namespace {

struct ListRow {
  const char* command;
  const char* help;
  std::vector<CatalogueEntry> (*entries)();
};
constexpr std::array<ListRow, 4> lists = {{{"scenarios", "the scenarios that come with foretrain", list_scenarios},
                                           {"hardware", "the machines and GPUs that it knows", list_hardware},
                                           {"models", "the models that it knows", list_models},
                                           {"trainers", "the trainers whose habits it knows", list_trainers}}};

void print_list(const ListRow& list) {
  TextTable table("lll");
  for (const CatalogueEntry& entry : list.entries()) table.add_row({entry.name, entry.kind, entry.description});
  print(table.text(0));
}

}  // namespace

void add_list(CLI::App& app, ExitStatus&) {
  for (const ListRow& row : lists) {
    CLI::App* command = app.add_subcommand(row.command, row.help);
    command->require_subcommand(1);
    command->add_subcommand("list", row.help)->callback([&row] { print_list(row); });
  }
}

}  // namespace foretrain
