#include "tests/fit/synthetic.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <random>

#include "validate/fit/describe.hpp"
#include "validate/fit/points.hpp"

namespace foretrain::synthetic {

namespace {

using Keys = std::map<std::string, std::string>;

Keys op(const std::string& kind, Keys fields) {
  Keys keys = {{"workload.operator.kind", kind}};
  for (auto& [key, value] : fields) keys["workload.operator." + key] = value;
  return keys;
}

void add(std::vector<RawPoint>& points, const std::string& suite, Keys scenario) {
  std::string name;
  for (const auto& [key, value] : scenario) name += (name.empty() ? "" : " ") + key.substr(18) + "=" + value;
  points.push_back(
      {record(suite, name, std::move(scenario)), {suite + ".jsonl", static_cast<int>(points.size()) + 1, 1}});
}

void add_gemm(std::vector<RawPoint>& points) {
  for (const char* precision : {"bf16", "fp32"}) {
    for (const char* m : {"16", "128", "512", "1024", "2048", "4096", "8192"}) {
      for (const char* n : {"256", "1024", "4096", "12288"}) {
        for (const char* k : {"256", "1024", "4096"}) {
          add(points, "gemm", op("matmul", {{"m", m}, {"n", n}, {"k", k}, {"precision", precision}}));
        }
      }
    }
  }
}

void add_streaming(std::vector<RawPoint>& points) {
  for (const char* kind : {"elementwise", "reduction"}) {
    for (int power = 10; power <= 30; ++power) {
      add(points, "streaming", op(kind, {{"elements", fmt::format("{}", 1LL << power)}, {"precision", "fp32"}}));
    }
  }
}

void add_convolution(std::vector<RawPoint>& points) {
  for (const char* batch : {"16", "64", "256"}) {
    for (const char* channels : {"64", "128", "256", "512"}) {
      for (const char* side : {"14", "28", "56"}) {
        for (const bool wide : {false, true}) {  // filters of one tap wait for memory, those of nine multiply
          add(points, "convolution",
              op("convolution", {{"batch", batch},
                                 {"channels", channels},
                                 {"height", side},
                                 {"width", side},
                                 {"filters", channels},
                                 {"kernel", wide ? "3" : "1"},
                                 {"pad", wide ? "1" : "0"},
                                 {"precision", "fp16"}}));
        }
      }
    }
  }
}

void add_attention(std::vector<RawPoint>& points) {
  for (const char* sequence : {"512", "1024", "2048", "4096", "8192"}) {
    for (const char* batch : {"1", "4", "16"}) {
      for (const char* head : {"64", "128"}) {
        add(points, "attention",
            op("attention", {{"batch", batch},
                             {"heads", "16"},
                             {"sequence", sequence},
                             {"head_dim", head},
                             {"attention", "flash"},
                             {"precision", "bf16"}}));
      }
    }
  }
}

void add_memory(std::vector<RawPoint>& points) {
  for (int power = 12; power <= 30; ++power) {
    const std::string size = fmt::format("{} B", 1LL << power);
    for (const char* pattern : {"sequential", "dependent"}) {
      add(points, "memory", op("memory_access", {{"working_set", size}, {"pattern", pattern}, {"reads", "1000000"}}));
    }
  }
}

void add_collectives(std::vector<RawPoint>& points, const Design& design) {
  for (const int ranks : {2, design.gpus, design.gpus * design.nodes}) {
    const int nodes = ranks > design.gpus ? design.nodes : 1;
    for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}) {
      for (int power = 10; power <= 30; power += 2) {
        add(points, "collective",
            {{"workload.collective.operation", operation},
             {"workload.collective.size", fmt::format("{} B", 1LL << power)},
             {"workload.collective.ranks", fmt::format("{}", ranks)}});
        points.back().record.parameters = {{"nodes", fmt::format("{}", nodes)},
                                           {"gpus_per_node", fmt::format("{}", ranks / nodes)}};
      }
    }
  }
}

/// Steps from those that wait for their host alone, of few kernels and of many, to those that never do.
void add_steps(std::vector<RawPoint>& points) {
  const std::pair<std::string, std::vector<int>> models[] = {{"lenet", {1, 16, 4096}},
                                                             {"resnet-18-d2l", {1, 8, 256}},
                                                             {"{ preset: bert-base, sequence: 128 }", {1, 2, 32, 128}},
                                                             {"gpt2", {1, 4, 16}}};
  for (const char* execution : {"eager", "compiled"}) {
    for (const auto& [model, batches] : models) {
      for (const int batch : batches) {
        const std::string size = std::to_string(batch);
        const bool images = model == "lenet" || model == "resnet-18-d2l";
        points.push_back({record("steps", model + " " + size + " " + execution,
                                 {{"cluster.gpus_per_node", "1"},
                                  {"workload.train.model", model},
                                  {"workload.train.global_batch", size},
                                  {"workload.train.micro_batch", size},
                                  {"workload.train.precision", images ? "fp32" : "bf16"},
                                  {"workload.train.optimizer", images ? "momentum" : "adamw"},
                                  {"plan.execution", execution}}),
                          {"steps.jsonl", static_cast<int>(points.size()) + 1, 1}});
      }
    }
  }
}

}  // namespace

