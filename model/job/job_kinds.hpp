// The kinds of work, one file each: how the scenario becomes a graph, and the graph's times a result.
#pragma once

#include <memory>

#include "model/job/job.hpp"

namespace foretrain {

/// A training step whose gradients are synchronised by collectives (job_train.cpp).
std::unique_ptr<Job> make_train_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);
/// Training whose gradients go through parameter servers key by key (job_servers.cpp). An estimate adds by
/// formula what workers cost each other on the links and servers that they share (estimated_times).
std::unique_ptr<Job> make_server_job(const Scenario& scenario, Fidelity fidelity);
/// One collective operation (job_collective.cpp).
std::unique_ptr<Job> make_collective_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);
/// An operator of a GPU with its repetitions, work of a host, an access to storage: a single task (job_operator.cpp).
std::unique_ptr<Job> make_operator_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);
/// An input pipeline alone (job_loader.cpp).
std::unique_ptr<Job> make_loader_job(const Scenario& scenario, Fidelity fidelity);
/// Tasks that the scenario writes out (job_tasks.cpp).
std::unique_ptr<Job> make_task_list_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);

}  // namespace foretrain
