#include "sim/link_sharing.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "model/base/own_file.hpp"

namespace foretrain {

namespace {

using MakeSharing = LinkSharing*(const RoutedLinks&);

MakeSharing* load_library() {
  try {
    return reinterpret_cast<MakeSharing*>(function_of_module(FORETRAIN_SIMGRID_LIBRARY, "foretrain_share_links"));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format(
        "flows meet, and SimGrid cannot be loaded: {}; install SimGrid, or ask for --fidelity estimate", error.what()));
  }
}

MakeSharing& make_sharing() {
  static MakeSharing* const make = load_library();
  return *make;
}

}  // namespace

std::unique_ptr<LinkSharing> LinkSharing::make(const RoutedLinks& links) {
  return std::unique_ptr<LinkSharing>(make_sharing()(links));
}

}  // namespace foretrain
