// Pictures by gnuplot: scripts in, SVG, PNG or PDF out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foretrain {

/// A text as a string of gnuplot's language. Nothing in it is interpreted; control characters become blanks, and bytes
/// that are no UTF-8 U+FFFD, as XML takes neither.
std::string gnuplot_string(std::string_view text);

enum class PictureFormat { svg, png, pdf };

/// By the end of the file's name; nothing where that is none of them.
std::optional<PictureFormat> picture_format(std::string_view path);

inline constexpr double screen_pixels_per_inch = 96.0;

/// The line that a script begins with: so many pixels, of which there are so many an inch. PNG has 192 dots an inch of
/// screens, and 600 of print.
std::string terminal_script(PictureFormat format, int width, int height,
                            double pixels_per_inch = screen_pixels_per_inch);

/// The picture of a script. The same script gives the same bytes. Throws UsageError when gnuplot is missing, and
/// std::runtime_error with its message when it rejects the script.
std::string run_gnuplot(const std::string& script);

}  // namespace foretrain
