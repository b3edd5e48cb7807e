#include "reports/result/json.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "model/base/words.hpp"
#include "reports/result/result_fields.hpp"

namespace foretrain {

namespace {

using Json = nlohmann::ordered_json;

/// Describes the fields that it visits; their values do not matter.
class SchemaOfFields {
 public:
  /// Within `optional` none is needed.
  explicit SchemaOfFields(Json& schema, bool optional = false) : schema_(schema), optional_(optional) {
    schema_["type"] = "object";
  }

  void operator()(std::string_view key, const auto& value) { add(key, of(value), !optional_); }
  void when(bool, std::string_view key, const auto& value) { add(key, of(value), false); }
  template <typename T>
  void when(bool, std::string_view key, const std::optional<T>&) {
    add(key, of(T{}), false);
  }
  void derived(std::string_view key, const auto& value) { (*this)(key, value); }
  void by_name(std::string_view key, const auto&, const std::vector<double>&) {
    add(key, of(std::map<std::string, double>{}), !optional_);
  }
  void object(std::string_view key, const auto& fields_of) { add(key, of_object(fields_of), !optional_); }
  void object_when(bool, std::string_view key, const auto& fields_of) { add(key, of_object(fields_of), false); }
  template <typename T>
  void group(std::string_view, const std::optional<T>&, const auto& fields_of) {
    const bool before = std::exchange(optional_, true);
    T group{};
    fields_of(group);
    optional_ = before;
  }
  template <typename... Kinds>
  void one_of(const std::variant<Kinds...>&, const auto&...) {
    (schema_["anyOf"].push_back(of(Kinds{})), ...);
  }
  template <typename Kind>
  void of_kind(const auto&, const auto& fields_of) {
    group("", std::optional<Kind>(), fields_of);
  }

 private:
  void add(std::string_view key, Json value, bool needed) {
    schema_["properties"][std::string(key)] = std::move(value);
    if (needed) schema_["required"].push_back(std::string(key));
  }

  static Json of_object(const auto& fields_of) {
    Json schema;
    SchemaOfFields inner(schema);
    fields_of(inner);
    return schema;
  }

  static Json number(const char* unit) { return {{"type", {"number", "null"}}, {"description", unit}}; }
  static Json of(double) { return {{"type", {"number", "null"}}}; }
  static Json of(bool) { return {{"type", "boolean"}}; }
  static Json of(int) { return {{"type", "integer"}}; }
  static Json of(const std::string&) { return {{"type", "string"}}; }
  static Json of(Seconds) { return number("seconds"); }
  static Json of(Bytes) { return number("bytes"); }
  static Json of(Flops) { return number("floating-point operations"); }
  static Json of(BytesPerSecond) { return number("bytes per second"); }
  static Json of(FlopsPerSecond) { return number("floating-point operations per second"); }
  template <typename T>
  static Json of(const std::optional<T>&) {
    Json value = of(T{});
    const bool nullable = value.contains("type") && value["type"].is_array();
    return nullable ? value : Json{{"anyOf", {std::move(value), {{"type", "null"}}}}};
  }
  template <typename T>
  static Json of(Whole<T> whole) {
    Json schema = of(whole.value);
    schema["type"] = {"integer", "null"};
    return schema;
  }
  template <typename T>
  static Json of(const std::vector<T>&) {
    Json schema = {{"type", "array"}};
    schema["items"] = of(T{});
    return schema;
  }
  template <typename T>
  static Json of(const std::map<std::string, T>&) {
    Json schema = {{"type", "object"}};
    schema["additionalProperties"] = of(T{});
    return schema;
  }
  template <typename T>
  static Json of(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return {{"enum", names_of<T>}};
    } else {
      return of_object([&](SchemaOfFields& inner) { fields(inner, value); });
    }
  }

  Json& schema_;
  bool optional_;
};

}  // namespace

std::string result_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "foretrain: result"}};
  SchemaOfFields visitor(schema);
  const Result any;
  fields(visitor, any);
  return schema.dump(1) + "\n";
}

}  // namespace foretrain
