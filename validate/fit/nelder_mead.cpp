#include "validate/fit/nelder_mead.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace foretrain {
namespace {

using Point = std::vector<double>;
struct Vertex {
  Point at;
  double value = 0.0;
};

constexpr double first_step = 0.25;    // of a variable's value, in the first simplex
constexpr double restart_step = 0.08;  // in later ones
constexpr double enough = 1e-4;        // relative gain below which a simplex or the search ends

class Search {
 public:
  Search(const std::function<double(const Point&)>& function, const std::vector<SearchVariable>& variables, int budget)
      : function_(function), variables_(variables), budget_(budget) {}

  Minimum run() {
    Point start;
    for (const SearchVariable& variable : variables_) start.push_back(variable.start);
    Vertex best = evaluated(std::move(start));
    double step = first_step;
    while (!variables_.empty() && evaluations_ < budget_) {
      const double before = best.value;
      best = descend(best, step);
      if (best.value > before * (1.0 - enough)) break;
      step = restart_step;
    }
    return {best.at, best.value, evaluations_};
  }

 private:
  Vertex evaluated(Point at) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = std::clamp(at[i], variables_[i].minimum, variables_[i].maximum);
    }
    ++evaluations_;
    const double value = function_(at);
    return {std::move(at), value};
  }

  // Away from the bound that is nearer, so that no simplex is flat.
  double displaced(std::size_t i, double value, double step) const {
    const SearchVariable& variable = variables_[i];
    const double length = step * std::max(std::abs(value), 0.02 * (variable.maximum - variable.minimum));
    return value + length <= variable.maximum ? value + length : value - length;
  }

  std::vector<Vertex> simplex_around(const Vertex& best, double step) {
    std::vector<Vertex> simplex = {best};
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      Point moved = best.at;
      moved[i] = displaced(i, moved[i], step);
      simplex.push_back(evaluated(std::move(moved)));
    }
    return simplex;
  }

  // The point on the line from the worst vertex through the centre of the others; 1 is the mirror image.
  Vertex along(const Point& centre, const Vertex& worst, double distance) {
    Point at(centre.size());
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = centre[i] + distance * (centre[i] - worst.at[i]);
    return evaluated(std::move(at));
  }

  static Point centre_of_all_but_last(const std::vector<Vertex>& simplex) {
    Point centre(simplex.front().at.size(), 0.0);
    for (std::size_t v = 0; v + 1 < simplex.size(); ++v) {
      for (std::size_t i = 0; i < centre.size(); ++i) {
        centre[i] += simplex[v].at[i] / static_cast<double>(simplex.size() - 1);
      }
    }
    return centre;
  }

  void shrink(std::vector<Vertex>& simplex) {
    for (std::size_t v = 1; v < simplex.size(); ++v) {
      Point at = simplex[v].at;
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = 0.5 * (at[i] + simplex[0].at[i]);
      simplex[v] = evaluated(std::move(at));
    }
  }

  Vertex descend(const Vertex& start, double step) {
    std::vector<Vertex> simplex = simplex_around(start, step);
    const auto lower = [](const Vertex& a, const Vertex& b) { return a.value < b.value; };
    while (true) {
      std::stable_sort(simplex.begin(), simplex.end(), lower);
      const Vertex& worst = simplex.back();
      const double spread = worst.value - simplex.front().value;
      if (evaluations_ >= budget_ || spread <= 0.1 * enough * std::abs(simplex.front().value)) return simplex.front();
      const Point centre = centre_of_all_but_last(simplex);
      Vertex next = along(centre, worst, 1.0);
      if (next.value < simplex.front().value) {
        next = std::min(next, along(centre, worst, 2.0), lower);
      } else if (next.value >= simplex[simplex.size() - 2].value) {
        next = along(centre, worst, next.value < worst.value ? 0.5 : -0.5);
      }
      if (next.value < worst.value) {
        simplex.back() = std::move(next);
      } else {
        shrink(simplex);
      }
    }
  }

  const std::function<double(const Point&)>& function_;
  const std::vector<SearchVariable>& variables_;
  int budget_;
  int evaluations_ = 0;
};

}  // namespace

Minimum minimise(const std::function<double(const std::vector<double>&)>& function,
                 const std::vector<SearchVariable>& variables, int budget) {
  return Search(function, variables, budget).run();
}

}  // namespace foretrain
