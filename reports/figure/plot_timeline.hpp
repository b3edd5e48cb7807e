// Timeline of a step: one row for each stream, copy engine, link and host thread.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct TimelineFigure {
  std::string title;
  std::vector<TimelineEntry> entries = {};
  Seconds from = {};                    ///< the part of the time that is shown
  Seconds until = Seconds::infinity();  ///< infinity: to the end
  int pixels = 760;                     ///< bars that are narrower than one of these are drawn as one
};

/// Host threads stand above the rest, otherwise rows keep the order of the entries. A bar that has room for it carries
/// its name; bars too narrow to be seen apart are drawn as one. Throws UsageError where nothing happens in
/// the part that is shown.
Figure to_figure(const TimelineFigure& timeline);

}  // namespace foretrain
