// Values as bytes, for the way between processes of this program.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace foretrain {

/// Values come out in the order and with the types of their insertion.
class Bytestream {
 public:
  Bytestream() = default;
  explicit Bytestream(std::string bytes) : bytes_(std::move(bytes)) {}
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t count = values.size();
    bytes_.append(reinterpret_cast<const char*>(&count), sizeof count);
    if (count > 0) bytes_.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
  }
  template <typename T>
  std::vector<T> take() {
    std::size_t count = 0;
    std::memcpy(&count, bytes_.data() + at_, sizeof count);
    at_ += sizeof count;
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return values;
  }
  [[nodiscard]] std::string text() && { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace foretrain
