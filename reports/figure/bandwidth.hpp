// Time and bus bandwidth of a collective by message size, one curve per algorithm, measured points beside them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// One message.
struct BandwidthPoint {
  Bytes size;
  Seconds time;
  BytesPerSecond bus_bandwidth;  ///< nccl-tests' convention
  Seconds low = {}, high = {};   ///< the time's range; zero: not to be drawn

  /// The same message in another time.
  [[nodiscard]] BandwidthPoint in(Seconds other) const { return {size, other, bus_bandwidth * (time / other)}; }
};

struct BandwidthCurve {
  std::string name;                                   ///< "auto"
  std::vector<std::optional<BandwidthPoint>> points;  ///< one per size of the figure
};

struct BandwidthPanel {
  std::string title;     ///< "dgx-h100"
  std::string subtitle;  ///< "all_reduce, 8 GPUs"
  std::vector<BandwidthCurve> curves;
  std::vector<BandwidthPoint> measured;
};

struct BandwidthFigure {
  std::vector<Bytes> sizes;  ///< increasing
  std::vector<BandwidthPanel> panels;
};

/// A table per panel: sizes down; time and bus bandwidth of each algorithm across.
std::string to_text(const BandwidthFigure& bandwidth);

/// Bus bandwidth above, time below, one column per panel.
Figure to_figure(const BandwidthFigure& bandwidth);

}  // namespace foretrain
