// One rank of a replay by Gloo: foretrain-host-gloo FOLDER NUMBER.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "validate/host_replay/worker.hpp"

namespace {

using namespace foretrain;

std::function<void()> all_reduce(const WorkerTask& task, const std::shared_ptr<gloo::Context>& context,
                                 std::vector<float>& values) {
  const std::vector<float*> pointers = {values.data()};
  const int count = static_cast<int>(values.size());
  if (task.algorithm == "ring") {
    auto algorithm = std::make_shared<gloo::AllreduceRingChunked<float>>(context, pointers, count);
    return [algorithm] { algorithm->run(); };
  }
  if (task.algorithm == "halving_doubling") {
    auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context, pointers, count);
    return [algorithm] { algorithm->run(); };
  }
  throw std::runtime_error("Gloo has no all-reduce by " + task.algorithm + "; ring or halving_doubling");
}

void run(const WorkerTask& task, int process, ProcessBarrier& barrier) {
  gloo::transport::tcp::attr attribute;
  attribute.hostname = task.participants[at_index(process)].address;
  const auto device = gloo::transport::tcp::CreateDevice(attribute);
  gloo::rendezvous::FileStore files(task.folder);
  gloo::rendezvous::PrefixStore store("gloo", files);
  const auto context = std::make_shared<gloo::rendezvous::Context>(process, task.ranks);
  context->connectFullMesh(store, const_cast<std::shared_ptr<gloo::transport::Device>&>(device));

  std::vector<float> values(at_index(task.elements));
  const std::function<void()> work = all_reduce(task, context, values);
  const auto prepare = [&] {
    for (std::int64_t i = 0; i < task.elements; ++i) values[at_index(i)] = contribution(process, i);
  };
  measure(task, process, barrier, {prepare, work, [&] { check_sums(task, values); }});
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = argc == 3 ? number_behind(argv[2], "") : std::nullopt;
  if (!number) {
    std::fprintf(stderr, "usage: foretrain-host-gloo FOLDER NUMBER (foretrain replay starts it)\n");
    return 2;
  }
  return run_worker(argv[1], *number, run);
}
