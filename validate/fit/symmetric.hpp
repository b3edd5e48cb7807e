// Inverses of small symmetric matrices, for fits of a handful of constants.
#pragma once

#include <Eigen/Core>
#include <optional>

namespace foretrain {

/// Of a positive definite matrix (Cholesky). Nothing where a pivot falls below 1e-12 of its diagonal entry: the matrix
/// is singular for all that double precision can tell.
std::optional<Eigen::MatrixXd> inverse(const Eigen::MatrixXd& matrix);

}  // namespace foretrain
