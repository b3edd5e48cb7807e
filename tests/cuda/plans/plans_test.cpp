// What cuDNN plans for GPUs that are described to it: which operators have an engine on which architecture. Figures of
// the devices are those of their datasheets and of the CUDA programming guide; nothing runs, and nothing is timed.
#include "tests/catch.hpp"
#include "validate/cuda/math/attention_graph.hpp"
#include "validate/cuda/math/convolution_graph.hpp"

using namespace foretrain;
using namespace foretrain::gpu;

#if CUDNN_VERSION >= 91100

namespace {

struct Device {
  const char* name;
  int capability, sms, shared_kib, threads_per_sm, l2_mb;
  double memory;
};
constexpr Device devices[] = {{"T4", 75, 40, 64, 1024, 4, 16e9},
                              {"A100", 80, 108, 163, 2048, 40, 80e9},
                              {"H100", 90, 132, 227, 2048, 50, 80e9},
                              {"B200", 100, 148, 227, 2048, 126, 180e9}};

/// As cuDNN writes the properties of a device itself.
std::string json_of(const Device& d) {
  const auto number = [](const char* key, long long value) {
    return "\"" + std::string(key) + "\":" + std::to_string(value) + ",";
  };
  return "{" + number("cudnnVersion", CUDNN_VERSION) + number("schemaVersion", 1) +
         "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]," + number("regsPerBlock", 65536) +
         number("multiProcessorCount", d.sms) + number("warpSize", 32) + number("maxSharedMemoryPerBlock", 49152) +
         number("maxSharedMemoryPerBlockOptin", d.shared_kib * 1024) +
         number("reservedSharedMemoryPerBlock", d.capability >= 80 ? 1024 : 0) + number("maxRegistersPerSM", 65536) +
         number("maxCtasPerSM", d.threads_per_sm == 2048 ? 32 : 16) + number("maxThreadsPerBlock", 1024) +
         number("maxThreadsPerSM", d.threads_per_sm) + number("pciDeviceId", 0) + number("isTccDriver", 0) +
         number("supportCoopLaunch", 1) + number("totalGlobalMem", static_cast<long long>(d.memory)) +
         number("smClockRateKHz", 1500000) + number("memClockRateKHz", 1500000) +
         number("l2CacheSize", d.l2_mb * 1000000LL) + number("cudaDeviceId", 0) +
         number("deviceVer", 10LL * d.capability) + number("driverVer", 13000) + "\"deviceName\":\"" + d.name + "\"}";
}

/// How many plans there are; 0 where cuDNN has none.
std::size_t plans_of(CudnnGraph& graph, const Device& device, const EngineFilter& filter = {}) {
  try {
    return graph.plans(1, std::int64_t{4} << 30, filter).size();
  } catch (const GpuError& error) {
    INFO(device.name << ": " << error.what());
    CHECK(error.fault() == Fault::unsupported);
    return 0;
  }
}

std::size_t attention_plans(const Device& device, AttentionShape shape, Format format) {
  CudnnGraph graph;
  graph.describe_device(json_of(device));
  shape.backward ? attention_backward_graph(graph, shape, format) : attention_forward_graph(graph, shape, format);
  return plans_of(graph, device);
}

}  // namespace

TEST_CASE("cuDNN has fused attention from Ampere on, both ways", "[gpu]") {
  AttentionShape shape{.batch = 8, .heads = 12, .kv_heads = 12, .queries = 1024, .keys = 1024, .head_dim = 128};
  for (const Device& device : devices) {
    for (const bool causal : {false, true}) {
      for (const bool backward : {false, true}) {
        INFO(device.name << (causal ? ", causal" : "") << (backward ? ", backward" : ""));
        shape.causal = causal;
        shape.backward = backward;
        CHECK((attention_plans(device, shape, Format::fp16) > 0) == (device.capability >= 80));
      }
    }
  }
}

TEST_CASE("cuDNN has convolutions on every GPU, in half precision and in fp32 without tensor cores", "[gpu]") {
  const OperatorSpec layer{"convolution",
                           {{"batch", "64"},
                            {"channels", "128"},
                            {"height", "28"},
                            {"width", "28"},
                            {"filters", "128"},
                            {"kernel", "3"},
                            {"pad", "1"}}};
  for (const Device& device : devices) {
    for (const char* precision : {"fp16", "fp32"}) {
      for (const char* pass : {"forward", "data_gradient", "weight_gradient"}) {
        INFO(device.name << ", " << precision << ", " << pass);
        OperatorSpec spec = layer;
        spec.fields["precision"] = precision;
        spec.fields["pass"] = pass;
        const ConvolutionShape shape = convolution_shape(spec);
        CudnnGraph graph;
        graph.describe_device(json_of(device));
        convolution_graph(graph, shape, precision == std::string("fp16") ? Format::fp16 : Format::fp32);
        CHECK(plans_of(graph, device, engine_filter(shape)) > 0);
      }
    }
  }
}

#endif
