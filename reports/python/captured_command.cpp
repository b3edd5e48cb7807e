#include "reports/python/captured_command.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/base/descriptor.hpp"
#include "model/base/error.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/workers.hpp"

namespace foretrain {

namespace {

using nlohmann::json;

/// Memory in place of one of this process's streams, from now on.
class CapturedStream {
 public:
  CapturedStream(std::FILE* stream, int descriptor) : stream_(stream), memory_(memfd_create("foretrain", 0)) {
    if (!memory_.open() || dup2(memory_.number(), descriptor) < 0) throw_system_error("capturing a command's output");
  }

  std::string text() {
    std::fflush(stream_);
    std::string all;
    char part[65536];
    lseek(memory_.number(), 0, SEEK_SET);
    for (ssize_t n = 0; (n = read(memory_.number(), part, sizeof part)) > 0;) all.append(part, static_cast<size_t>(n));
    return all;
  }

 private:
  std::FILE* stream_;
  Descriptor memory_;
};

json json_of(const ScenarioError& error) {
  return {{"file", error.where().file}, {"line", error.where().line}, {"column", error.where().column},
          {"key", error.key()},         {"got", error.got()},         {"expected", error.expected()}};
}

/// Runs the command here; its output, or its error with the place.
json answer_of(const std::vector<std::string>& arguments) {
  CapturedStream output(stdout, STDOUT_FILENO), messages(stderr, STDERR_FILENO);
  CLI::App app("", "foretrain");
  app.require_subcommand(1);
  ExitStatus status = ExitStatus::success;
#define COMMAND(name) add_##name(app, status);
#include "reports/cli/commands.def"
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const ScenarioError& error) {
    return {{"scenario_error", json_of(error)}};
  } catch (const CLI::Error& error) {
    if (error.get_exit_code() != 0) throw UsageError(error.what());
    app.exit(error);  // prints the help
  }
  return {{"status", static_cast<int>(status)}, {"output", output.text()}, {"messages", messages.text()}};
}

}  // namespace

CommandOutput run_command(const std::vector<std::string>& arguments, const std::function<bool()>& stop) {
  Reply reply{"{}", Reply::Kind::answer};
  answer_all(
      1, 1, [&](std::size_t) { return answer_of(arguments).dump(); },
      [&](std::size_t, Reply came) { reply = std::move(came); }, stop);
  if (reply.kind == Reply::Kind::bad_input) throw UsageError(reply.text);
  if (reply.kind != Reply::Kind::answer) throw std::runtime_error(reply.text);
  const json answer = json::parse(reply.text);
  if (const auto error = answer.find("scenario_error"); error != answer.end()) {
    throw ScenarioError({error->at("file"), error->at("line"), error->at("column")}, error->at("key"), error->at("got"),
                        error->at("expected"));
  }
  return {answer.value("status", 0), answer.value("output", ""), answer.value("messages", "")};
}

}  // namespace foretrain
