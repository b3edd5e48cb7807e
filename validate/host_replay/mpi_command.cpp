#include "validate/host_replay/mpi_command.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"

namespace foretrain {

int open_mpi_algorithm(const std::string& algorithm) {
  if (algorithm == "ring") return 4;
  if (algorithm == "halving_doubling") return 6;  // Rabenseifner: reduce-scatter by halving, all-gather by doubling
  throw UsageError(fmt::format("Open MPI is compared for ring and halving_doubling, not for {}", algorithm));
}

std::vector<std::string> mpi_command(const HostLab& lab, const std::string& program, const WorkerTask& task) {
  // mpirun calls the agent as it would call ssh: HOST, then a command line for a shell. Every host has a name of its
  // own, or Open MPI would take all of them for one machine.
  std::string agent = "#!/bin/sh\nhost=$1\nshift\ncase $host in\n";
  std::string hosts;
  for (int rank = 0; rank < task.ranks; ++rank) {
    const Participant& participant = task.participants[at_index(rank)];
    hosts += participant.address + " slots=1\n";
    agent += fmt::format("  {}) name={} ;;\n", participant.address, lab.name(participant.host));
  }
  agent +=
      "  *) exit 1 ;;\nesac\n"
      "exec ip netns exec \"$name\" unshare --uts sh -c 'hostname \"$1\"; shift; eval \"$*\"' sh \"$name\" \"$@\"\n";
  const std::string agent_file = task.folder + "/agent";
  write_file(agent_file, agent);
  std::filesystem::permissions(agent_file, std::filesystem::perms::owner_all);
  write_file(task.folder + "/hosts", hosts);
  std::vector<std::string> command = split_words(
      "mpirun --allow-run-as-root --map-by node --bind-to none --oversubscribe --mca plm_rsh_no_tree_spawn 1 "
      "--mca pml ob1 --mca btl tcp,self --mca mpi_yield_when_idle 1 --mca coll_tuned_use_dynamic_rules 1");
  const auto add = [&command](std::initializer_list<std::string> words) { command.insert(command.end(), words); };
  for (const char* key : {"btl_tcp_if_include", "oob_tcp_if_include"}) add({"--mca", key, host_subnet});
  add({"--mca", "plm_rsh_agent", agent_file});
  add({"--mca", "coll_tuned_allreduce_algorithm", std::to_string(open_mpi_algorithm(task.algorithm))});
  add({"--mca", "orte_tmpdir_base", task.folder});
  add({"--hostfile", task.folder + "/hosts", "-np", std::to_string(task.ranks), program, task.folder});
  return command;
}

}  // namespace foretrain
