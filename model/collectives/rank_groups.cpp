#include "model/collectives/rank_groups.hpp"

#include <algorithm>

namespace foretrain {

namespace {

std::optional<int> shift_between(const std::vector<int>& from, const std::vector<int>& to) {
  if (from.empty() || from.size() != to.size()) return std::nullopt;
  const int shift = to.front() - from.front();
  const bool shifted = std::ranges::equal(from, to, [shift](int a, int b) { return a + shift == b; });
  return shifted ? std::optional(shift) : std::nullopt;
}

}  // namespace

std::vector<int> shifted(std::vector<int> ranks, int shift) {
  for (int& rank : ranks) rank += shift;
  return ranks;
}

RankGroups::RankGroups(const std::vector<std::vector<int>>& groups) {
  for (const std::vector<int>& group : groups) add(group);
}

RankGroups::RankGroups(std::initializer_list<std::vector<int>> groups) {
  for (const std::vector<int>& group : groups) add(group);
}

void RankGroups::add(const std::vector<int>& group) {
  if (!empty()) {
    Family& last = families_.back();
    if (const std::optional<int> shift = shift_between(last.first, group)) {
      last.shifts.push_back(*shift);
      return;
    }
  }
  families_.push_back({group, {0}, size()});
}

std::size_t RankGroups::size() const {
  return empty() ? 0 : families().back().position + families().back().shifts.size();
}

std::vector<int> RankGroups::operator[](std::size_t position) const {
  const Family& family = *(std::ranges::upper_bound(families(), position, {}, &Family::position) - 1);
  return shifted(family.first, family.shifts[position - family.position]);
}

RankGroups RankGroups::only(const std::vector<int>& positions) const {
  if (positions.size() == size()) return *this;
  RankGroups some;
  for (const int position : positions) some.add((*this)[static_cast<std::size_t>(position)]);
  return some;
}

std::optional<int> RankGroups::shift_from(const RankGroups& others) const {
  if (empty() || families().size() != others.families().size()) return std::nullopt;
  const std::optional<int> shift = shift_between(others.front(), front());
  const auto is_shifted = [&](const Family& from, const Family& to) {
    return from.shifts == to.shifts && shift_between(from.first, to.first) == shift;
  };
  return shift && std::ranges::equal(others.families(), families(), is_shifted) ? shift : std::nullopt;
}

std::vector<int> RankGroups::Iterator::operator*() const { return shifted(family_->first, family_->shifts[group_]); }

}  // namespace foretrain
