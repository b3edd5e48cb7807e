#include "reports/cli/program.hpp"

#include <cstdio>
#include <exception>

#include "model/base/error.hpp"
#include "model/base/utf8.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

namespace {

/// Help and version are answers; everything else that ends the parsing is wrong usage.
ExitStatus explain(const CLI::App& app, const CLI::ParseError& end) {
  if (end.get_exit_code() == 0) {
    app.exit(end);
    return ExitStatus::success;
  }
  std::fprintf(stderr, "foretrain: %s\nRun with --help for more.\n", printable(end.what()).c_str());
  return ExitStatus::bad_input;
}

ExitStatus complain(const std::exception& error, ExitStatus status) {
  std::fprintf(stderr, "foretrain: %s\n", printable(error.what()).c_str());
  return status;
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app("How long a training step takes, and why.", "foretrain");
  app.set_version_flag("--version", FORETRAIN_VERSION);
  app.require_subcommand(1);
  ExitStatus status = ExitStatus::success;
#define COMMAND(name) add_##name(app, status);
#include "reports/cli/commands.def"
  try {
    app.parse(argc, argv);
    finish_output();
    return status;
  } catch (const CLI::ParseError& end) {
    return explain(app, end);
  } catch (const ScenarioError& error) {
    return complain(error, ExitStatus::bad_input);
  } catch (const UsageError& error) {
    return complain(error, ExitStatus::bad_input);
  } catch (const std::exception& error) {
    return complain(error, ExitStatus::prediction_failed);
  }
}

}  // namespace foretrain
