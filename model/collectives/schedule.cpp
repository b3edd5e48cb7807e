#include "model/collectives/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foretrain {

namespace {

Schedule::PhaseRun pipeline_phase_run(int hops, int pieces, int phase) {
  // Each step counts its largest phase, 1/64 of a ramp too much at most.
  constexpr int ramp_steps = 64;
  const int step = (hops - 1) / ramp_steps;
  const bool full = phase >= hops - 1 && phase < pieces;
  if (full || step < 2 || pieces < hops) return {phase >= hops - 1 ? std::max(1, pieces - phase) : 1, phase};
  // While the chain fills, later phases move more; while it empties, earlier ones do.
  const int end = phase < hops ? hops - 1 : hops + pieces - 1;
  const int length = std::min(step, end - phase);
  return {length, phase < hops ? phase + length - 1 : phase};
}

}  // namespace

Bytes chunk_range_size(Bytes size, int chunks, int first, int count) {
  // The start of chunk i: i whole shares plus one byte for each of the earlier chunks that take the remainder.
  const double whole = std::floor(size.value());
  const double share = std::floor(whole / chunks);
  const double remainder = whole - share * chunks;
  const auto begin = [&](int index) { return share * index + std::min<double>(index, remainder); };
  return Bytes(begin(first + count) - begin(first));
}

Bytes transfer_size(Bytes size, int chunks, const Transfer& transfer) {
  if (transfer.stride == 1) return chunk_range_size(size, chunks, transfer.first_chunk, transfer.chunks);
  const double whole = std::floor(size.value());
  const double share = std::floor(whole / chunks);
  const double remainder = whole - share * chunks;
  // The chunks below `remainder` are one byte larger.
  const double larger = std::clamp(std::ceil((remainder - transfer.first_chunk) / transfer.stride), 0.0,
                                   static_cast<double>(transfer.chunks));
  return Bytes(share * transfer.chunks + larger);
}

Phase without_strides(const Phase& phase) {
  Phase result;
  for (const Transfer& transfer : phase) {
    if (transfer.stride == 1 || transfer.chunks == 1) {
      result.push_back(transfer);
      result.back().stride = 1;
      continue;
    }
    for (int i = 0; i < transfer.chunks; ++i) {
      result.push_back(
          {transfer.source, transfer.destination, transfer.first_chunk + i * transfer.stride, 1, transfer.kind});
    }
  }
  return result;
}

Schedule joined(int ranks, int chunks, std::vector<SchedulePart> parts) {
  std::erase_if(parts, [](const SchedulePart& part) { return part.phases == 0; });
  std::vector<int> begins = {0};
  for (const SchedulePart& part : parts) begins.push_back(begins.back() + part.phases);
  const auto find = [begins](int index) {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins, index) - begins.begin() - 1);
  };
  const auto phase_run = [=](int index) -> Schedule::PhaseRun {
    std::size_t at = find(index);
    if (parts[at].phase_run) {
      const Schedule::PhaseRun inside = parts[at].phase_run(index - begins[at]);
      return {inside.length, inside.representative + begins[at]};
    }
    if (parts[at].run < 0) return {1, index};
    while (at + 1 < parts.size() && parts[at + 1].run == parts[at].run) ++at;
    return {begins[at + 1] - index, index};
  };
  const auto phase = [=](int index) {
    const std::size_t at = find(index);
    return parts[at].phase(index - begins[at]);
  };
  return {.ranks = ranks, .chunks = chunks, .phases = begins.back(), .phase = phase, .phase_run = phase_run};
}

Schedule reduced_then_copied(CollectiveOperation operation, int ranks, int chunks, SchedulePart reducing,
                             SchedulePart copying) {
  if (!reduces(operation)) reducing.phases = 0;
  if (!copies(operation)) copying.phases = 0;
  return joined(ranks, chunks, {std::move(reducing), std::move(copying)});
}

SchedulePart pipeline(int hops, int pieces, std::function<Phase(int phase)> phase) {
  return {hops > 0 ? hops + pieces - 1 : 0, std::move(phase), -1,
          [=](int index) { return pipeline_phase_run(hops, pieces, index); }};
}

}  // namespace foretrain
