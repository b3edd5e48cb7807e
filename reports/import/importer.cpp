#include "reports/import/importer.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/import/draft.hpp"

namespace foretrain {

namespace {

constexpr std::uintmax_t largest_file = 2'000'000'000;  ///< of a file, and of what it unpacks to

constexpr Importer all_importers[] = {
#define IMPORTER(name, word, reads, becomes) {word, reads, becomes, import_##name},
#include "reports/import/importers.def"
};

[[noreturn]] void fail_file(const std::string& path, std::string got, std::string expected) {
  throw ScenarioError({path, 0, 0}, "", std::move(got), std::move(expected));
}

/// RFC 1952; files that are joined to one are unpacked one after the other.
std::string unpacked(const std::string& packed, const std::string& path) {
  z_stream stream{};
  constexpr int gzip_alone = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_alone) != Z_OK) fail_file(path, "zlib cannot be started", "more memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> open(&stream, inflateEnd);
  std::array<char, 65536> piece{};
  std::string text;
  std::size_t place = 0;
  for (int status = Z_OK; status != Z_STREAM_END || place < packed.size();) {
    if (status == Z_STREAM_END) inflateReset(&stream);
    const std::size_t left = std::min<std::size_t>(packed.size() - place, 1U << 30U);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + place));  // zlib only reads it
    stream.avail_in = static_cast<uInt>(left);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    place += left - stream.avail_in;
    if (status != Z_OK && status != Z_STREAM_END) {
      fail_file(path, fmt::format("broken gzip data behind byte {}", place), "the whole file as the profiler wrote it");
    }
    text.append(piece.data(), piece.size() - stream.avail_out);
    if (text.size() > largest_file) fail_file(path, "more than 2 GB when unpacked", "a trace of fewer steps");
  }
  return text;
}

}  // namespace

std::span<const Importer> importers() { return all_importers; }

std::string read_imported_file(const std::string& path) {
  std::string bytes = read_file(path, {.bytes = largest_file});
  return bytes.starts_with("\x1f\x8b") ? unpacked(bytes, path) : bytes;
}

void require_config_text(const ImportInput& input) {
  constexpr std::size_t longest = 4'000'000;
  if (input.text.size() > longest) {
    throw ScenarioError({input.file, 0, 0}, "", fmt::format("{} bytes", input.text.size()), "at most 4 MB of text");
  }
  require_text(input.text, input.file);
}

std::string file_stem(const ImportInput& input) { return std::filesystem::path(input.file).stem().string(); }

YamlNode parse_config(const ImportInput& input, const std::string& what) {
  require_config_text(input);
  std::string text = input.text;
  std::ranges::replace(text, '\t', ' ');  // JSON's indentation, which YAML refuses; strings hold none
  YamlNode document = parse_yaml(text, input.file);
  if (!document.is_mapping()) throw ScenarioError(document.where, "", "no mapping", what);
  return document;
}

void refuse_json(const nlohmann::json::exception& error, std::string_view text, const std::string& file,
                 const std::string& expected, std::size_t start) {
  const auto* broken = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (broken != nullptr && broken->byte > 0) start = std::min(start + broken->byte - 1, text.size());
  throw ScenarioError(position_in(text, start, file), "",
                      broken != nullptr ? "this is no JSON" : "a number that no double holds", expected);
}

}  // namespace foretrain
