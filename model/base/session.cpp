#include "model/base/session.hpp"

namespace foretrain {

namespace {

thread_local Session* current = nullptr;

}  // namespace

std::size_t Session::next_type() {
  static std::size_t types = 0;
  return types++;
}

void Session::drop(Entries::iterator entry) {
  const auto [begin, end] = by_hash_.equal_range(entry->hash);
  for (auto place = begin; place != end; ++place) {
    if (place->second != entry) continue;
    by_hash_.erase(place);
    break;
  }
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

Session& session() {
  static thread_local Session own;
  return current != nullptr ? *current : own;
}

SessionScope::SessionScope(Session& inside) : before_(std::exchange(current, &inside)) {}

SessionScope::~SessionScope() { current = before_; }

}  // namespace foretrain
