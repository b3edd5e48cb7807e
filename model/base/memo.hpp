// What has been worked out before, for a key that holds everything that decides it.
#pragma once

#include <cstddef>
#include <list>
#include <utility>

namespace foretrain {

/// The values used last, up to `most` of weight together. Meant for few, large values: keys are compared one by one.
/// Not for several threads: a memo of a function is thread_local.
template <typename Key, typename Value>
class Memo {
 public:
  explicit Memo(std::size_t most) : most_(most) {}

  /// Null where the key is not known; valid until the next add().
  const Value* find(const Key& key) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!(entry->key == key)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return &entry->value;
    }
    return nullptr;
  }

  /// The key must not be known. Values that weigh more than all may are kept until the next one comes.
  const Value& add(Key key, Value value, std::size_t weight = 1) {
    entries_.push_front({std::move(key), std::move(value), weight});
    weight_ += weight;
    while (weight_ > most_ && entries_.size() > 1) {
      weight_ -= entries_.back().weight;
      entries_.pop_back();
    }
    return entries_.front().value;
  }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t weight;
  };
  std::size_t most_, weight_ = 0;
  std::list<Entry> entries_;  ///< the last used first
};

}  // namespace foretrain
