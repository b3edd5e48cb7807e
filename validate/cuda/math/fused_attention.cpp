#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>
#include <utility>

#include "validate/cuda/core/per_device.hpp"
#include "validate/cuda/math/attention_graph.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::int64_t most_workspace = std::int64_t{4} << 30;

/// One way, planned: cuDNN compiles a kernel for each plan, which takes longer than measuring it. The way back needs
/// the way there of the same shape, and the layers of a network are of one shape.
struct PlannedWay {
  CudnnGraph graph;
  AttentionIds ids;
  std::vector<GraphPlan> plans;
};
std::shared_ptr<PlannedWay> planned(AttentionShape shape, bool backward) {
  // Never destroyed: at the end of the process the driver may be gone before it.
  static auto& of_devices = *new PerDevice<std::map<AttentionShape, std::shared_ptr<PlannedWay>>>;
  shape.backward = backward;
  std::shared_ptr<PlannedWay>& plan = of_devices.here()[shape];
  if (plan) return plan;
  const Format format = format_of(shape.precision);
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
    const std::size_t set = static_cast<std::size_t>(turn % operand_sets());
    if (!shape_.backward) return run_plan(forward_->plans.front(), packs_[set], stream);
    // Before 9.6 the kernel adds to sums that the caller clears (NVIDIA's cudnn-frontend does so too).
    if (cudnnGetVersion() < 90600) GPU_CHECK(cudaMemsetAsync(operands(turn).back(), 0, dq_sums_bytes_, stream));
    run_plan(back_->plans.front(), back_packs_[set], stream);
  }
  [[nodiscard]] std::map<std::string, std::string> parameters() const override {
    const GraphPlan& plan = (shape_.backward ? back_ : forward_)->plans.front();
    return {{"engine", "cudnn " + std::to_string(plan.engine)}, {"workspace_bytes", std::to_string(plan.workspace)}};
  }

 private:
  void take_operands(const RunnerSetting& setting);
  [[nodiscard]] std::map<std::int64_t, void*> pointers(const AttentionIds& ids, const OperandSet& set);

  AttentionShape shape_;
  Format format_;
  std::size_t dq_sums_bytes_ = 0;                 ///< of the last operand
  float scale_, one_ = 1.0F, lowest_ = -FLT_MAX;  ///< read from here at each launch
  std::shared_ptr<PlannedWay> forward_, back_;
  std::vector<CudnnDescriptor> packs_, back_packs_;
};

FusedAttention::FusedAttention(const AttentionShape& shape, const RunnerSetting& setting)
    : shape_(shape),
      format_(format_of(shape.precision)),
      scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))) {
  if (size_of(format_) != 2) throw GpuError(Fault::unsupported, "cuDNN's fused attention runs in fp16 and bf16");
  if (compute_capability() < 80) throw GpuError(Fault::unsupported, "cuDNN's fused attention begins with Ampere");
  if (shape.causal && shape.queries != shape.keys) {
    throw GpuError(Fault::unsupported, "fused causal attention is measured for as many keys as queries");
  }
  forward_ = planned(shape, false);
  if (shape.backward) back_ = planned(shape, true);
  take_operands(setting);
}

/// Of the operands in their order, and of the numbers.
std::map<std::int64_t, void*> FusedAttention::pointers(const AttentionIds& ids, const OperandSet& set) {
  const std::int64_t in_order[] = {ids.q,  ids.k,  ids.v,  ids.out,      ids.statistics, ids.d_out,
                                   ids.dq, ids.dk, ids.dv, ids.row_sums, ids.dq_sums};
  std::map<std::int64_t, void*> all = {{ids.scale, &scale_}, {ids.one, &one_}, {ids.lowest, &lowest_}};
  for (std::size_t i = 0; i < set.size(); ++i) all[in_order[i]] = set[i];
  all.erase(0);  // what the graph does not have
  return all;
}

void FusedAttention::take_operands(const RunnerSetting& setting) {
  const std::int64_t needed =
      std::max(forward_->plans.front().workspace, shape_.backward ? back_->plans.front().workspace : 0);
  void* const workspace = setting.memory.workspace(static_cast<std::size_t>(std::max<std::int64_t>(needed, 16)));
  const auto rows = static_cast<std::size_t>(shape_.batch * shape_.heads * shape_.queries) * sizeof(float);
  const std::size_t queries = rows / sizeof(float) * static_cast<std::size_t>(shape_.head_dim) * size_of(format_);
  const auto keys =
      static_cast<std::size_t>(shape_.batch * shape_.kv_heads * shape_.keys * shape_.head_dim) * size_of(format_);
  dq_sums_bytes_ = 2 * queries;
  const Use forward = shape_.backward ? Use::kept : Use::written;  // the way back rests on what the way there found
  std::vector<Operand> operands = {{queries, format_, Use::read},
                                   {keys, format_, Use::read},
                                   {keys, format_, Use::read},
                                   {queries, format_, forward},
                                   {rows, Format::fp32, forward}};
  if (shape_.backward) {
    operands.push_back({queries, format_, Use::read});
    for (const std::size_t size : {queries, keys, keys}) operands.push_back({size, format_, Use::written});
    for (const std::size_t size : {rows, dq_sums_bytes_}) operands.push_back({size, Format::fp32, Use::written});
  }
  take(setting, operands);
  for (int i = 0; i < operand_sets(); ++i) {
    packs_.push_back(variant_pack(pointers(forward_->ids, this->operands(i)), workspace));
    if (shape_.backward) back_packs_.push_back(variant_pack(pointers(back_->ids, this->operands(i)), workspace));
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

}  // namespace foretrain::gpu
#endif
