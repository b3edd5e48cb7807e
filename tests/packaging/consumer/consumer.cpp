#include <cstdio>

#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"

int main(int, char** argv) {
  const foretrain::Result result = foretrain::predict(foretrain::load_scenario(argv[1]), foretrain::Fidelity::estimate);
  std::printf("%.6g\n", result.time().value());
}
