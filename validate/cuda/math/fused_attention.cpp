#include "validate/cuda/math/attention_shape.hpp"

#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>
#include <utility>

#include "validate/cuda/core/per_device.hpp"
#include "validate/cuda/math/attention_graph.hpp"
#endif

namespace foretrain::gpu {

#ifdef FORETRAIN_HAS_CUDNN

namespace {

constexpr std::int64_t most_workspace = std::int64_t{4} << 30;

/// One way, planned: cuDNN compiles a kernel for each plan, which takes longer than measuring it. The way back needs
/// the way there of the same shape, and the layers of a network are of one shape.
struct PlannedWay {
  CudnnGraph graph;
  AttentionIds ids;
  std::vector<GraphPlan> plans;
};
std::shared_ptr<PlannedWay> planned(const AttentionShape& shape, Format format, bool backward) {
  // Never destroyed: at the end of the process the driver may be gone before it.
  static auto& of_devices = *new PerDevice<std::map<std::string, std::shared_ptr<PlannedWay>>>;
  auto& made = of_devices.here();
  std::string key = shape.precision;
  for (const std::int64_t size :
       {shape.batch, shape.heads, shape.kv_heads, shape.queries, shape.keys, shape.head_dim}) {
    key += " " + std::to_string(size);
  }
  std::shared_ptr<PlannedWay>& plan = made[key + (shape.causal ? " causal" : "") + (backward ? " back" : "")];
  if (plan) return plan;
  auto fresh = std::make_shared<PlannedWay>();
  fresh->ids = backward ? attention_backward_graph(fresh->graph, shape, format)
                        : attention_forward_graph(fresh->graph, shape, format);
  fresh->plans = fresh->graph.plans(1, most_workspace, {});
  return plan = std::move(fresh);
}

class FusedAttention final : public OperatorRunner {
 public:
  FusedAttention(const AttentionShape& shape, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override {
    const std::size_t set = static_cast<std::size_t>(turn) % sets_.size();
    if (!shape_.backward) return run_plan(forward_->plans.front(), packs_[set], stream);
    // Before 9.6 the kernel adds to sums that the caller clears (NVIDIA's cudnn-frontend does so too).
    if (cudnnGetVersion() < 90600) GPU_CHECK(cudaMemsetAsync(sets_[set].dq_sums, 0, 2 * of_queries_, stream));
    run_plan(back_->plans.front(), back_packs_[set], stream);
  }
  [[nodiscard]] std::size_t bytes() const override {
    return (shape_.backward ? 4 : 2) * (of_queries_ + of_keys_) + of_rows_;
  }
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] std::map<std::string, std::string> parameters() const override {
    const GraphPlan& plan = (shape_.backward ? back_ : forward_)->plans.front();
    return {{"engine", "cudnn " + std::to_string(plan.engine)}, {"workspace_bytes", std::to_string(plan.workspace)}};
  }

 private:
  struct Tensors {
    void *q, *k, *v, *out, *statistics;
    void *d_out, *dq, *dk, *dv, *row_sums, *dq_sums;
  };

  void take_operands(const RunnerSetting& setting);
  [[nodiscard]] std::map<std::int64_t, void*> pointers(const AttentionIds& ids, const Tensors& t);

  AttentionShape shape_;
  Format format_;
  std::size_t of_queries_, of_keys_, of_rows_;    ///< bytes
  float scale_, one_ = 1.0F, lowest_ = -FLT_MAX;  ///< read from here at each launch
  std::shared_ptr<PlannedWay> forward_, back_;
  std::vector<Tensors> sets_;
  std::vector<CudnnDescriptor> packs_, back_packs_;
};

FusedAttention::FusedAttention(const AttentionShape& shape, const RunnerSetting& setting)
    : shape_(shape),
      format_(format_of(shape.precision)),
      of_rows_(static_cast<std::size_t>(shape.batch * shape.heads * shape.queries) * sizeof(float)),
      scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))) {
  if (size_of(format_) != 2) throw GpuError(Fault::unsupported, "cuDNN's fused attention runs in fp16 and bf16");
  if (compute_capability() < 80) throw GpuError(Fault::unsupported, "cuDNN's fused attention begins with Ampere");
  if (shape.causal && shape.queries != shape.keys) {
    throw GpuError(Fault::unsupported, "fused causal attention is measured for as many keys as queries");
  }
  of_queries_ = static_cast<std::size_t>(shape.head_dim) * of_rows_ / sizeof(float) * size_of(format_);
  of_keys_ = static_cast<std::size_t>(shape.batch * shape.kv_heads * shape.keys * shape.head_dim) * size_of(format_);
  forward_ = planned(shape, format_, false);
  if (shape.backward) back_ = planned(shape, format_, true);
  take_operands(setting);
}

