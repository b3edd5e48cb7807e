#include "reports/page/slices.hpp"

#include <algorithm>

namespace foretrain {

namespace {

Seconds end_of(const Slice& slice) { return slice.start + slice.duration; }

/// Whether both are too narrow to be seen where `width` is the least that can be.
bool joins(const Slice& last, const Slice& next, Seconds width) {
  const bool neighbours = last.resource == next.resource && last.lane == next.lane && last.category == next.category;
  return neighbours && next.start - end_of(last) < width && std::max(last.duration, next.duration) < width;
}

std::vector<Slice> joined(const std::vector<Slice>& slices, Seconds width) {
  std::vector<Slice> fewer;
  for (const Slice& slice : slices) {
    if (fewer.empty() || !joins(fewer.back(), slice, width)) {
      fewer.push_back(slice);
      continue;
    }
    Slice& last = fewer.back();
    last.duration = std::max(end_of(last), end_of(slice)) - last.start;
    last.tasks += slice.tasks;
    last.micro_batch = last.micro_batch == slice.micro_batch ? last.micro_batch : -1;
    if (last.name != slice.name) last.name = "several";
  }
  return fewer;
}

}  // namespace

std::vector<Slice> slices_of(const std::vector<TimelineEntry>& entries, std::size_t most) {
  std::vector<Slice> slices;
  Seconds end;
  for (const TimelineEntry& entry : entries) {
    slices.push_back({.resource = entry.resource,
                      .name = entry.name,
                      .category = entry.category,
                      .lane = entry.lane,
                      .micro_batch = entry.micro_batch,
                      .start = entry.start,
                      .duration = entry.duration});
    end = std::max(end, end_of(slices.back()));
  }
  constexpr double finest = 1e-6, coarser = 2.0;
  for (Seconds width = end * finest; slices.size() > most && width < end; width = width * coarser) {
    slices = joined(slices, width);
  }
  return slices;
}

}  // namespace foretrain
