// From a scenario to the graph that GPUs run: what is priced is what is run.
#include "validate/export/export.hpp"

#include "model/scenario/load/load.hpp"
#include "model/tasks/task_list.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"
#include "validate/replay/graph_text.hpp"
#include "validate/replay/issue.hpp"

using namespace foretrain;

namespace {

Scenario scenario(const std::string& body) { return load_scenario_text("name: test\n" + body, "test.yaml"); }

replay::Graph export_of(const Scenario& s) {
  check_gpu_replay(s);
  const std::unique_ptr<Job> job = make_job(s, Fidelity::estimate, Recipes::kept);
  return exported(s, "test", job->graph(), run(job->graph()), Fidelity::estimate);
}

std::string train(const std::string& keys, const std::string& plan = "", const std::string& node = "h200-x1") {
  return "cluster: { node: " + node + " }\nworkload: { train: { " + keys + " } }\n" +
         (plan.empty() ? "" : "plan: { " + plan + " }\n");
}

const replay::Block& block_named(const replay::Graph& graph, const std::string& name) {
  const auto found = std::ranges::find_if(graph.blocks, [&](const replay::Block& b) { return b.name == name; });
  REQUIRE(found != graph.blocks.end());
  return *found;
}

double kernels_predicted(const replay::Block& block) {
  double sum = 0.0;
  for (const Work& work : block.work) {
    if (const auto* kernel = std::get_if<KernelWork>(&work)) sum += kernel->count * kernel->predicted.value();
  }
  return sum;
}

/// Number of launches of each operator by the tasks of a name.
std::map<std::string, int> launches(const replay::Graph& graph, const std::string& block_name) {
  std::map<std::string, int> counts;
  for (const replay::Task& task : graph.tasks) {
    const replay::Block& block = graph.blocks[static_cast<std::size_t>(task.block)];
    if (block.name != block_name) continue;
    for (const Work& work : block.work) {
      const auto& kernel = std::get<KernelWork>(work);
      if (kernel.name != "copy into bucket") counts[kernel.name + " " + kernel.kind] += kernel.count;
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("an operator that was stated reads back as the same operator", "[export]") {
  const std::vector<Operator> ops = {
      {"a", Matmul{.batch = 12, .m = 64, .n = 32, .k = 8, .transpose_b = true}, Precision::bf16, 1},
      {"b", Matmul{.m = 64, .n = 32, .k = 8, .accumulate_fp32 = true, .transpose_a = true, .padded = true},
       Precision::fp16, 1},
      // 224 pixels, 7 by 7, stride 2, padding 3: 112. A stride that does not fit: (28 - 1) / 2 + 1 = 14 by 1 × 1.
      {"c", Convolution{.n = 4, .c = 3, .h = 224, .w = 224, .k = 64, .r = 7, .s = 7, .p = 112, .q = 112, .stride = 2},
       Precision::fp32, 1},
      {"d",
       Convolution{.n = 4,
                   .c = 64,
                   .h = 28,
                   .w = 28,
                   .k = 128,
                   .r = 1,
                   .s = 1,
                   .p = 14,
                   .q = 14,
                   .stride = 2,
                   .pass = ConvolutionPass::weight_gradient},
       Precision::bf16, 1},
      {"e",
       Convolution{.n = 4,
                   .c = 64,
                   .h = 17,
                   .w = 17,
                   .k = 128,
                   .r = 1,
                   .s = 7,
                   .p = 17,
                   .q = 17,
                   .groups = 2,
                   .pass = ConvolutionPass::data_gradient},
       Precision::fp16, 1},
      {"f",
       Attention{.batch = 8,
                 .heads = 12,
                 .kv_heads = 4,
                 .query_length = 128,
                 .key_length = 256,
                 .head_dim = 64,
                 .causal = true,
                 .backward = true},
       Precision::bf16, 1}};
  for (const Operator& op : ops) {
    const KernelWork stated_op = stated(op);
    std::string text = "cluster: { node: h200-x1 }\nworkload: { operator: { kind: " + stated_op.kind;
    for (const auto& [key, value] : stated_op.fields) text.append(", ").append(key).append(": ").append(value);
    const Scenario back = scenario(text + " } }\n");
    INFO(text);
    const Operator& read = std::get<OperatorWorkload>(back.workload).op;
    CHECK((read.work == op.work));
    CHECK(read.precision == op.precision);
  }
}

TEST_CASE("attention in one kernel says nothing of the kernels that it does without", "[export]") {
  Attention attention{.heads = 12, .kv_heads = 12, .query_length = 128, .key_length = 128, .head_dim = 64};
  attention.dropout = attention.fused_softmax = true;
  CHECK(stated({"a", attention, Precision::bf16, 1}).fields.count("dropout") == 0);
  attention.kind = AttentionKind::standard;
  CHECK(stated({"a", attention, Precision::bf16, 4}).fields.at("dropout") == "true");
  attention.cached = true;
  CHECK_THROWS_AS(stated({"a", attention, Precision::bf16, 2}), NotReplayable);
  attention.cached = false;
  attention.packing = Packing{};
  CHECK_THROWS_AS(stated({"a", attention, Precision::bf16, 4}), NotReplayable);
}

TEST_CASE("the kernels of a pass take the time that the pass was priced at", "[export]") {
  // Large batches: the device, not the front end, decides, so that a block's time is that of its kernels.
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"model: resnet-50, global_batch: 64, micro_batch: 64, precision: bf16, optimizer: momentum", ""},
      {"model: resnet-50, global_batch: 64, micro_batch: 64, precision: bf16, optimizer: momentum",
       "execution: compiled"},
      {"model: { preset: bert-base, sequence: 512 }, global_batch: 64, micro_batch: 64, precision: bf16, "
       "attention: standard, recompute: selective",
       ""},
      {"model: gpt2, global_batch: 32, micro_batch: 16, precision: bf16, recompute: full", "execution: cuda_graph"}};
  for (const auto& [keys, plan] : rows) {
    INFO(keys << " " << plan);
    const replay::Graph graph = export_of(scenario(train(keys, plan)));
    CHECK(graph.replicated);
    CHECK(graph.capture == (plan == "execution: cuda_graph"));
    const replay::Block& forward = block_named(graph, "forward");
    CHECK(kernels_predicted(forward) == Approx(forward.predicted).epsilon(1e-9));
    double backward = 0.0, kernels = 0.0;
    for (const replay::Task& task : graph.tasks) {
      const replay::Block& block = graph.blocks[static_cast<std::size_t>(task.block)];
      if (block.name != "backward") continue;
      backward += block.predicted;
      kernels += kernels_predicted(block);
    }
    CHECK(kernels == Approx(backward).epsilon(1e-9));
  }
}

TEST_CASE("a step's graph has its host thread: dispatches as long as the model's, and what lies between steps",
          "[export]") {
  // LeNet's optimizer updates four kinds of tensors by four kernels of about 3 us each, which the host hands over at
  // 7 us each: 28 us.
  const Scenario lenet =
      scenario(train("model: lenet, global_batch: 256, micro_batch: 256, precision: fp32, optimizer: sgd"));
  const replay::Graph graph = export_of(lenet);
  const replay::Block& dispatch = block_named(graph, "optimizer dispatch");
  const auto& work = std::get<HostWork>(dispatch.work.at(0));
  CHECK(work.action == HostWork::Action::dispatch);
  CHECK(work.kernels == 4);
  CHECK(work.duration.value() == Approx(28e-6));
  // The forward pass is the device's: its launches, at 7 us each, take less than its kernels.
  const replay::Block& forward = block_named(graph, "forward dispatch");
  CHECK(forward.predicted == Approx(7e-6 * std::get<HostWork>(forward.work.at(0)).kernels));
  CHECK(forward.predicted < block_named(graph, "forward").predicted);
  // Every task that launches something waits for its dispatch, which stands before it on the host's thread.
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const replay::Block& block = graph.blocks[static_cast<std::size_t>(graph.tasks[i].block)];
    if (kernels_predicted(block) == 0.0) continue;
    REQUIRE(i > 0);
    CHECK(graph.tasks[i].after.back() == static_cast<int>(i) - 1);
    const auto thread = static_cast<std::size_t>(graph.tasks[i - 1].resource);
    CHECK(graph.resources[thread].kind == replay::Resource::Kind::framework);
  }
  // The step as predict has it: with a millisecond of the host's own between steps.
  CHECK(block_named(graph, "between steps").predicted == Approx(1e-3));
  CHECK(graph.predicted == Approx(estimate(lenet).time().value()));
  CHECK(graph.tasks.back().end == Approx(graph.predicted));
  CHECK(!replay::plan_issue(graph).operations.empty());
  // A step that is one CUDA graph has no dispatches that could be distinguished.
  const replay::Graph captured = export_of(
      scenario(train("model: lenet, global_batch: 256, micro_batch: 256, precision: fp32", "execution: cuda_graph")));
  CHECK(std::ranges::none_of(captured.resources, [](const auto& resource) { return resource.on_host(); }));
}

TEST_CASE("what is known by its traffic says its pattern, by which it is run with a kernel of its kind", "[export]") {
  const replay::Graph graph =
      export_of(scenario(train("model: gpt2, global_batch: 8, micro_batch: 8, precision: bf16, optimizer: adamw")));
  std::map<std::string, std::string> patterns;
  for (const replay::Block& block : graph.blocks) {
    for (const Work& work : block.work) {
      const auto* kernel = std::get_if<KernelWork>(&work);
      if (kernel != nullptr && kernel->kind == "traffic") patterns[kernel->name] = kernel->fields.at("pattern");
    }
  }
  CHECK(patterns.at("embedding") == "gather");
  CHECK(patterns.at("attention norm") == "reduction");
  CHECK(patterns.at("activation") == "elementwise");
  CHECK(patterns.at("optimizer") == "optimizer");
}

TEST_CASE("buckets share out a backward pass: no operator is lost, none is run twice", "[export]") {
  const std::string keys = "model: gpt2, global_batch: 16, micro_batch: 8, precision: bf16";
  const std::string node = "v100-workstation-x2";
  const auto plan = [](const std::string& more) { return "data: 2, sync: { bucket: 5 MB" + more + " }"; };
  const replay::Graph whole = export_of(scenario(train(keys, plan(", overlap: false"), node)));
  for (const char* bucketing : {"", ", bucketing: by_tensor"}) {
    const replay::Graph cut = export_of(scenario(train(keys, plan(bucketing), node)));
    CHECK(std::ranges::count_if(cut.blocks, [](const auto& b) { return b.name == "backward"; }) > 3);
    CHECK(launches(cut, "backward") == launches(whole, "backward"));
  }
}

TEST_CASE("replicas exchange each bucket once, by NCCL or by servers", "[export]") {
  const std::string keys = "model: resnet-18-d2l, global_batch: 256, micro_batch: 128, precision: fp32, optimizer: sgd";
  const auto collectives = [&](const std::string& sync) {
    const replay::Graph graph = export_of(scenario(train(keys, "data: 2, sync: " + sync, "v100-workstation-x2")));
    CHECK(graph.gpus == 2);
    Bytes bytes;
    std::string method;
    for (const replay::Task& task : graph.tasks) {
      for (const Work& work : graph.blocks[static_cast<std::size_t>(task.block)].work) {
        const auto* collective = std::get_if<CollectiveWork>(&work);
        if (collective == nullptr) continue;
        bytes += collective->size * static_cast<double>(collective->count);
        method = collective->method;
      }
    }
    // 11.2 million parameters of 4 bytes.
    CHECK(bytes.value() == Approx(44.7e6).epsilon(0.01));
    return method;
  };
  CHECK(collectives("{ algorithm: auto }") == "nccl");
  CHECK(collectives("{ algorithm: naive, overlap: false }") == "server_gpu");
  CHECK(collectives("{ algorithm: parameter_server, placement: cpu, servers: 1 }") == "server_cpu");
}

TEST_CASE("a list of tasks keeps its dependencies, but for those that the driver sees to", "[export]") {
  const replay::Graph graph = export_of(load_scenario("front-end-matmul-synchronised"));
  // Ten times: dispatch, launch, product; synchronise waits for the product.
  REQUIRE(graph.tasks.size() == 40);
  CHECK(graph.tasks[1].after == std::vector<int>{0});
  CHECK(graph.tasks[2].after == std::vector<int>{1});
  CHECK(graph.tasks[3].after == std::vector<int>{2});
  const auto& product = std::get<KernelWork>(graph.blocks[static_cast<std::size_t>(graph.tasks[2].block)].work[0]);
  CHECK(product.kind == "matmul");
  CHECK(product.fields.at("m") == "1000");
  // 2000 launches in a queue that holds 1024: the dispatches wait for nothing on the device.
  const replay::Graph full = export_of(scenario(
      "cluster: { node: h200-x1 }\nworkload: { tasks: [{ id: a, on: gpu0, enqueued_by: cpu, run: { matmul: { m: 64, n: "
      "64, k: 64 }, repeat: 2000 } }] }\n"));
  const auto stream = std::ranges::find_if(full.resources, [](const auto& r) { return r.name == "gpu0"; });
  const auto number = static_cast<int>(stream - full.resources.begin());
  for (const replay::Task& task : full.tasks) {
    const bool dispatch = full.resources[static_cast<std::size_t>(task.resource)].kind == replay::Resource::Kind::host;
    for (const int before : task.after) {
      if (dispatch) CHECK(full.tasks[static_cast<std::size_t>(before)].resource != number);
    }
  }
}

TEST_CASE("compiled calls run fewer kernels: what is elementwise joins all but the libraries'", "[export]") {
  const auto count = [](const std::string& mode, const std::string& model = "mlp-d2l") {
    const replay::Graph graph = export_of(scenario(
        "cluster: { node: h200-x1 }\nworkload: { tasks: [{ id: net, on: gpu0, run: { forward: { model: " + model +
        ", batch: 1, precision: fp32 } } }] }\nplan: { execution: " + mode + " }\n"));
    std::size_t kernels = 0;
    for (const replay::Task& task : graph.tasks) {
      for (const Work& work : graph.blocks[static_cast<std::size_t>(task.block)].work) {
        kernels += std::holds_alternative<KernelWork>(work) ? 1 : 0;
      }
    }
    return kernels;
  };
  CHECK(count("eager") == 5);     // three products, two activations
  CHECK(count("compiled") == 5);  // products are the library's, which activations do not join
  CHECK(count("cuda_graph") == 5);
  // 17 activations behind batch norms and sums, and eight sums behind batch norms.
  CHECK(count("eager", "resnet-18-d2l") - count("compiled", "resnet-18-d2l") == 25);
}

TEST_CASE("what cannot be replayed on one machine's GPUs is refused at its key", "[export]") {
  const std::string model = "model: gpt2, global_batch: 16, micro_batch: 8";
  const std::string pair = "v100-workstation-x2";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"cluster: { node: dgx-a100-80gb, nodes: 2 }\nworkload: { train: { model: gpt2, global_batch: 128, micro_batch: "
       "8 } }\n",
       "cluster.nodes"},
      {train(model, "tensor: 2, data: 1", pair), "plan.tensor"},
      {train(model, "pipeline: 2, data: 1", pair), "plan.pipeline"},
      {train(model, "data: 2, zero: 1", pair), "plan.zero"},
      {train(model, "offload: optimizer"), "plan.offload"},
      {train(model + ", loader: { workers: 4, per_sample: 1 ms }"), "workload.train.loader"},
      {train(model, "data: 2, sync: { algorithm: halving_doubling }", pair), "plan.sync.algorithm"},
      {train(model, "data: 2, sync: { compression: powersgd(4) }", pair), "plan.sync.compression"},
      {train(model, "data: 2, sync: { algorithm: parameter_server, consistency: asynchronous }", pair),
       "plan.sync.consistency"},
      {"cluster: { node: dgx-a100-80gb }\nworkload: { collective: { operation: all_gather, size: 1 MB } }\n",
       "workload.collective.operation"},
      {"cluster: { node: h200-x1 }\nworkload: { operator: { kind: memory_access, working_set: 1 MB } }\n", "workload"},
      {"cluster: { node: h200-x1 }\nworkload: { tasks: [{ id: a, on: cpu0, run: { sleep: 1 ms } }, { id: b, on: cpu, "
       "run: "
       "{ sleep: 1 ms } }] }\n",
       "workload.tasks.b"},
      {"cluster: { node: h200-x1 }\nworkload: { tasks: [{ id: a, on: disk, run: { copy: { from: disk, to: cpu, size: 1 "
       "MB } } }] }\n",
       "workload.tasks.a"}};
  for (const auto& [body, key] : rows) {
    INFO(body);
    const std::string said = test::complaint_of([&] { (void)export_of(scenario(body)); });
    CHECK_THAT(said, Catch::Contains(": " + key + ": ") && Catch::Contains("; "));
  }
  CHECK_NOTHROW(export_of(scenario(train(model))));
}

TEST_CASE("every scenario of the catalogue is exported, or refused at a key", "[export]") {
  int exports = 0;
  for (const char* name : {"execution-mlp", "execution-lenet", "front-end-item-once", "front-end-print-each-iteration",
                           "parallel-branches-one-front-end", "parallel-small-operators-front-end",
                           "overlap-compute-and-copy", "overlap-compute-then-copy", "accelerator-roofline",
                           "sync-ring-4", "traffic-powersgd", "hierarchy-l1", "loading-workers", "attention-packed"}) {
    INFO(name);
    try {
      const replay::Graph graph = export_of(load_scenario(name));
      CHECK(replay::parse_graph(to_text(graph), name) == graph);
      CHECK(!replay::plan_issue(graph).operations.empty());
      ++exports;
    } catch (const ScenarioError& error) {
      CHECK(!error.key().empty());
    }
  }
  CHECK(exports >= 9);
}
