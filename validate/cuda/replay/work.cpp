#include "validate/cuda/replay/work.hpp"

#include <utility>
#include <variant>

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

ReplayWork::ReplayWork(const replay::Graph& graph, const ReplayStreams& streams)
    : graph_(graph), doers_(doers_of(graph, streams, std::make_index_sequence<std::variant_size_v<Work>>())) {
  try {
    for (std::size_t task = 0; task < graph.tasks.size(); ++task) {
      const auto& pieces = graph.blocks[static_cast<std::size_t>(graph.tasks[task].block)].work;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        doers_[pieces[i].index()]->see(piece_of(static_cast<int>(task), i));
      }
    }
    for (const auto& doer : doers_) doer->make_ready();
  } catch (const GpuError& error) {
    if (error.fault() != Fault::out_of_memory) throw;
    throw GpuError(error.fault(), graph.name + " does not fit: " + error.what() +
                                      "; export it with a smaller batch, or end what else uses the GPU");
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

}  // namespace foretrain::gpu
