// A list that is cheap to copy.
#pragma once

#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace foretrain {

/// A vector whose copies share its elements until one of them is changed, which then has its own. Asking for an
/// element of a vector that is not const may change it.
template <typename T>
class SharedVector {
 public:
  using value_type = T;

  SharedVector() = default;
  SharedVector(std::vector<T> elements) : state_(std::make_shared<State>(State{std::move(elements), 0, nullptr})) {}
  SharedVector(std::initializer_list<T> elements) : SharedVector(std::vector<T>(elements)) {}
  /// As many elements, which `make` returns once somebody asks for one of them.
  SharedVector(std::size_t size, std::function<std::vector<T>()> make)
      : state_(std::make_shared<State>(State{{}, size, std::move(make)})) {}

  operator const std::vector<T>&() const { return read(); }
  /// The same for one use: what is still to be made does not stay here, and is made anew for who asks next.
  [[nodiscard]] SharedVector once() const { return state_ && state_->make ? SharedVector(state_->make()) : *this; }
  [[nodiscard]] std::size_t size() const { return state_ && state_->make ? state_->to_come : read().size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] auto begin() const { return read().begin(); }
  [[nodiscard]] auto end() const { return read().end(); }
  const T& operator[](std::size_t i) const { return read()[i]; }
  [[nodiscard]] const T& front() const { return read().front(); }
  [[nodiscard]] const T& back() const { return read().back(); }
  bool operator==(const SharedVector& other) const { return &read() == &other.read() || read() == other.read(); }
  void clear() { *this = {}; }

  auto begin() { return own().begin(); }
  auto end() { return own().end(); }
  T& operator[](std::size_t i) { return own()[i]; }
  T& front() { return own().front(); }
  T& back() { return own().back(); }
  void push_back(T element) { own().push_back(std::move(element)); }
  T& emplace_back(T element = {}) { return own().emplace_back(std::move(element)); }
  template <typename Place>
  auto erase(Place first, Place last) {
    return own().erase(first, last);
  }

 private:
  struct State {
    std::vector<T> elements;
    std::size_t to_come;
    std::function<std::vector<T>()> make;  ///< nothing once they are there
  };

  [[nodiscard]] std::vector<T>& made() const {
    if (state_->make) {
      state_->elements = state_->make();
      state_->make = nullptr;  // not before: making them may throw
    }
    return state_->elements;
  }
  [[nodiscard]] const std::vector<T>& read() const {
    static const std::vector<T> none;
    return state_ == nullptr ? none : made();
  }
  std::vector<T>& own() {
    if (state_ == nullptr || state_.use_count() > 1) state_ = std::make_shared<State>(State{read(), 0, nullptr});
    return made();
  }

  std::shared_ptr<State> state_;
};

}  // namespace foretrain
