#include <array>
#include <vector>

#include "model/scenario/catalogue.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/show.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

struct ListRow {
  const char* command;
  const char* help;
  std::vector<CatalogueEntry> (*entries)();
  std::string (*shown)(const std::string& name);
};
constexpr std::array<ListRow, 4> lists = {
    {{"scenarios", "the scenarios that come with foretrain", list_scenarios, shown_scenario},
     {"hardware", "the machines and GPUs that it knows", list_hardware, shown_hardware},
     {"models", "the models that it knows", list_models, shown_model},
     {"trainers", "the trainers whose habits it knows", list_trainers, shown_trainer}}};

void print_list(const ListRow& list) {
  TextTable table("lll");
  for (const CatalogueEntry& entry : list.entries()) table.add_row({entry.name, entry.kind, entry.description});
  print_page(table.text(0));
}

}  // namespace

void add_list(CLI::App& app, ExitStatus&) {
  for (const ListRow& row : lists) {
    CLI::App* command = app.add_subcommand(row.command, row.help);
    command->require_subcommand(1);
    command->add_subcommand("list", row.help)->callback([&row] { print_list(row); });
    const auto name = std::make_shared<std::string>();
    CLI::App* show = command->add_subcommand("show", "what a name stands for: figures, and the file with its comments");
    show->add_option("NAME", *name, "a name from `list`, a short one, or a file")->required();
    show->callback([&row, name] { print(row.shown(*name)); });
  }
}

}  // namespace foretrain
