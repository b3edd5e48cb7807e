// Which numbers a piece of work reads: a result depends on these, and on no other.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace foretrain {

/// Which numbered constants and rates were read; the caller that numbers some states the first number.
using ReadSet = std::bitset<512>;

/// Notes, for this thread, that they were read. What a memo answers was read when it was worked out: it keeps the set,
/// and notes it again.
void note_read(std::size_t number);
void note_reads(const ReadSet& numbers);

/// This thread's reads since the innermost ReadScope began; without a scope, all of them.
const ReadSet& reads_so_far();

/// A stretch of work whose reads are distinguished. When it ends, they count as those of the work around it.
class ReadScope {
 public:
  ReadScope();
  ~ReadScope();
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;

 private:
  ReadSet before_;
};

/// A number that notes when it is read. Comparing two of them, as keys of memos are, is no reading.
class TrackedNumber {
 public:
  explicit TrackedNumber(double value) : value_(value) {}
  // NOLINTNEXTLINE(google-explicit-constructor): formulas read it as the number that it is
  operator double() const {
    if (number_ >= 0) note_read(static_cast<std::size_t>(number_));
    return value_;
  }
  TrackedNumber& operator=(double value) {
    value_ = value;
    return *this;
  }
  TrackedNumber& operator*=(double factor) { return *this = value_ * factor; }
  TrackedNumber& operator/=(double divisor) { return *this = value_ / divisor; }
  bool operator==(const TrackedNumber& other) const { return value_ == other.value_; }

  /// Nothing is noted of a number without a number of its own.
  void set_number(std::size_t number) { number_ = static_cast<std::int16_t>(number); }
  double& unnoted() { return value_; }

 private:
  double value_;
  std::int16_t number_ = -1;
};

}  // namespace foretrain
