// The kinds of work: how the scenario becomes a graph, and the graph's times a result. Trainings in files of their own,
// all else in job_kinds.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "model/job/job.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

/// A training step whose gradients are synchronised by collectives (job_train.cpp).
std::unique_ptr<Job> make_train_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes, InsideLayers inside);
/// Time of an estimate's step if the graph of such a step alone determines it; else nothing: with a
/// loader, checkpoints, drawn routes, jitter or a divided batch.
std::optional<Seconds> time_of_graph(const Scenario& scenario);
/// Fills in a TrainResult, whichever way the gradients went: the step, its parts and its communication as found in an
/// execution, and what follows from them and from the plan: rates, memory, time to train and cost, with the warnings
/// that belong to them.
void fill_training(Result& result, const Scenario& scenario, const Topology& topology, const Model& model,
                   const Step& step, Seconds step_time, const Breakdown& breakdown,
                   std::map<std::string, CommunicationTime> communication);

/// Training whose gradients go through parameter servers key by key (job_servers.cpp). An estimate adds by
/// formula what workers cost each other on the links and servers that they share (estimated_times).
std::unique_ptr<Job> make_server_job(const Scenario& scenario, Fidelity fidelity);
std::unique_ptr<Job> make_collective_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);
/// An operator of a GPU with its repetitions, work of a host, an access to storage: a single task.
std::unique_ptr<Job> make_operator_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);
std::unique_ptr<Job> make_loader_job(const Scenario& scenario, Fidelity fidelity);
/// Tasks that the scenario writes out.
std::unique_ptr<Job> make_task_list_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes);

}  // namespace foretrain