std::map<std::int64_t, void*> FusedAttention::pointers(const AttentionIds& ids, const Tensors& t) {
  std::map<std::int64_t, void*> all = {{ids.q, t.q},
                                       {ids.k, t.k},
                                       {ids.v, t.v},
                                       {ids.out, t.out},
                                       {ids.statistics, t.statistics},
                                       {ids.d_out, t.d_out},
                                       {ids.dq, t.dq},
                                       {ids.dk, t.dk},
                                       {ids.dv, t.dv},
                                       {ids.row_sums, t.row_sums},
                                       {ids.dq_sums, t.dq_sums},
                                       {ids.scale, &scale_},
                                       {ids.one, &one_},
                                       {ids.lowest, &lowest_}};
  all.erase(0);  // what the graph does not have
  return all;
}

void FusedAttention::take_operands(const RunnerSetting& setting) {
  setting.memory.begin_operator();
  const std::int64_t needed =
      std::max(forward_->plans.front().workspace, shape_.backward ? back_->plans.front().workspace : 0);
  void* const workspace = setting.memory.workspace(static_cast<std::size_t>(std::max<std::int64_t>(needed, 16)));
  const auto take = [&](std::size_t size, Use use) { return setting.memory.take(size, format_, use); };
  const auto take_fp32 = [&](std::size_t size, Use use) { return setting.memory.take(size, Format::fp32, use); };
  const Use forward = shape_.backward ? Use::kept : Use::written;  // the way back rests on what the way there found
  const int sets = gpu::operand_sets(setting.rotation, bytes());
  for (int i = 0; i < sets; ++i) {
    Tensors t{};
    t.q = take(of_queries_, Use::read);
    t.k = take(of_keys_, Use::read);
    t.v = take(of_keys_, Use::read);
    t.out = take(of_queries_, forward);
    t.statistics = take_fp32(of_rows_, forward);
    if (shape_.backward) {
      t.d_out = take(of_queries_, Use::read);
      t.dq = take(of_queries_, Use::written);
      t.dk = take(of_keys_, Use::written);
      t.dv = take(of_keys_, Use::written);
      t.row_sums = take_fp32(of_rows_, Use::written);
      t.dq_sums = take_fp32(2 * of_queries_, Use::written);
    }
    sets_.push_back(t);
    packs_.push_back(variant_pack(pointers(forward_->ids, t), workspace));
    if (shape_.backward) back_packs_.push_back(variant_pack(pointers(back_->ids, t), workspace));
  }
  if (!shape_.backward) return;
  GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
  const Stream stream;
  // The way back needs results and statistics of the way there.
  for (const CudnnDescriptor& pack : packs_) run_plan(forward_->plans.front(), pack, stream.get());
  stream.synchronize();
}

}  // namespace

std::unique_ptr<OperatorRunner> make_fused_attention(const AttentionShape& shape, const RunnerSetting& setting) {
  return std::make_unique<FusedAttention>(shape, setting);
}

#else

std::unique_ptr<OperatorRunner> make_fused_attention(const AttentionShape&, const RunnerSetting&) {
  throw GpuError(Fault::unsupported, "this build is without cuDNN: install it and build again (CUDNN_HOME)");
}

#endif

}  // namespace foretrain::gpu
