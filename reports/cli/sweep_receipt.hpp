// What a finished sweep leaves beside its table, so that the same command computes nothing again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/cli/sweep_table.hpp"

namespace foretrain {

/// Lies in OUT.csv.done. It is laid out for the window in which it is told.
struct SweepReceipt {
  struct Failures {
    std::string what;
    std::vector<std::string> reasons = {};
  };
  ShownRows best = {};
  std::vector<Failures> failures = {};  ///< rows without a prediction
  std::size_t failed = 0;
};

/// The receipt of the table at `path`, if it was made of the same (`fingerprint`) and nobody has changed it since.
std::optional<SweepReceipt> receipt_of(const std::string& path, std::uint64_t fingerprint);
/// Throws UsageError where a file lies in the receipt's place that is none.
void check_receipt_place(const std::string& path);
void write_receipt(const std::string& path, std::uint64_t fingerprint, const SweepReceipt& receipt);

}  // namespace foretrain
