#include "reports/result/json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "reports/result/result_fields.hpp"

namespace foretrain {

namespace {

// Keys keep the order in which they are written, which is that of a reader's interest.
using Json = nlohmann::ordered_json;

/// Writes the fields that it visits.
class JsonWriter {
 public:
  explicit JsonWriter(Json& json) : json_(json) {}

  void operator()(std::string_view key, const auto& value) { json_[std::string(key)] = of(value); }
  void when(bool there, std::string_view key, const auto& value) {
    if (there) (*this)(key, value);
  }
  void derived(std::string_view key, const auto& value) { (*this)(key, value); }
  void by_name(std::string_view key, const std::vector<std::string>& names, const std::vector<double>& values) {
    Json& object = json_[std::string(key)] = Json::object();
    for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = of(values[i]);
  }
  void object(std::string_view key, const auto& fields_of) {
    JsonWriter inner(json_[std::string(key)]);
    fields_of(inner);
  }
  void object_when(bool there, std::string_view key, const auto& fields_of) {
    if (there) object(key, fields_of);
  }
  void group(std::string_view, const auto& group, const auto& fields_of) {
    if (group) fields_of(*group);
  }
  template <typename... Kinds>
  void one_of(const std::variant<Kinds...>& work, const auto&...) {
    std::visit([this](const auto& kind) { fields(*this, kind); }, work);
  }
  template <typename Kind>
  void of_kind(const auto& work, const auto& fields_of) {
    if (const Kind* kind = std::get_if<Kind>(&work)) fields_of(*kind);
  }

  static Json of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
  static Json of(bool value) { return value; }
  static Json of(int value) { return value; }
  static Json of(const std::string& value) { return value; }
  template <int S, int B, int F>
  static Json of(Quantity<S, B, F> value) {
    return of(value.value());
  }
  template <typename T>
  static Json of(const std::optional<T>& value) {
    return value ? of(*value) : Json(nullptr);
  }
  template <typename T>
  static Json of(Whole<T> whole) {
    return whole_number(number_of(whole.value));
  }
  template <typename T>
  static Json of(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(of(value));
    return array;
  }
  template <typename T>
  static Json of(const std::map<std::string, T>& values) {
    Json object = Json::object();
    for (const auto& [name, value] : values) object[name] = of(value);
    return object;
  }
  template <typename T>
  static Json of(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return name(value);
    } else {
      Json json = Json::object();
      JsonWriter writer(json);
      fields(writer, value);
      return json;
    }
  }

 private:
  static double number_of(double value) { return value; }
  static double number_of(Bytes value) { return value.value(); }

  Json& json_;
};

/// Reads the fields that it visits. Throws ScenarioError at the key that is missing or is no such value, without a
/// file.
class JsonReader {
 public:
  explicit JsonReader(const Json& json) : json_(json) {}

  void operator()(std::string_view key, auto&& value) {
    const auto refuse = [key](const std::string& below, std::string got) {
      throw ScenarioError({}, std::string(key) + (below.empty() ? "" : "." + below), std::move(got), as_written);
    };
    try {
      read(at(key), value);
    } catch (const ScenarioError& error) {
      refuse(error.key(), error.got());
    } catch (const Json::exception& error) {
      refuse("", without_number(error));
    }
  }
  void when(bool, std::string_view key, auto&& value) {
    if (has(key)) (*this)(key, value);
  }
  void derived(std::string_view, const auto&) {}
  void by_name(std::string_view key, std::vector<std::string>& names, std::vector<double>& values) {
    for (const auto& [name, value] : at(key).items()) {
      names.push_back(name);
      read(value, values.emplace_back());
    }
  }
  void object(std::string_view key, const auto& fields_of) {
    JsonReader inner(at(key));
    fields_of(inner);
  }
  void object_when(bool, std::string_view key, const auto& fields_of) {
    if (has(key)) object(key, fields_of);
  }
  template <typename T>
  void group(std::string_view key, std::optional<T>& group, const auto& fields_of) {
    if (has(key)) fields_of(group.emplace(T{}));
  }
  template <typename... Kinds>
  void one_of(std::variant<Kinds...>& work, const auto&... keys) {
    const bool known = ((has(keys) && (work = Kinds{}, true)) || ...);
    if (!known) throw ScenarioError({}, "", "no kind of work that is known", as_written);
    std::visit([this](auto& kind) { fields(*this, kind); }, work);
  }
  template <typename Kind>
  void of_kind(auto& work, const auto& fields_of) {
    if (Kind* kind = std::get_if<Kind>(&work)) fields_of(*kind);
  }

  /// "[json.exception.type_error.302] type must be number, but is string" without its beginning.
  static std::string without_number(const Json::exception& error) {
    const std::string_view what = error.what();
    return std::string(what.substr(std::min(what.find("] ") + 2, what.size())));
  }
  static constexpr const char* as_written = "a result as `foretrain predict --json` writes it";

 private:
  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(std::string(key)); }
  [[nodiscard]] const Json& at(std::string_view key) const { return json_.at(std::string(key)); }

  static void read(const Json& json, double& value) {
    value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  }
  static void read(const Json& json, bool& value) { value = json.get<bool>(); }
  static void read(const Json& json, int& value) { value = json.get<int>(); }
  static void read(const Json& json, std::string& value) { value = json.get<std::string>(); }
  template <int S, int B, int F>
  static void read(const Json& json, Quantity<S, B, F>& value) {
    double number = 0.0;
    read(json, number);
    value = Quantity<S, B, F>(number);
  }
  template <typename T>
  static void read(const Json& json, std::optional<T>& value) {
    if (!json.is_null()) read(json, value.emplace(T{}));
  }
  template <typename T>
  static void read(const Json& json, Whole<T>& whole) {
    read(json, whole.value);
  }
  template <typename T>
  static void read(const Json& json, std::vector<T>& values) {
    for (const Json& value : json) read(value, values.emplace_back());
  }
  template <typename T>
  static void read(const Json& json, std::map<std::string, T>& values) {
    for (const auto& [name, value] : json.items()) read(value, values[name]);
  }
  template <typename T>
  static void read(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto word = json.get<std::string>();
      const std::optional<T> known = value_of<T>(word);
      if (!known) throw ScenarioError({}, "", "unknown word \"" + word + "\"", as_written);
      value = *known;
    } else {
      JsonReader reader(json);
      fields(reader, value);
    }
  }

  const Json& json_;
};

}  // namespace

nlohmann::ordered_json footprint_json(const MemoryFootprint& m, bool host) {
  Json json = JsonWriter::of(m);
  if (!host) return json;
  json["host"] = JsonWriter::of(Whole{m.host});  // of all GPUs of a node, in the node's memory
  json["host_capacity"] = JsonWriter::of(Whole{m.host_capacity});
  return json;
}

Json whole_number(double value) {
  constexpr double beyond_integers = 0x1p63;
  if (!std::isfinite(value)) return nullptr;
  return std::abs(value) < beyond_integers ? Json(std::llround(value)) : Json(value);
}

std::string to_json(const Result& result) { return JsonWriter::of(result).dump(2); }

std::string to_json(const std::vector<Result>& results) { return JsonWriter::of(results).dump(2); }

Result result_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.value("schema_version", result_schema_version) > result_schema_version) {
      throw ScenarioError({}, "schema_version", "written by a later version of foretrain", "this one's result");
    }
    Result result;
    JsonReader reader(json);
    fields(reader, result);
    return result;
  } catch (const Json::exception& error) {
    throw ScenarioError({}, "", JsonReader::without_number(error), JsonReader::as_written);
  }
}

}  // namespace foretrain
