#include "model/scenario/attention_reader.hpp"

#include <fmt/format.h>

#include "model/scenario/names.hpp"

namespace foretrain {
namespace {

constexpr IntegerRange dimension{1, 1'000'000'000};

}  // namespace

Operator read_attention(const Field& field) {
  const MappingReader keys = field.mapping({"batch", "heads", "kv_heads", "sequence", "key_sequence", "head_dim",
                                            "causal", "attention", "native", "backward", "precision"});
  const auto size = [&](std::string_view key) { return keys[key].integer(dimension); };
  Attention work;
  work.batch = size("batch");
  work.heads = size("heads");
  work.kv_heads = keys.integer_or("kv_heads", work.heads, dimension);
  work.query_length = size("sequence");
  work.key_length = keys.integer_or("key_sequence", work.query_length, dimension);
  work.head_dim = size("head_dim");
  work.causal = keys.flag_or("causal", false);
  work.kind = keys.choice_or("attention", AttentionKind::flash, attention_words());
  work.native = keys.flag_or("native", false);
  work.backward = keys.flag_or("backward", false);
  if (work.heads % work.kv_heads != 0) {
    keys.fail("kv_heads", fmt::format("{} heads cannot share {} evenly", work.heads, work.kv_heads),
              fmt::format("a divisor of {}", work.heads));
  }
  // Unfused attention launches two products and a softmax, going back four products and a softmax.
  const int kernels = work.kind != AttentionKind::standard ? 1 : work.backward ? 5 : 3;
  return {fmt::format("attention {}x{}x{}x{}", work.batch, work.heads, work.query_length, work.head_dim), work,
          keys.choice_or("precision", Precision::fp32, all_precision_words()), kernels};
}

}  // namespace foretrain
