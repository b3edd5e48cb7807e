// Groups of ranks that work side by side. Where some are another one further on, this says so, and nobody looks again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <vector>

#include "model/base/hash.hpp"
#include "model/base/shared_vector.hpp"

namespace foretrain {

std::vector<int> shifted(std::vector<int> ranks, int shift);

/// Groups in a given order, as families: of groups that follow each other, as many as are the first of them with every
/// rank shifted. Equal groups in equal order have equal families, so that comparing these compares all ranks. Copies
/// are cheap.
class RankGroups {
 public:
  struct Family {
    std::vector<int> first;    ///< the ranks of its first group
    std::vector<int> shifts;   ///< of each of its groups against the first one, which has 0
    std::size_t position = 0;  ///< of its first group among all
    bool operator==(const Family&) const = default;
  };

  RankGroups() = default;
  RankGroups(const std::vector<std::vector<int>>& groups);
  RankGroups(std::initializer_list<std::vector<int>> groups);
  void add(const std::vector<int>& group);

  [[nodiscard]] const std::vector<Family>& families() const { return families_; }
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return families_.empty(); }
  [[nodiscard]] const std::vector<int>& front() const { return families().front().first; }
  [[nodiscard]] std::vector<int> operator[](std::size_t position) const;
  [[nodiscard]] RankGroups only(const std::vector<int>& positions) const;
  /// By how many ranks these are the others shifted; nothing where they are something else.
  [[nodiscard]] std::optional<int> shift_from(const RankGroups& others) const;

  [[nodiscard]] std::uint64_t hash() const {
    return empty() ? 0 : hash_of(size(), families().size(), front(), families().front().shifts);
  }
  bool operator==(const RankGroups& other) const {
    return &families() == &other.families() || families() == other.families();
  }

  /// Gives the ranks of one group after the other.
  class Iterator {
   public:
    using value_type = std::vector<int>;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(const Family* family) : family_(family) {}
    std::vector<int> operator*() const;
    Iterator& operator++() {
      if (++group_ == family_->shifts.size()) *this = Iterator(family_ + 1);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator&) const = default;

   private:
    const Family* family_ = nullptr;
    std::size_t group_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(families().data()); }
  [[nodiscard]] Iterator end() const { return Iterator(families().data() + families().size()); }

 private:
  SharedVector<Family> families_;
};

}  // namespace foretrain
