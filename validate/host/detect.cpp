#include "validate/host/detect.hpp"

#include "validate/host/measurements.hpp"

namespace foretrain {

Node detect_node() {
  const HostMachine machine = this_machine();
  Node node;
  node.name = "this machine";
  node.cpu.name = machine.processor;
  node.cpu.cores = machine.cores;
  node.cpu.memory = machine.memory;
  return node;
}

}  // namespace foretrain
