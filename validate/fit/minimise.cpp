#include "validate/fit/minimise.hpp"

#include <algorithm>
#include <cmath>
#include <nlopt.hpp>

namespace foretrain {

namespace {

using Function = std::function<double(const std::vector<double>&)>;

constexpr double first_step = 0.25;    // of a variable's value, in the first simplex
constexpr double restart_step = 0.08;  // in later ones
constexpr double enough = 1e-4;        // relative gain below which the search ends

double called_by_nlopt(const std::vector<double>& at, std::vector<double>& /*gradient*/, void* function) {
  return (*static_cast<const Function*>(function))(at);
}

nlopt::opt simplex_search(const std::vector<SearchVariable>& variables) {
  nlopt::opt search(nlopt::LN_NELDERMEAD, static_cast<unsigned>(variables.size()));
  std::vector<double> least, most;
  for (const SearchVariable& variable : variables) {
    least.push_back(variable.minimum);
    most.push_back(variable.maximum);
  }
  search.set_lower_bounds(least);
  search.set_upper_bounds(most);
  search.set_ftol_rel(0.1 * enough);
  return search;
}

std::vector<double> steps_from(const std::vector<double>& at, const std::vector<SearchVariable>& variables,
                               double share) {
  std::vector<double> steps;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double range = variables[i].maximum - variables[i].minimum;
    steps.push_back(share * std::max(std::abs(at[i]), 0.02 * range));
  }
  return steps;
}

}  // namespace

Minimum minimise(const Function& function, const std::vector<SearchVariable>& variables, int budget) {
  Minimum best;
  for (const SearchVariable& variable : variables) {
    best.at.push_back(std::clamp(variable.start, variable.minimum, variable.maximum));
  }
  if (variables.empty()) return {{}, function({}), 1};
  nlopt::opt search = simplex_search(variables);
  search.set_min_objective(called_by_nlopt, const_cast<Function*>(&function));
  for (double share = first_step; best.evaluations < budget; share = restart_step) {
    const double before = best.value;
    const bool first = best.evaluations == 0;
    search.set_initial_step(steps_from(best.at, variables, share));
    search.set_maxeval(budget - best.evaluations);
    search.optimize(best.at, best.value);
    best.evaluations += search.get_numevals();
    if (!first && best.value > before * (1.0 - enough)) break;
  }
  return best;
}

}  // namespace foretrain
