#include "model/scenario/model/model_reader.hpp"

#include <cmath>
#include <variant>

#include "model/base/statistics.hpp"
#include "model/cost/attention.hpp"

namespace foretrain {
namespace {

// Lengths of the two sequences, or of many packed ones.
void read_lengths(const MappingReader& keys, Attention& work) {
  const auto lengths = keys.find("lengths");
  if (!lengths) {
    work.query_length = keys["sequence"].as<std::int64_t>();
    work.key_length = keys.value_or("key_sequence", work.query_length);
    return;
  }
  keys.refuse({"sequence", "key_sequence"}, "the packed lengths state it already", "either this key or lengths");
  const std::vector<std::int64_t> list = read_sequence_lengths(*lengths);
  constexpr std::int64_t most = 1'000'000'000;
  keys.fail_if(work.batch > most / static_cast<std::int64_t>(list.size()), "batch", "too many sequences",
               "at most {0} in all", most);
  work.packing = pack(list, work.causal, work.window);
  work.query_length = work.key_length = work.packing->tokens;
}

/// The quantiles (i − 1/2) / count of a lognormal distribution, rounded and clamped.
std::vector<std::int64_t> read_quantiles(const Field& field) {
  const MappingReader keys = field.mapping(keys::lengths);
  enum class Distribution { lognormal };
  static_cast<void>(keys["distribution"].as<Distribution>());
  const auto count = keys["count"].as<std::int64_t>();
  const auto shortest = keys.value_or<std::int64_t>("shortest", 1);
  const auto longest = keys.value_or<std::int64_t>("longest", 100'000'000);
  keys.fail_if(longest < shortest, "longest", "less than the shortest", "at least {}", shortest);
  const double mean = keys["mean"].as<double>(), spread = keys["spread"].as<double>();
  // A lognormal of this mean and standard deviation has these parameters.
  const double log_variance = std::log1p(spread * spread / (mean * mean));
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double quantile = mean * std::exp(std::sqrt(log_variance) * normal_quantile(p) - 0.5 * log_variance);
    const double clamped = std::clamp(quantile, static_cast<double>(shortest), static_cast<double>(longest));
    lengths.push_back(std::llround(clamped));
  }
  return lengths;
}

}  // namespace

Operator read_attention(const MappingReader& keys) {
  auto work = keys.filled<Attention>();
  if (!keys.has("kv_heads")) work.kv_heads = work.heads;
  if (work.density > 1.0) keys.fail("density", "more than all blocks", "a share above 0 and up to 1, as 0.25");
  read_lengths(keys, work);
  const bool standard = work.kind == AttentionKind::standard;
  const bool writes_cache = work.kind == AttentionKind::flash || work.kind == AttentionKind::flash_3;
  keys.fail_if((!writes_cache || work.backward) && work.cached, "cache",
               "only forward passes by flash or flash_3 write one", "leave the key out");
  if (!keys.has("cache")) work.cached = work.engine_by_default();
  keys.fail_if(work.heads % work.kv_heads != 0, "kv_heads", "{0} heads cannot share {1} evenly", "a divisor of {0}",
               work.heads, work.kv_heads);
  keys.fail_if(work.window > 0 && work.key_length < work.query_length, "window", "{} queries outnumber the {} keys",
               "no window, or at least as many keys", work.query_length, work.key_length);
  // Unfused attention launches two products and a softmax, going back four products and a softmax; a mask and dropout
  // are kernels of their own.
  int kernels = work.cached ? 2 : 1;
  if (standard) {
    kernels = (work.backward ? 5 : 3) + (work.dropout ? 1 : 0);
    if (!work.backward && work.masked() && !work.fused_softmax) ++kernels;
  }
  const std::string length =
      work.packing ? fmt::format("{} packed sequences", work.packing->sequences) : fmt::format("{}", work.query_length);
  return {fmt::format("attention {}x{}x{}x{}", work.batch, work.heads, length, work.head_dim), work,
          keys.value_or("precision", Precision::fp32), kernels};
}

void check_attention(const Operator& op, const Gpu& gpu, const Field& field) {
  const auto* work = std::get_if<Attention>(&op.work);
  if (work == nullptr) return;
  if (const auto unsupported = unsupported_attention(*work, op.precision, gpu)) {
    field.find("attention").value_or(field).fail(unsupported->wrong, unsupported->right);
  }
}

void check_attention(const ModelConfig& model, AttentionKind kind, Precision precision, const Gpu& gpu,
                     const Field& field) {
  const auto stated = field.find("attention");
  stated.value_or(field).fail_if(stated && std::holds_alternative<NetworkConfig>(model.shape),
                                 "{} is a network of layers without attention", "a transformer, or leave the key out",
                                 model.name);
  const auto check = [&](const TransformerConfig& shape) {
    // Attention computes in bf16 where the rest is fp8.
    check_attention({"", Attention{.head_dim = shape.head_dim, .kind = kind}, storage_precision(precision), 1}, gpu,
                    field);
  };
  if (const auto* transformer = std::get_if<TransformerConfig>(&model.shape)) check(*transformer);
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&model.shape)) {
    check(whole->vision);
    check(whole->language);
  }
}

std::vector<std::int64_t> read_sequence_lengths(const Field& field) {
  if (field.is_mapping()) return read_quantiles(field);
  std::vector<std::int64_t> lengths;
  for (const Field& length : field.list_or_one()) lengths.push_back(length.as<std::int64_t>());
  if (lengths.empty()) field.fail("an empty list", "lengths of sequences, as [512, 1024]");
  return lengths;
}

}  // namespace foretrain
