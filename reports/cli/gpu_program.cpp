#include "reports/cli/gpu_program.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "model/base/error.hpp"
#include "model/base/process.hpp"
#include "model/base/text.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX declares it in no header

namespace foretrain {

namespace {

constexpr const char* program_name = "foretrain-gpu";

/// What the terminal sends to both is the child's to answer while this waits.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt_);
  }
  ~IgnoredInterrupts() { sigaction(SIGINT, &interrupt_, nullptr); }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  struct sigaction interrupt_ {};
};

pid_t start(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw UsageError(fmt::format("{}: {}", program, std::strerror(error)));
  return child;
}

}  // namespace

std::optional<std::filesystem::path> find_gpu_program() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const char* stated = std::getenv("FORETRAIN_GPU_PROGRAMS");
  const fs::path folder =
      stated != nullptr ? fs::path(stated) : fs::read_symlink("/proc/self/exe", ignored).parent_path();
  // The top-level build puts it beside this program or below it; a build of its own is found through the variable.
  for (const fs::path& place : {folder / program_name, folder / "validate" / "cuda" / program_name}) {
    if (fs::is_regular_file(place, ignored)) return place;
  }
  return std::nullopt;
}

GpuPresence probe_gpu() {
  const auto program = find_gpu_program();
  if (!program) {
    return {false, fmt::format("{} is not beside this program: it was built without a CUDA toolkit", program_name)};
  }
  try {
    const FilterResult result = run_filter({program->string(), "probe"}, "");
    if (result.status == 0) return {true, ""};
    std::string said(trim(result.errors));
    if (said.empty()) said = fmt::format("{} probe ended with status {}", program_name, result.status);
    return {false, said};
  } catch (const std::system_error& error) {
    return {false, fmt::format("{}: {}", program->string(), error.code().message())};
  }
}

int run_gpu_program(const std::vector<std::string>& arguments) {
  const auto program = find_gpu_program();
  if (!program) throw UsageError(probe_gpu().why);
  const IgnoredInterrupts ignored;
  const pid_t child = start(program->string(), arguments);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw UsageError(fmt::format("{}: {}", program_name, std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace foretrain
