
#include "model/cost/power.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

std::size_t index_of(std::string_view name) {
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {
    if (chip_generations[i].name == name) return i;
  }
  throw std::invalid_argument("no such generation");
}

constexpr auto tensor = &GenerationPower::tensor_pj;

PowerConstants energies(double turing, double ada) {
  PowerConstants power;
  power.generation[index_of("turing")].tensor_pj = turing;
  power.generation[index_of("ada")].tensor_pj = ada;
  return power;
}

}  // namespace

TEST_CASE("Energy follows a power of the process' nanometres; one known process gives its own, none gives nothing") {
  const auto energy = [](const std::set<std::size_t>& known, std::string_view generation, double ada) {
    return scaled_energy(known, index_of(generation), energies(1.2, ada), tensor);
  };
  const std::size_t turing = index_of("turing"), ada = index_of("ada");
  CHECK(energy({turing, ada}, "volta", 0.6).value() == Approx(1.2));  // Volta and Turing are both 12 nm
  // From 12 to 4 nm energy falls from 1.2 to 0.4, in proportion to the process: at 7 nm it is 0.7.
  CHECK(energy({turing, ada}, "ampere", 0.4).value() == Approx(0.7));
  CHECK(energy({turing}, "ampere", 0.4).value() == Approx(1.2));
  CHECK_FALSE(energy({}, "ampere", 0.4).has_value());
}

TEST_CASE("Of several processes the two nearest in ratio count, generations of one process by their mean") {
  // 8 nm lies between 7 and 12, by 1.14 and 1.5; 4 nm, half of it, does not count.
  PowerConstants power = energies(1.2, 0.1);
  power.generation[index_of("ampere")].tensor_pj = 0.7;
  const std::set<std::size_t> known = {index_of("turing"), index_of("ampere"), index_of("ada")};
  CHECK(scaled_energy(known, index_of("ampere_8nm"), power, tensor).value() == Approx(0.8));
  power.generation[index_of("volta")].tensor_pj = 0.8;
  CHECK(scaled_energy({index_of("volta"), index_of("turing")}, index_of("ada"), power, tensor).value() == Approx(1.0));
}

TEST_CASE("Tensor cores that read registers say nothing of those that read shared memory") {
  PowerConstants power = energies(1.2, 0.4);
  power.generation[index_of("blackwell")].tensor_pj = 0.3;
  const std::set<std::size_t> known = {index_of("turing"), index_of("ada"), index_of("blackwell")};
  CHECK(scaled_energy(known, index_of("hopper"), power, tensor).value() == Approx(0.3));
  CHECK(scaled_energy(known, index_of("ampere"), power, tensor).value() == Approx(0.7));
  // CUDA cores are alike in all.
  power.generation[index_of("ada")].vector_pj = 1.0;
  CHECK(scaled_energy({index_of("ada")}, index_of("hopper"), power, &GenerationPower::vector_pj).value() ==
        Approx(1.0));
}

TEST_CASE("Where nothing was found for a generation, its tensor cores take what follows from the others") {
  const PowerConstants power = energies(1.2, 0.4);
  CHECK(tensor_energy(power, index_of("turing")) == 1.2);
  CHECK(tensor_energy(power, index_of("blackwell_rtx")) == Approx(0.4));  // Ada's process and instructions
  CHECK(tensor_energy(power, index_of("ampere")) == Approx(0.7));
  CHECK(tensor_energy(power, index_of("hopper")) == 0.0);
}
