#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/kernels.hpp"

namespace foretrain {
namespace {

// Output of the kernel before is read from the L2 as far as it is there still: all of it where it fits. Of more, the
// L2 lets go of the oldest, which is read first, and each line that is read anew takes the place of one that would be
// read later. Nothing is left from twice the L2's size on.
Bytes kept(Bytes read, Bytes l2) { return std::clamp(2.0 * l2 - read, Bytes(0.0), read); }

// L2 size for lines that a multiprocessor brought there itself. In chips of compute capability 8.0 and 9.0 to
// 10.3 that is two partitions, each with copies for the multiprocessors beside it (A100 and H100 whitepapers).
Bytes l2_of_rows(const Gpu& gpu) {
  const double capability = gpu.compute_capability;
  const bool divided = capability == 8.0 || (capability >= 9.0 && capability < 12.0);
  return divided ? 0.5 * gpu.l2_cache : gpu.l2_cache;
}

// The bytes of an operator's reads that are in the L2. A repeated operator finds the remainder of all its traffic.
Bytes kept(const Streaming& work, const Gpu& gpu) {
  if (!work.repeated || !(work.read > Bytes(0.0))) return kept(work.read, gpu.l2_cache);
  const Bytes all = work.read + work.written;
  return kept(all, l2_of_rows(gpu)) * (work.read / all);
}

double relative_efficiency(StreamingKind kind, const StreamingConstants& constants) {
  switch (kind) {
    case StreamingKind::gather:
      return constants.gather_efficiency;
    case StreamingKind::optimizer:
      return constants.optimizer_efficiency;
    default:
      return 1.0;
  }
}

// Threads that a multiprocessor holds (CUDA C++ Programming Guide, technical specifications for each compute
// capability).
double threads_per_sm(const Gpu& gpu) {
  const double capability = gpu.compute_capability;
  if (capability == 7.5) return 1024.0;
  return capability > 8.0 && (capability < 9.0 || capability >= 12.0) ? 1536.0 : 2048.0;
}

// Of what a row's later passes read, the share that is gone from the L2, where rows under way lie with what they wrote:
// a block of threads for each. Blocks drift apart: some find nothing once that fills the L2, all at four times as much
// (PyTorch 2.1's layer norm and softmax on V100 and A100, sitar-lab/NeuSight, 48 rows).
Bytes missed(const Streaming::Rows& rows, const Gpu& gpu) {
  if (!(rows.again > Bytes(0.0)) || !(gpu.l2_cache > Bytes(0.0))) return rows.again;
  const double blocks = gpu.sms * std::max(1.0, std::floor(threads_per_sm(gpu) / rows.threads));
  const Bytes under_way = rows.row * std::min(rows.count, blocks);
  return rows.again * std::clamp((under_way / l2_of_rows(gpu) - 1.0) / 3.0, 0.0, 1.0);
}

// Each of a multiprocessor's four schedulers issues an instruction a clock.
Seconds issued(const Streaming::Rows& rows, const Gpu& gpu) {
  if (!(rows.instructions > 0.0)) return Seconds(0.0);
  return Seconds(std::ceil(rows.count / gpu.sms) * rows.instructions / (4.0 * gpu.boost_clock.value()));
}

// Little's law: each number waits for the memory's latency, and so many are on their way.
Seconds one_at_a_time(double numbers, const Gpu& gpu, const StreamingConstants& constants) {
  return gpu.memory_latency * (numbers / (constants.singles_in_flight * gpu.sms));
}

}  // namespace

double thread_blocks(const Streaming& work) { return std::ceil(std::max(work.read, work.written) / bytes_of_a_block); }

// Traffic over achieved bandwidth plus a fixed time per kernel. What the kernel before left in the L2 is read from
// there, except by an optimizer, whose operands were last touched long ago.
KernelTime kernel_time(const Streaming& work, Precision /*precision*/, int kernels, const Gpu& gpu,
                       const Calibration& calibration) {
  const StreamingConstants& constants = calibration.streaming;
  const double efficiency = constants.bandwidth_efficiency * relative_efficiency(work.kind, constants);
  const Bytes total = work.read + work.written + work.rows.again;
  const bool warm = work.kind == StreamingKind::elementwise || work.kind == StreamingKind::reduction;
  const Bytes cached = (warm ? kept(work, gpu) : Bytes(0)) + work.rows.again - missed(work.rows, gpu);
  const BytesPerSecond memory = gpu.memory_bandwidth * efficiency;
  const BytesPerSecond cache = std::max(gpu.l2_bandwidth * efficiency, memory);
  // If rows are read again, some blocks do so while others wait for memory. Instructions hide behind traffic in
  // part.
  const bool beside = work.rows.again > Bytes(0.0);
  const Seconds moving =
      beside ? std::max((total - cached) / memory, total / cache) : (total - cached) / memory + cached / cache;
  const Seconds traffic(std::hypot(moving.value(), issued(work.rows, gpu).value()));
  const Seconds arithmetic =
      std::max(work.flops / gpu.matrix_rate(Precision::fp32), one_at_a_time(work.singles, gpu, constants));
  const Seconds fixed = Seconds(constants.kernel_us * 1e-6) * number(kernels);
  const Seconds body = std::max(traffic, arithmetic);
  const Bound bound = fixed > body ? Bound::latency : traffic >= arithmetic ? Bound::memory : Bound::compute;
  return {fixed + body, bound};
}

}  // namespace foretrain
