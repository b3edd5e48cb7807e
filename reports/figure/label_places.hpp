// Labels of points, where they cover neither dots nor lines nor each other.
#pragma once

#include "reports/figure/figure.hpp"

namespace foretrain {

/// Moves the panel's free labels beside, above or below their places; those that fit nowhere are left out, the last
/// first. The panel's size and ranges are known.
void place_free_labels(Panel& panel);

}  // namespace foretrain
