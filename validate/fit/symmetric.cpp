#include "validate/fit/symmetric.hpp"

#include <Eigen/Cholesky>

namespace foretrain {

std::optional<Eigen::MatrixXd> inverse(const Eigen::MatrixXd& matrix) {
  constexpr double least_pivot = 1e-12;
  const Eigen::LLT<Eigen::MatrixXd> factors(matrix);
  const Eigen::ArrayXd pivots = factors.matrixLLT().diagonal().array().square();
  const bool positive = factors.info() == Eigen::Success;
  if (!positive || (pivots <= least_pivot * matrix.diagonal().array().abs()).any()) return std::nullopt;
  return factors.solve(Eigen::MatrixXd::Identity(matrix.rows(), matrix.cols()));
}

}  // namespace foretrain
