// Sweeps as job arrays: what each batch system is given, run by stand-ins that set the variables which it sets.
#include <fmt/format.h>

#include "model/base/files.hpp"
#include "model/scenario/yaml_document.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

/// A batch system that runs each job here: what it sets, and the first job's number.
struct StandIn {
  std::string system, index, processors;
  int first = 1;
};

const std::vector<StandIn> stand_ins = {{"slurm", "SLURM_ARRAY_TASK_ID", "SLURM_CPUS_PER_TASK"},
                                        {"pbs", "PBS_ARRAY_INDEX", "NCPUS"},
                                        {"lsf", "LSB_JOBINDEX", "LSB_DJOB_NUMPROC"},
                                        {"kubernetes", "JOB_COMPLETION_INDEX", "PROCESSORS", 0}};

/// A folder and a scenario whose names a shell would read as more than names.
class Sweep {
 public:
  explicit Sweep(const std::string& variation = "workload.collective.size=1 MB..7 MB") : variation_(variation) {
    std::filesystem::create_directory(folder_.file(odd));
    write_file(scenario(), text_of(FORETRAIN_SOURCE_DIR "/scenarios/runs/sync-ring-4.yaml"));
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(odd + "/" + name); }
  [[nodiscard]] std::string scenario() const { return file("it's $(HOME) $$.yaml"); }
  [[nodiscard]] FilterResult run(const std::string& output, std::vector<std::string> more) const {
    const std::vector<std::string> sweep = {"sweep",      scenario(), "--vary", variation_,
                                            "--fidelity", "estimate", "-o",     file(output)};
    more.insert(more.begin(), sweep.begin(), sweep.end());
    return run_program(more);
  }

 private:
  const std::string odd = "a `b` \"c\"";
  TemporaryFolder folder_;
  std::string variation_;
};

/// What the container of a pod runs: "$$" is how Kubernetes has "$" written.
std::string shell_lines_of(const std::string& job) {
  const YamlNode document = parse_yaml(job, "job.yaml");
  const auto at = [](const YamlNode& node, const char* key) -> const YamlNode& {
    const YamlNode* found = node.at(key);
    if (found == nullptr) throw std::runtime_error(std::string("there is no ") + key);
    return *found;
  };
  CHECK(at(document, "kind").scalar == "Job");
  CHECK(at(document, "spec.completionMode").scalar == "Indexed");
  CHECK(at(document, "spec.completions").scalar == "3");
  const YamlNode& container = at(document, "spec.template.spec.containers").items.at(0);
  CHECK(at(at(container, "env").items.at(0), "name").scalar == "PROCESSORS");
  const YamlNode& command = at(container, "command");
  REQUIRE(command.items.size() == 3);
  CHECK(command.items[0].scalar + " " + command.items[1].scalar == "sh -c");
  std::string lines;
  for (std::size_t i = 0; i < command.items[2].scalar.size(); ++i) {
    lines += command.items[2].scalar[i];
    if (command.items[2].scalar.substr(i, 2) == "$$") ++i;
  }
  return lines;
}

/// Job `index` of the array.
FilterResult run_job(const StandIn& system, const std::string& script, int index) {
  const std::string path = std::filesystem::path(FORETRAIN_PROGRAM).parent_path().string() + ":/usr/bin:/bin";
  return run_filter(
      {"env", "PATH=" + path, fmt::format("{}={}", system.index, index), system.processors + "=2", "sh", "-c", script},
      "");
}

}  // namespace

