#include "validate/cuda/replay/work.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "validate/cuda/replay/least_memory.hpp"

namespace foretrain::gpu {

namespace {

template <std::size_t... kind>
std::vector<std::unique_ptr<Doer>> doers_of(const replay::Graph& graph, const ReplayStreams& streams,
                                            std::index_sequence<kind...> /*all*/) {
  std::vector<std::unique_ptr<Doer>> doers;
  (doers.push_back(make_doer<std::variant_alternative_t<kind, Work>>(graph, streams)), ...);
  return doers;
}

}  // namespace

std::string sized(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

ReplayWork::ReplayWork(const replay::Graph& graph, const ReplayStreams& streams)
    : graph_(graph), doers_(doers_of(graph, streams, std::make_index_sequence<std::variant_size_v<Work>>())) {
  std::size_t free = 0, total = 0;
  const OnDevice first(0);
  GPU_CHECK(cudaMemGetInfo(&free, &total));
  const std::size_t least = least_memory(graph);
  if (least > free) {
    throw GpuError(Fault::out_of_memory,
                   graph.name + " needs at least " + sized(least) + " of memory on a GPU; " + sized(free) + " of " +
                       sized(total) + " are free: export it with a smaller batch, or end what else uses the GPU");
  }
  for (std::size_t task = 0; task < graph.tasks.size(); ++task) {
    const auto& pieces = graph.blocks[static_cast<std::size_t>(graph.tasks[task].block)].work;
    for (std::size_t i = 0; i < pieces.size(); ++i) doers_[pieces[i].index()]->see(piece_of(static_cast<int>(task), i));
  }
  for (const auto& doer : doers_) doer->make_ready();
}

ReplayWork::~ReplayWork() {
  try {
    end_step();
  } catch (const std::exception&) {  // the context is gone: so is the memory
  }
}

Piece ReplayWork::piece_of(int task, std::size_t index) {
  const replay::Task& stated = graph_.tasks[static_cast<std::size_t>(task)];
  const replay::Block& block = graph_.blocks[static_cast<std::size_t>(stated.block)];
  return {block.work[index], stated.block, index, stated.resource, pace_};
}

void ReplayWork::put(int task, std::size_t index, int turn) {
  const Piece piece = piece_of(task, index);
  doers_[piece.work.index()]->put(piece, turn);
}

void ReplayWork::do_on_host(int task, std::size_t index) {
  const Piece piece = piece_of(task, index);
  doers_[piece.work.index()]->do_on_host(piece);
}

void ReplayWork::end_step() {
  for (const auto& doer : doers_) doer->end_step();
}

void ReplayWork::wait() {
  for (const auto& doer : doers_) doer->wait();
}

void ReplayWork::check_finite() const {
  for (const auto& doer : doers_) doer->check_finite();
}

std::vector<std::string> ReplayWork::descriptions() const {
  std::vector<std::string> all;
  for (const auto& doer : doers_) {
    for (const std::string& one : doer->descriptions()) all.push_back(one);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace foretrain::gpu