Record record(const std::string& suite, const std::string& name, std::map<std::string, std::string> scenario) {
  Record result;
  result.suite = suite;
  result.name = name;
  result.scenario = std::move(scenario);
  result.unit = "s";
  return result;
}

std::string machine_json(int gpus, int cards) {
  std::string list, links, network;
  for (int i = 0; i < gpus; ++i) {
    list += fmt::format(
        R"({}{{"index":{},"name":"Synthetic 5000","bus_id":"0000:0{}:00.0","compute_capability":"8.9","sms":100,)"
        R"("sm_clock_hz":2000000000,"memory_clock_hz":8000000000,"memory_bytes":34359738368,"memory_bus_bits":256,)"
        R"("l2_bytes":50331648,"shared_memory_per_sm_bytes":102400,"copy_engines":2,"ecc":false,"mig":null,)"
        R"("power_limit_w":350,"pcie_generation":4,"pcie_width":16,"nvlinks":0}})",
        i > 0 ? "," : "", i, i);
  }
  for (int i = 0; i < gpus; ++i) {
    for (int j = 0; j < gpus; ++j) {
      if (i == j) continue;
      links += fmt::format(R"({}{{"from":{},"to":{},"nvlinks":0,"peer_access":true}})", links.empty() ? "" : ",", i, j);
    }
  }
  for (int i = 0; i < cards; ++i) {
    network += fmt::format(R"({}{{"name":"mlx5_{}","bits_per_second":10000000000}})", i > 0 ? "," : "", i);
  }
  return fmt::format(R"({{"date":"2026-01-01T00:00:00Z","kernel":"6.1","processor":"Synthetic CPU","driver":"000.00",)"
                     R"("versions":{{"cuda_runtime":"12.8","nccl":null}},"gpu_count":{},"gpus":[{}],"links":[{}],)"
                     R"("network_cards":[{}],"warnings":[]}})",
                     gpus, list, links, network);
}

RawMeasurements measurements(const Calibration& truth, const Design& design) {
  RawMeasurements raw;
  const int cards = design.nodes > 1 ? 4 : 0;
  raw.machine = read_machine_text(machine_json(design.gpus, cards), "machine.json");
  for (const std::string& suite : design.suites) {
    if (suite == "gemm") add_gemm(raw.points);
    if (suite == "streaming") add_streaming(raw.points);
    if (suite == "convolution") add_convolution(raw.points);
    if (suite == "attention") add_attention(raw.points);
    if (suite == "memory") add_memory(raw.points);
    if (suite == "collective") add_collectives(raw.points, design);
    if (suite == "steps") add_steps(raw.points);
  }
  for (RawPoint& point : raw.points) point.record.values = {1.0};
  const std::string node = node_document(raw.machine, {});
  const PredictedPoints predicted = predicted_points(raw, node);
  if (!predicted.not_understood.empty()) throw std::runtime_error(predicted.not_understood.front());
  std::mt19937_64 random(design.seed);
  std::normal_distribution<double> normal(0.0, 1.0);
  for (std::size_t i = 0; i < predicted.points.size(); ++i) {
    Record& made = raw.points[i].record;
    const double noise = made.suite == design.bad_suite ? 1.0 : design.noise;
    double time = predicted_time(predicted.points[i], truth).value() * std::exp(noise * normal(random));
    if (design.outlier_every > 0 && static_cast<int>(i) % design.outlier_every == 1) time *= 3.0;
    made.values = {time, time * 1.001, time * 0.999};
    if (design.hold_out && i % 4 == 2) made.parameters["held_out"] = "true";
    ++raw.suites[made.suite].measured;
  }
  return raw;
}

void write_folder(const RawMeasurements& raw, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "machine.json") << machine_json(static_cast<int>(raw.machine.gpus.size()),
                                                         raw.machine.network_cards);
  for (const RawPoint& point : raw.points) {
    std::ofstream(folder / (point.record.suite + ".jsonl"), std::ios::app) << to_json_line(point.record);
  }
}

}  // namespace foretrain::synthetic
