#include "reports/measured/text_fit.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/print/table.hpp"

namespace foretrain {
namespace {

std::string constants_text(const std::vector<FittedConstant>& constants) {
  TextTable table("lrr", {"constant", "before", "after"});
  for (const FittedConstant& constant : constants) {
    table.add_row({constant.name, fmt::format("{:.4g}", constant.before), fmt::format("{:.4g}", constant.after)});
  }
  return table.text(2);
}

std::string errors_text(const std::vector<GroupError>& errors) {
  TextTable table("llrrr", {"group", "GPU", "n", "MAPE", "bias"});
  for (const GroupError& error : errors) {
    table.add_row(
        {error.group, error.gpu, fmt::format("{}", error.rows), percent_text(error.mape), signed_percent(error.bias)});
  }
  return table.text(2);
}

nlohmann::ordered_json constants_json(const std::vector<FittedConstant>& constants) {
  auto json = nlohmann::ordered_json::object();
  for (const FittedConstant& constant : constants) json[constant.name] = constant.after;
  return json;
}

nlohmann::ordered_json errors_json(const std::vector<GroupError>& errors) {
  auto json = nlohmann::ordered_json::array();
  for (const GroupError& e : errors) {
    json.push_back({{"group", e.group}, {"gpu", e.gpu}, {"n", e.rows}, {"mape", e.mape}, {"bias", e.bias}});
  }
  return json;
}

}  // namespace

std::string to_text(const FitResult& result) {
  return fmt::format("Fitted ({} evaluations)\n\n{}\n{}", result.evaluations, constants_text(result.constants),
                     errors_text(result.errors));
}

std::string to_text(const std::vector<LeftOut>& left_out) {
  std::string text = "Each GPU predicted by a fit on the others\n\n";
  TextTable table("lrr", {"left out", "n", "MAPE"});
  for (const LeftOut& left : left_out) {
    int rows = 0;
    for (const GroupError& group : left.predicted) rows += group.rows;
    table.add_row({left.gpu, fmt::format("{}", rows), percent_text(mape_of_gpu(left.predicted, left.gpu))});
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
    json["constants"] = constants_json(result->constants);
    json["groups"] = errors_json(result->errors);
  }
  for (const LeftOut& left : left_out) {
    json["left_out"].push_back({{"gpu", left.gpu},
                                {"mape", mape_of_gpu(left.predicted, left.gpu)},
                                {"constants", constants_json(left.fitted.constants)},
                                {"by_rule", constants_json(left.by_rule)},
                                {"groups", errors_json(left.predicted)}});
  }
  return json.dump(2);
}

}  // namespace foretrain
