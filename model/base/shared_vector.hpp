// A list that is cheap to copy.
#pragma once

#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace foretrain {

/// A vector whose copies share its elements until one of them is changed, which then has its own. Whoever asks for an
/// element of a vector that is not const may change it.
template <typename T>
class SharedVector {
 public:
  using value_type = T;

  SharedVector() = default;
  SharedVector(std::vector<T> elements) : elements_(std::make_shared<std::vector<T>>(std::move(elements))) {}
  SharedVector(std::initializer_list<T> elements) : SharedVector(std::vector<T>(elements)) {}

  operator const std::vector<T>&() const { return read(); }
  [[nodiscard]] std::size_t size() const { return read().size(); }
  [[nodiscard]] bool empty() const { return read().empty(); }
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
  [[nodiscard]] const std::vector<T>& read() const {
    static const std::vector<T> none;
    return elements_ == nullptr ? none : *elements_;
  }
  std::vector<T>& own() {
    if (elements_ == nullptr) elements_ = std::make_shared<std::vector<T>>();
    if (elements_.use_count() > 1) elements_ = std::make_shared<std::vector<T>>(*elements_);
    return *elements_;
  }

  std::shared_ptr<std::vector<T>> elements_;
};

}  // namespace foretrain