TEST_CASE("Each batch system runs the shards of a sweep, twice, and merged they are the bytes of one run") {
  for (const StandIn& system : stand_ins) {
    INFO(system.system);
    const Sweep sweep;
    REQUIRE(sweep.run("one.csv", {}).status == 0);
    const FilterResult array = sweep.run("out.csv", {"--job-array", system.system + ":3", "--jobs", "7"});
    REQUIRE(array.status == 0);
    CHECK_THAT(array.output, !Catch::Contains("'7'") && !Catch::Contains("--job-array"));
    CHECK_FALSE(std::filesystem::exists(sweep.file("out.csv")));
    const std::string script = system.system == "kubernetes" ? shell_lines_of(array.output) : array.output;
    // Seven rows in three shards: 3, 2 and 2. The last first, and once done they stay as they are.
    for (int i = system.first + 2; i >= system.first; --i) {
      const FilterResult job = run_job(system, script, i);
      INFO(job.errors);
      CHECK(job.status == 0);
    }
    const std::string shard = sweep.file("out.1-of-3.sqlite");
    const std::string before = text_of(shard);
    for (int i = system.first; i < system.first + 3; ++i) {
      const FilterResult again = run_job(system, script, i);
      CHECK(again.status == 0);
      CHECK_THAT(again.errors, Catch::Contains(i == system.first ? "3 rows are there" : "2 rows are there"));
    }
    CHECK(text_of(shard) == before);
    REQUIRE(run_program({"sweep", "merge", sweep.file("out.csv")}).status == 0);
    CHECK(text_of(sweep.file("out.csv")) == text_of(sweep.file("one.csv")));
  }
}

TEST_CASE("A job whose sweep has become another one is refused, and so is its shard among those of the first") {
  const StandIn& system = stand_ins.front();
  const Sweep sweep;
  const std::string script = sweep.run("out.csv", {"--job-array", "slurm:3"}).output;
  REQUIRE(run_job(system, script, 1).status == 0);
  write_file(sweep.scenario(), text_of(FORETRAIN_SOURCE_DIR "/scenarios/runs/sync-ring-4.yaml") + "# changed\n");
  const FilterResult changed = run_job(system, script, 1);
  CHECK(changed.status == 2);
  CHECK_THAT(changed.errors, Catch::Contains("holds 3 rows of another sweep"));
  REQUIRE(run_job(system, script, 2).status == 0);
  REQUIRE(run_job(system, script, 3).status == 0);
  const FilterResult merged = run_program({"sweep", "merge", sweep.file("out.csv")});
  CHECK(merged.status == 2);
  CHECK_THAT(merged.errors, Catch::Contains("out.2-of-3.sqlite") && Catch::Contains("a part of another sweep"));
  CHECK_FALSE(std::filesystem::exists(sweep.file("out.csv")));
}

TEST_CASE("--slurm N is the array of Slurm; other arrays name a batch system and how many jobs it can have") {
  const Sweep sweep;
  CHECK(sweep.run("out.csv", {"--slurm", "3"}).output == sweep.run("out.csv", {"--job-array=slurm:3"}).output);
  CHECK_THAT(sweep.run("out.csv", {"--job-array", "pbs:3"}).output, Catch::Contains("\n#PBS -J 1-3\n"));
  CHECK_THAT(sweep.run("out.csv", {"--job-array", "lsf:3"}).output, Catch::Contains("\n#BSUB -J \"foretrain[1-3]\"\n"));
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"pbs", "write pbs:N, N jobs of that batch system, from 2"},
      {"pbs:1", "write pbs:N, N jobs of that batch system, from 2"},
      {"lsf:0", "from 1 to 1000000"},
      {"slurm:1000001", "from 1 to 1000000"},
      {"kubernetes:x", "write kubernetes:N"},
      {"cron:3", "write slurm|pbs|lsf|kubernetes:N"}};
  for (const auto& [array, remedy] : wrong) {
    INFO(array);
    const FilterResult refused = sweep.run("out.csv", {"--job-array=" + array});
    CHECK(refused.status == 2);
    CHECK_THAT(refused.errors, Catch::Contains(remedy));
    CHECK(refused.output.empty());
  }
  const FilterResult unprintable = sweep.run("out.csv", {"--where", "1\x01", "--job-array", "kubernetes:3"});
  CHECK(unprintable.status == 2);
  CHECK_THAT(unprintable.errors, Catch::Contains("control characters"));
}

}  // namespace foretrain::test
