#include "reports/cli/program.hpp"

int main(int argc, char** argv) { return foretrain::run_program(argc, argv); }
