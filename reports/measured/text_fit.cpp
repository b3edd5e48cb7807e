#include "reports/measured/text_fit.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/print/table.hpp"

namespace foretrain {
namespace {

std::string constants_text(const std::vector<RobustConstant>& constants) {
  TextTable table("lrr", {"constant", "before", "after"});
  for (const RobustConstant& constant : constants) {
    table.add_row({constant.name, fmt::format("{:.4g}", constant.before), fmt::format("{:.4g}", constant.after)});
  }
  return table.text(2);
}

std::string errors_text(const std::vector<PointErrors>& errors) {
  TextTable table("llrrr", {"group", "GPU", "n", "MAPE", "bias"});
  for (const PointErrors& error : errors) {
    table.add_row({error.group, error.family, fmt::format("{}", error.points), percent_text(error.mape),
                   signed_percent(error.bias)});
  }
  return table.text(2);
}

nlohmann::ordered_json constants_json(const std::vector<RobustConstant>& constants) {
  auto json = nlohmann::ordered_json::object();
  for (const RobustConstant& constant : constants) json[constant.name] = constant.after;
  return json;
}

nlohmann::ordered_json errors_json(const std::vector<PointErrors>& errors) {
  auto json = nlohmann::ordered_json::array();
  for (const PointErrors& e : errors) {
    json.push_back({{"group", e.group}, {"gpu", e.family}, {"n", e.points}, {"mape", e.mape}, {"bias", e.bias}});
  }
  return json;
}

PointErrors of_all(const std::vector<PointErrors>& errors) {
  return together(errors, [](const PointErrors&) { return true; });
}

}  // namespace

std::string to_text(const FitResult& result) {
  const RobustFit& found = result.found;
  std::string text = fmt::format("Fitted ({} evaluations)\n\n{}\n{}", found.evaluations,
                                 constants_text(found.constants), errors_text(result.errors));
  if (!found.undetermined.empty()) text += "\nNot determined, as published:\n";
  for (const Undetermined& one : found.undetermined) text += fmt::format("  {}: {}\n", one.name, one.why);
  return text;
}

std::string to_text(const std::vector<LeftOut>& left_out) {
  std::string text = "Each GPU predicted by a fit on the others\n\n";
  TextTable table("lrr", {"left out", "n", "MAPE"});
  for (const LeftOut& left : left_out) {
    const PointErrors all = of_all(left.predicted);
    table.add_row({left.gpu, fmt::format("{}", all.points), percent_text(all.mape)});
  }
  text += table.text(2);
  for (const LeftOut& left : left_out) {
    text += fmt::format("\nWithout {}\n\n{}", left.gpu, errors_text(left.predicted));
    if (!left.by_rule.empty()) {
      text += fmt::format("\n  energies from other generations (after: by their process)\n\n{}",
                          constants_text(left.by_rule));
    }
  }
  return text;
}

std::string fit_json(const FitResult* result, const std::vector<LeftOut>& left_out) {
  nlohmann::ordered_json json;
  if (result != nullptr) {
    json["constants"] = constants_json(result->found.constants);
    json["groups"] = errors_json(result->errors);
  }
  for (const LeftOut& left : left_out) {
    json["left_out"].push_back({{"gpu", left.gpu},
                                {"mape", of_all(left.predicted).mape},
                                {"constants", constants_json(left.fitted.found.constants)},
                                {"by_rule", constants_json(left.by_rule)},
                                {"groups", errors_json(left.predicted)}});
  }
  return json.dump(2);
}

}  // namespace foretrain
