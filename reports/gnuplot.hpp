// Pictures by gnuplot: scripts in, SVG out.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace foretrain {

/// Colours that people with any colour vision can tell apart (Okabe and Ito 2008, "Color Universal Design").
inline constexpr std::array<std::string_view, 7> palette = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                            "#E69F00", "#56B4E9", "#4D4D4D"};

/// A text as a string of gnuplot's language. Nothing in it is interpreted; control characters become blanks.
std::string gnuplot_string(std::string_view text);

/// The start of every script: an SVG of this size in pixels on white, with plain axes and a light grid.
std::string gnuplot_preamble(int width, int height);

/// Where a panel's plot area lies in the picture, in pixels from its upper left corner, as commands.
std::string gnuplot_margins(int picture_width, int picture_height, int left, int right, int top, int bottom);

/// What the script draws. The same script gives the same bytes. Throws UsageError when gnuplot is missing, and
/// std::runtime_error with its message when it rejects the script.
std::string run_gnuplot(const std::string& script);

}  // namespace foretrain
