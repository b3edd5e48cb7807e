// Conversion of a page of text for the screen: its width, its characters, its colours.
#pragma once

#include <string>
#include <string_view>

namespace foretrain {

/// Whether an output may have colours: it is a terminal that has some, and NO_COLOR (https://no-color.org) is not set.
bool has_colours(int descriptor);

/// Pages become as wide as the window, or as COLUMNS says, where standard output is a terminal. Elsewhere they stay as
/// they are, so that files do not depend on who writes them.
void fit_pages_to_window();

/// For people: headings bold where there are colours, ASCII where the locale has nothing else. To stdout.
void print_page(std::string_view page);

/// Lines of help, broken where they are wider than a page, under the column in which their description begins.
std::string wrapped_help(std::string_view help);

/// A line on stderr that is written anew while something goes on, and goes away with the object, or by Ctrl-C. Nothing
/// where stderr is no terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void show(const std::string& text);
  [[nodiscard]] bool visible() const { return terminal_; }

 private:
  bool terminal_, shown_ = false;
};

}  // namespace foretrain
