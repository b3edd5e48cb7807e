#include "validate/host_replay/wire.hpp"

#include "model/hardware/transport.hpp"

namespace foretrain {

Bytes model_wire_bytes(const std::string& protocol, Bytes payload) {
  Transport transport;
  transport.protocol = protocol == "udp" ? Protocol::udp : Protocol::tcp;
  transport.link_layer = LinkLayer::ethernet_in_software;
  return wire_bytes(payload, transport);
}

}  // namespace foretrain
