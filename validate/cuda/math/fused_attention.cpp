#ifdef FORETRAIN_HAS_CUDNN
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

#include "validate/cuda/math/attention_graph.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::int64_t most_workspace = std::int64_t{4} << 30;

using Way = PlannedGraph<AttentionIds>;

std::shared_ptr<Way> way_of(const AttentionShape& shape, bool backward) {
  return planned<AttentionIds>(shape.name + (backward ? " back" : " there"), [&](Way& fresh) {
    const Format format = format_of(shape.precision);
    fresh.tensors = backward ? attention_backward_graph(fresh.graph, shape, format)
                             : attention_forward_graph(fresh.graph, shape, format);
    fresh.plans = fresh.graph.plans(1, most_workspace, {});
  });
}

class FusedAttention final : public OperatorRunner {
 public:
  FusedAttention(const AttentionShape& shape, const RunnerSetting& setting)
      : backward_(shape.backward), scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))) {
    const Format format = format_of(shape.precision);
    if (size_of(format) != 2) throw GpuError(Fault::unsupported, "cuDNN's fused attention runs in fp16 and bf16");
    if (compute_capability() < 80) throw GpuError(Fault::unsupported, "cuDNN's fused attention begins with Ampere");
    if (shape.causal && shape.queries != shape.keys) {
      throw GpuError(Fault::unsupported, "fused causal attention is measured for as many keys as queries");
    }
    forward_ = way_of(shape, false);  // the way back needs its results and statistics
    way_ = backward_ ? way_of(shape, true) : forward_;
    take(setting, operands_of(shape, format));
    const std::int64_t needed = std::max(forward_->plans.front().workspace, way_->plans.front().workspace);
    void* const workspace = setting.memory.workspace(static_cast<std::size_t>(needed));
    for (int i = 0; i < operand_sets(); ++i) packs_.push_back(variant_pack(pointers(way_->tensors, i), workspace));
    if (!backward_) return;
    GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
    const Stream stream;
    for (int i = 0; i < operand_sets(); ++i) {
      const CudnnDescriptor pack = variant_pack(pointers(forward_->tensors, i), workspace);
      run_plan(forward_->plans.front(), pack, stream.get());
      stream.synchronize();
    }
  }

  void launch(cudaStream_t stream, int turn) override {
    // Before 9.6 the kernel adds to sums that the caller clears (NVIDIA's cudnn-frontend does so too).
    if (backward_ && cudnnGetVersion() < 90600) {
      GPU_CHECK(cudaMemsetAsync(operands(turn).back(), 0, dq_sums_bytes_, stream));
    }
    run_plan(way_->plans.front(), packs_[static_cast<std::size_t>(turn) % packs_.size()], stream);
  }
  [[nodiscard]] std::map<std::string, std::string> parameters() const override {
    const GraphPlan& plan = way_->plans.front();
    return {{"engine", "cudnn " + std::to_string(plan.engine)}, {"workspace_bytes", std::to_string(plan.workspace)}};
  }

 private:
  /// In the order of pointers().
  std::vector<Operand> operands_of(const AttentionShape& shape, Format format) {
    const auto rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.queries) * sizeof(float);
    const std::size_t queries = rows / sizeof(float) * static_cast<std::size_t>(shape.head_dim) * size_of(format);
    const auto keys =
        static_cast<std::size_t>(shape.batch * shape.kv_heads * shape.keys * shape.head_dim) * size_of(format);
    const Use result = backward_ ? Use::kept : Use::written;  // the way back depends on what the way there found
    std::vector<Operand> all = {{queries, format, Use::read},
                                {keys, format, Use::read},
                                {keys, format, Use::read},
                                {queries, format, result},
                                {rows, Format::fp32, result}};
    if (!backward_) return all;
    dq_sums_bytes_ = 2 * queries;
    all.push_back({queries, format, Use::read});
    for (const std::size_t size : {queries, keys, keys}) all.push_back({size, format, Use::written});
    for (const std::size_t size : {rows, dq_sums_bytes_}) all.push_back({size, Format::fp32, Use::written});
    return all;
  }

  /// Pointers of a set of operands and of the numbers.
  [[nodiscard]] std::map<std::int64_t, void*> pointers(const AttentionIds& ids, int turn) {
    const std::int64_t in_order[] = {ids.q,  ids.k,  ids.v,  ids.out,      ids.statistics, ids.d_out,
                                     ids.dq, ids.dk, ids.dv, ids.row_sums, ids.dq_sums};
    std::map<std::int64_t, void*> all = {{ids.scale, &scale_}, {ids.one, &one_}, {ids.lowest, &lowest_}};
    const OperandSet& set = operands(turn);
    for (std::size_t i = 0; i < set.size(); ++i) all[in_order[i]] = set[i];
    all.erase(0);  // not in the graph
    return all;
  }

  bool backward_;
  std::size_t dq_sums_bytes_ = 0;                 ///< of the last operand
  float scale_, one_ = 1.0F, lowest_ = -FLT_MAX;  ///< read from here at each launch
  std::shared_ptr<Way> forward_, way_;            ///< way_: the one that is launched
  std::vector<CudnnDescriptor> packs_;
};

}  // namespace

std::unique_ptr<OperatorRunner> make_fused_attention(const AttentionShape& shape, const RunnerSetting& setting) {
  return std::make_unique<FusedAttention>(shape, setting);
}

}  // namespace foretrain::gpu
#endif
