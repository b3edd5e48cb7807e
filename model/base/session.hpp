// The cache of a session: values that later predictions use again.
//
// Each kind of thing is cached by a key type of its own, which holds everything that decides it:
//
//   struct Key {
//     using Value = const Topology;                 // what is cached
//     bool operator==(const Key&) const = default;  // equal keys have equal values
//     [[nodiscard]] std::uint64_t hash() const;     // finds the candidates; only == tells keys apart
//     [[nodiscard]] std::size_t bytes(const Topology&) const;  // where key and value own more than their own size
//   };
//
// All kinds share one budget of bytes: what was used longest ago goes first. What somebody holds lives on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace foretrain {

/// Not for several threads: each has a session of its own.
class Session {
 public:
  /// A dozen steps of 16,384 GPUs.
  static constexpr std::size_t usual_budget = 320'000'000;

  explicit Session(std::size_t most_bytes = usual_budget) : most_bytes_(most_bytes) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  template <typename Key>
  using Pointer = std::shared_ptr<typename Key::Value>;

  /// Null where no key of this hash is the `same`, as that says of a key.
  template <typename Key, typename Same>
  Pointer<Key> find(std::uint64_t hash, const Same& same) {
    const auto entry = place_of<Key>(hash, same);
    if (entry == by_hash_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, entry->second);
    return value_of<Key>(entries_.front());
  }
  template <typename Key>
  Pointer<Key> find(const Key& key) {
    return find<Key>(key.hash(), [&key](const Key& other) { return other == key; });
  }

  /// Takes the place of what was known for this key. Values that weigh more than all may are kept until the next comes.
  template <typename Key>
  Pointer<Key> keep(Key key, std::remove_const_t<typename Key::Value> value) {
    const std::uint64_t hash = key.hash();
    std::size_t bytes = sizeof(Kept<Key>);
    if constexpr (requires { key.bytes(value); }) bytes = key.bytes(value);
    if (const auto known = place_of<Key>(hash, [&key](const Key& other) { return other == key; });
        known != by_hash_.end()) {
      drop(known->second);
    }
    auto kept = std::make_shared<Kept<Key>>(Kept<Key>{std::move(key), std::move(value)});
    entries_.push_front({hash, bytes, number_of<Key>(), kept});
    by_hash_.emplace(hash, entries_.begin());
    bytes_ += bytes;
    while (bytes_ > most_bytes_ && entries_.size() > 1) drop(std::prev(entries_.end()));
    return value_of<Key>(entries_.front());
  }

  /// Returns the cached value of the key, or that of `make`.
  template <typename Key, typename Make>
  Pointer<Key> known(Key key, const Make& make) {
    if (Pointer<Key> value = find(key)) return value;
    auto made = make();
    return keep(std::move(key), std::move(made));
  }

  /// The session's one object of a type, made when it is first asked for, kept until the session ends.
  template <typename Part>
  Part& part() {
    if (parts_.size() <= number_of<Part>()) parts_.resize(number_of<Part>() + 1);
    std::shared_ptr<void>& own = parts_[number_of<Part>()];
    if (own == nullptr) own = std::make_shared<Part>();
    return *static_cast<Part*>(own.get());
  }
  /// Null where nobody has asked for it.
  template <typename Part>
  Part* part_if_there() {
    const std::size_t number = number_of<Part>();
    return number < parts_.size() ? static_cast<Part*>(parts_[number].get()) : nullptr;
  }

  /// Another one each time.
  std::uint64_t new_number() { return ++numbers_; }

  /// Forgets what is cached; its parts stay.
  void clear() {
    by_hash_.clear();
    entries_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  template <typename Key>
  struct Kept {
    Key key;
    std::remove_const_t<typename Key::Value> value;
  };
  struct Entry {
    std::uint64_t hash;
    std::size_t bytes;
    std::size_t type;
    std::shared_ptr<void> kept;  ///< Kept<Key>
  };
  using Entries = std::list<Entry>;
  using ByHash = std::unordered_multimap<std::uint64_t, Entries::iterator>;

  static std::size_t next_type();
  template <typename Type>
  static std::size_t number_of() {
    static const std::size_t number = next_type();
    return number;
  }

  template <typename Key>
  static Kept<Key>& kept_in(const Entry& entry) {
    return *static_cast<Kept<Key>*>(entry.kept.get());
  }
  template <typename Key>
  static Pointer<Key> value_of(const Entry& entry) {
    return {entry.kept, &kept_in<Key>(entry).value};
  }
  template <typename Key, typename Same>
  ByHash::iterator place_of(std::uint64_t hash, const Same& same) {
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto place = begin; place != end; ++place) {
      const Entry& entry = *place->second;
      if (entry.type == number_of<Key>() && same(kept_in<Key>(entry).key)) return place;
    }
    return by_hash_.end();
  }
  void drop(Entries::iterator entry);

  std::size_t most_bytes_, bytes_ = 0;
  std::uint64_t numbers_ = 0;
  Entries entries_;  ///< the last used first
  ByHash by_hash_;
  std::vector<std::shared_ptr<void>> parts_;
};

/// The session of this thread: that of the innermost SessionScope, or one of the thread's own.
Session& session();

/// While one lives, its session is that of this thread.
class SessionScope {
 public:
  explicit SessionScope(Session& inside);
  ~SessionScope();
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;

 private:
  Session* before_;
};

}  // namespace foretrain
