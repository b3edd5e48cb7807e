// Small symmetric matrices, for fits of a handful of constants.
#pragma once

#include <optional>
#include <vector>

namespace foretrain {

/// Row by row; n rows of n.
using Matrix = std::vector<std::vector<double>>;

Matrix square(std::size_t n);

/// The inverse of a symmetric positive definite matrix (Cholesky). Nothing where a pivot falls below 1e-12 of its
/// diagonal entry: the matrix is singular for all that double precision can tell.
std::optional<Matrix> inverse(const Matrix& matrix);

Matrix product(const Matrix& a, const Matrix& b);
std::vector<double> product(const Matrix& a, const std::vector<double>& x);

}  // namespace foretrain
