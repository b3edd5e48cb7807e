#include "model/scenario/plan/bucket_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/scenario/catalogue.hpp"

namespace foretrain {

namespace {

Field bucket_rules() {
  return Field(cached_yaml_file((data_directory() / "buckets.yaml").string()), "").mapping(keys::buckets_file)["rules"];
}

/// Where nothing runs beside them, cutting gains nothing but memory.
bool cut(BucketsWhole whole, const Plan& plan) {
  if (whole == BucketsWhole::without_overlap) return plan.sync.overlap || divides_gradients(plan);
  return whole == BucketsWhole::never;
}

}  // namespace

std::vector<std::string> bucket_rule_names() {
  std::vector<std::string> names;
  for (const YamlEntry& rule : bucket_rules().node().entries) names.push_back(rule.key);
  return names;
}

void read_bucket(const Field& field, Sync& sync) {
  const std::string& text = field.text();
  const Field rules = bucket_rules();
  if (rules.node().find(text) != nullptr) {
    sync.bucket_rule = text;
    return;
  }
  if (text.find_first_of("0123456789") == std::string::npos) {
    field.fail(fmt::format("unknown rule \"{}\"", text),
               fmt::format("{}, or a size: 25 MB", fmt::join(bucket_rule_names(), ", ")));
  }
  sync.bucket_rule.clear();
  sync.bucket = field.quantity<Bytes>();
}

void set_bucket(Plan& plan) {
  Sync& sync = plan.sync;
  if (plan.zero == 3 || sync.bucket_rule.empty()) return;
  const Field rules = bucket_rules();
  const MappingReader rule =
      Field(rules.node().find(sync.bucket_rule)->value, join_path(rules.path(), sync.bucket_rule))
          .mapping(keys::bucket_rule);
  const double ranks = static_cast<double>(plan.data) * plan.context;
  const double elements = std::max(rule.number_or("elements", 0.0), rule.number_or("elements_per_rank", 0.0) * ranks);
  const Bytes size =
      std::max(rule.quantity_or("size", Bytes(0.0)), bytes_per_element(sync.gradient_precision) * elements);
  sync.bucket = cut(rule.choice_or("whole", BucketsWhole::never), plan) ? size : Bytes::infinity();
  if (!(sync.first_bucket > Bytes(0.0))) sync.first_bucket = rule.quantity_or("first_bucket", Bytes(0.0));
}

}  // namespace foretrain
