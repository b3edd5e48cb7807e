// What a finished sweep leaves beside its table, so that the same command computes nothing again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace foretrain {

/// Lies in OUT.csv.done.
struct SweepReceipt {
  std::string shown;     ///< the best rows, as they were printed
  std::string failures;  ///< what was said on stderr of rows without a prediction
  std::size_t failed = 0;
};

/// The receipt of the table at `path`, if it was made of the same (`fingerprint`) and nobody has changed it since.
std::optional<SweepReceipt> receipt_of(const std::string& path, std::uint64_t fingerprint);
void write_receipt(const std::string& path, std::uint64_t fingerprint, const SweepReceipt& receipt);

}  // namespace foretrain
