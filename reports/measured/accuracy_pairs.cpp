#include "reports/measured/accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/base/error.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/measured/measured.hpp"
#include "validate/learn/learn.hpp"

namespace foretrain {

namespace {

bool is_below(const std::string& cell_key, const std::string& key) {
  return cell_key == key || cell_key.starts_with(key + ".");
}

/// A rival with its cells sorted into those that must differ, by key, and those that must not.
struct SortedRival {
  Rival rival;
  std::vector<std::string> varied;  ///< one per chosen key
  std::string common;
};

std::string text_of(const Override& cell) { return fmt::format("{}={}\n", cell.key, cell.value); }

SortedRival sorted(const Rival& rival, const std::vector<std::string>& keys) {
  SortedRival result{rival, std::vector<std::string>(keys.size()), ""};
  result.common = fmt::format("{}\n{}\n{}\n", rival.row->where.file, rival.comparison.quantity, rival.row->base);
  for (const Override& cell : rival.row->overrides) {
    const auto key = std::ranges::find_if(keys, [&](const auto& k) { return is_below(cell.key, k); });
    (key == keys.end() ? result.common : result.varied[static_cast<std::size_t>(key - keys.begin())]) += text_of(cell);
  }
  return result;
}

/// Ratio of the quality of `a` to that of `b`.
double advantage(const std::string& quantity, double a, double b) { return is_rate(quantity) ? a / b : b / a; }

void check_keys(const std::vector<Rival>& rivals, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const bool known = std::ranges::any_of(rivals, [&](const Rival& rival) {
      const std::vector<Override>& cells = rival.row->overrides;
      return std::ranges::any_of(cells, [&](const Override& cell) { return is_below(cell.key, key); });
    });
    if (!known)
      throw UsageError(fmt::format("--pairs {}: no case sets this key; name one of the tables' columns", key));
  }
}

/// By what must be equal, in order of appearance; the best of each scenario.
std::vector<std::vector<SortedRival>> fields_of(const std::vector<Rival>& rivals,
                                                const std::vector<std::string>& keys) {
  std::vector<std::vector<SortedRival>> fields;
  std::map<std::string, std::size_t> known;
  for (const Rival& rival : rivals) {
    SortedRival next = sorted(rival, keys);
    const auto [place, is_new] = known.emplace(next.common, fields.size());
    if (is_new) fields.emplace_back();
    std::vector<SortedRival>& field = fields[place->second];
    const auto same = std::ranges::find_if(field, [&](const SortedRival& r) { return r.varied == next.varied; });
    if (same == field.end()) {
      field.push_back(std::move(next));
    } else if (advantage(rival.comparison.quantity, rival.comparison.measured, same->rival.comparison.measured) > 1.0) {
      *same = std::move(next);
    }
  }
  return fields;
}

void count(PairReport& report, const Comparison& a, const Comparison& b) {
  const double measured = advantage(a.quantity, a.measured, b.measured);
  if (measured < 1.0) return count(report, b, a);
  if (measured <= 1.0 + measured_apart) {
    ++report.close;
    return;
  }
  const double predicted = advantage(a.quantity, a.predicted, b.predicted);
  const auto [first, second] = std::minmax(a.group, b.group);
  const std::string name = first == second ? first : first + " / " + second;
  auto group = std::ranges::find(report.groups, name, &PairGroup::name);
  if (group == report.groups.end()) group = report.groups.insert(group, {name, 0, 0});
  ++group->n;
  ++report.n;
  if (predicted > 1.0) {
    ++group->right;
    ++report.right;
  } else {
    report.wrong.push_back({a.name, b.name, name, a.quantity, measured, predicted});
  }
}

}  // namespace

PairReport compare_pairs(const std::vector<Rival>& rivals, const std::vector<std::string>& keys) {
  check_keys(rivals, keys);
  PairReport report;
  report.keys = keys;
  for (const std::vector<SortedRival>& field : fields_of(rivals, keys)) {
    for (std::size_t i = 0; i < field.size(); ++i) {
      for (std::size_t j = i + 1; j < field.size(); ++j) {
        if (std::ranges::equal(field[i].varied, field[j].varied, std::ranges::not_equal_to())) {
          count(report, field[i].rival.comparison, field[j].rival.comparison);
        }
      }
    }
  }
  return report;
}

}  // namespace foretrain
