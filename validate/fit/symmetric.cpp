#include "validate/fit/symmetric.hpp"

#include <cmath>
#include <cstddef>

namespace foretrain {

Matrix square(std::size_t n) { return Matrix(n, std::vector<double>(n, 0.0)); }

std::optional<Matrix> inverse(const Matrix& matrix) {
  constexpr double least_pivot = 1e-12;
  const std::size_t n = matrix.size();
  Matrix lower = square(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
      if (i != j) {
        lower[i][j] = sum / lower[j][j];
      } else if (sum > least_pivot * std::abs(matrix[i][i])) {
        lower[i][i] = std::sqrt(sum);
      } else {
        return std::nullopt;
      }
    }
  }
  Matrix result = square(n);
  for (std::size_t column = 0; column < n; ++column) {
    std::vector<double> x(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      double sum = i == column ? 1.0 : 0.0;
      for (std::size_t k = 0; k < i; ++k) sum -= lower[i][k] * x[k];
      x[i] = sum / lower[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) x[i] -= lower[k][i] * x[k];
      x[i] /= lower[i][i];
    }
    for (std::size_t i = 0; i < n; ++i) result[i][column] = x[i];
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.size(), std::vector<double>(b.empty() ? 0 : b.front().size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < b[k].size(); ++j) result[i][j] += a[i][k] * b[k][j];
    }
  }
  return result;
}

std::vector<double> product(const Matrix& a, const std::vector<double>& x) {
  std::vector<double> result(a.size(), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < x.size(); ++k) result[i] += a[i][k] * x[k];
  }
  return result;
}

}  // namespace foretrain
