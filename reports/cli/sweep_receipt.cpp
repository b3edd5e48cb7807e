#include "reports/cli/sweep_receipt.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/hash.hpp"

namespace foretrain {

namespace {

std::string receipt_file(const std::string& path) { return path + ".done"; }

/// Of the table as it lies there, however long, and of what it was made of.
std::string table_mark(const std::string& path, std::uint64_t fingerprint) {
  std::ifstream table(path, std::ios::binary);
  std::uint64_t hash = fnv_1a_start;
  std::vector<char> piece(1U << 20U);
  while (table.read(piece.data(), static_cast<std::streamsize>(piece.size())), table.gcount() > 0) {
    hash = fnv_1a({piece.data(), static_cast<std::size_t>(table.gcount())}, hash);
  }
  return fmt::format("{:016x}-{:016x}", fingerprint, hash);
}

}  // namespace

std::optional<SweepReceipt> receipt_of(const std::string& path, std::uint64_t fingerprint) {
  if (!std::filesystem::is_regular_file(path) || !std::filesystem::is_regular_file(receipt_file(path))) return {};
  const auto json = nlohmann::json::parse(read_text_file(receipt_file(path)), nullptr, false);
  if (!json.is_object() || json.value("table", "") != table_mark(path, fingerprint)) return {};
  try {
    SweepReceipt receipt = {.failed = json.at("failed").get<std::size_t>()};
    json.at("sides").get_to(receipt.best.sides);
    json.at("header").get_to(receipt.best.header);
    json.at("rows").get_to(receipt.best.rows);
    for (const auto& one : json.at("failures")) receipt.failures.push_back({one.at("what"), one.at("reasons")});
    return receipt;
  } catch (const nlohmann::json::exception&) {
    return {};  // of another version
  }
}

void check_receipt_place(const std::string& path) {
  const std::string file = receipt_file(path);
  if (!std::filesystem::exists(file)) return;
  const bool ours =
      std::filesystem::is_regular_file(file) && nlohmann::json::parse(read_text_file(file), nullptr, false).is_object();
  if (!ours) {
    throw UsageError(
        fmt::format("{}: this is no receipt of a sweep, which would be written there; rename it, or choose "
                    "another place with -o",
                    file));
  }
}

void write_receipt(const std::string& path, std::uint64_t fingerprint, const SweepReceipt& receipt) {
  nlohmann::ordered_json json = {
      {"table", table_mark(path, fingerprint)}, {"failed", receipt.failed},  {"sides", receipt.best.sides},
      {"header", receipt.best.header},          {"rows", receipt.best.rows}, {"failures", nlohmann::json::array()}};
  for (const SweepReceipt::Failures& one : receipt.failures) {
    json["failures"].push_back({{"what", one.what}, {"reasons", one.reasons}});
  }
  write_file(receipt_file(path), json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace foretrain
