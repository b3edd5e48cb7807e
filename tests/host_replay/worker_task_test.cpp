// What workers are told, and where the pieces of a message lie. Nothing here needs a network.
#include "validate/host_replay/worker_task.hpp"

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

WorkerTask ring_task() {
  WorkerTask task;
  task.algorithm = "ring";
  task.participants = {{0, "10.77.0.1"}, {1, "10.77.0.2"}, {2, "10.77.0.3"}};
  task.ranks = 3;
  task.elements = 10;
  const Schedule ring = ring_algorithm.schedule(CollectiveOperation::all_reduce, 3, 1);
  task.chunks = ring.chunks;
  for (int phase = 0; phase < ring.phases; ++phase) task.phases.push_back(ring.phase(phase));
  task.folder = "/somewhere";
  return task;
}

}  // namespace

TEST_CASE("a task comes back from its file as it was written", "[host]") {
  const WorkerTask task = ring_task();
  const WorkerTask read = task_from_json(to_json(task));
  // The text holds every field, so equal texts mean equal tasks.
  CHECK(to_json(read) == to_json(task));
  CHECK(read.phases.size() == 4);  // 2 (n - 1)
  CHECK(read.phases[0][2].kind == Transfer::Kind::reduce);
}

TEST_CASE("a task that names what does not exist is refused, not run", "[host]") {
  WorkerTask task = ring_task();
  task.phases[0][0].destination = 3;  // ranks 0 to 2
  CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("do not exist"));
  task = ring_task();
  task.phases[1][1].first_chunk = 3;  // chunks 0 to 2
  CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("do not exist"));
  task = ring_task();
  task.ranks = 4;
  CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("impossible"));
  CHECK_THROWS_WITH(task_from_json("{"), Catch::Contains("no task"));
  CHECK_THROWS_WITH(task_from_json("{\"executor\": \"own\"}"), Catch::Contains("no task"));
}

TEST_CASE("each number of a task has a least value, at which it is a task", "[host]") {
  const auto refuses = [](const auto& change, const char* why) {
    WorkerTask task = ring_task();
    change(task);
    CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains(why));
  };
  const char* const numbers = "impossible numbers";
  refuses([](WorkerTask& task) { task.ranks = 0; }, numbers);
  refuses([](WorkerTask& task) { task.elements = -1; }, numbers);
  refuses([](WorkerTask& task) { task.chunks = 0; }, numbers);
  refuses([](WorkerTask& task) { task.keys = 0; }, numbers);
  refuses([](WorkerTask& task) { task.warmup = -1; }, numbers);
  refuses([](WorkerTask& task) { task.repetitions = 0; }, numbers);
  refuses([](WorkerTask& task) { task.timeout = 0.0; }, numbers);
  const char* const nowhere = "do not exist";
  refuses([](WorkerTask& task) { task.phases[0][0].source = -1; }, nowhere);
  refuses([](WorkerTask& task) { task.phases[0][0].source = task.phases[0][0].destination; }, nowhere);
  refuses([](WorkerTask& task) { task.phases[0][0].first_chunk = -1; }, nowhere);
  refuses([](WorkerTask& task) { task.phases[0][0].chunks = -1; }, nowhere);
  WorkerTask least = ring_task();
  least.ranks = least.keys = least.repetitions = 1;
  least.elements = least.warmup = 0;
  least.timeout = 0.5;
  CHECK_NOTHROW(task_from_json(to_json(least)));
  least.phases.clear();
  least.chunks = 1;
  CHECK_NOTHROW(task_from_json(to_json(least)));
}

TEST_CASE("a task of a step waits for earlier ones of its rank alone, and takes no less than no time", "[host]") {
  const auto refuses = [](const StepTask& second) {
    WorkerTask task = ring_task();
    task.exchanges = {Exchange{}};
    task.steps = std::vector<std::vector<StepTask>>(3, {StepTask{0, 0.5, -1, {}}, second});
    CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("a task of a step"));
  };
  refuses({1, -0.5, -1, {0}});
  refuses({1, 0.0, -1, {-1}});
  refuses({1, 0.0, -1, {1}});     // itself
  refuses({1, 0.0, -1, {0, 1}});  // one of two
  refuses({1, 0.0, 1, {0}});      // of one exchange
  refuses({1, 0.0, -2, {0}});
}

TEST_CASE("a step comes back as it was written, and one whose tasks wait for later ones is refused", "[host]") {
  WorkerTask task = ring_task();
  const std::vector<StepTask> step = {{0, 0.5, -1, {}}, {1, 0.0, 1, {0}}, {0, 0.25, -1, {0, 1}}};
  task.steps = {step, step, step};
  task.exchanges = {Exchange{}, Exchange{{{2, {{0, 1, 8}, {1, 2, 16}}}, {1, {{2, 0, 1}}}}}};
  const WorkerTask read = task_from_json(to_json(task));
  CHECK(to_json(read) == to_json(task));
  CHECK(read.steps[2][1].exchange == 1);
  CHECK(read.exchanges[1].phases[0].repeat == 2);
  CHECK(read.exchanges[1].phases[0].messages[1].bytes == 16);
  task.steps[0][1].after = {2};
  CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("waits for a later one"));
  task.steps[0][1].after = {0};
  for (const Exchange::Message& wrong : {Exchange::Message{0, 3, 8}, {-1, 1, 8}, {1, 1, 8}, {0, 1, 0}}) {
    task.exchanges[1].phases[0].messages[0] = wrong;
    CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("a message between"));
  }
  task.exchanges[1].phases[0].messages[0] = {0, 1, 8};
  CHECK_NOTHROW(task_from_json(to_json(task)));
  task.steps.pop_back();
  CHECK_THROWS_WITH(task_from_json(to_json(task)), Catch::Contains("steps of other ranks"));
}

TEST_CASE("chunks are whole values and cover the message without gaps", "[host]") {
  // 10 values in 3 chunks: 4, 3 and 3.
  const auto range = [](int first, int chunks) {
    return values_of({0, 1, first, chunks, Transfer::Kind::copy}, 10, 3);
  };
  CHECK(range(0, 1).count == 4);
  CHECK(range(1, 1).first == 4);
  CHECK(range(1, 1).count == 3);
  CHECK(range(1, 2).count == 6);
  CHECK(range(0, 3).count == 10);
  CHECK_FALSE(range(0, 1).overlaps(range(1, 1)));
  CHECK(range(0, 2).overlaps(range(1, 1)));
}

TEST_CASE("sums of contributions are exact in fp32, whatever the order", "[host]") {
  // Whole numbers of at most 60 from up to 16 ranks add up to less than 2^24.
  for (const std::int64_t i : {0, 1, 60, 61, 1'000'003}) {
    double sum = 0.0;
    for (int rank = 15; rank >= 0; --rank) sum += static_cast<double>(contribution(rank, i));
    CHECK(static_cast<double>(expected_sum(16, i)) == sum);
    CHECK(sum < 16777216.0);
  }
}

TEST_CASE("executors and their algorithms are named", "[host]") {
  CHECK(parse_executor("gloo") == HostExecutor::gloo);
  CHECK(name(HostExecutor::server) == "server");
  CHECK_THROWS_AS(parse_executor("nccl"), UsageError);
}
