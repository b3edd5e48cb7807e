// What the shipped tables measure: the rows of `validate` and of the page on accuracy.
#pragma once

#include <span>
#include <string_view>

namespace foretrain {

struct MeasuredSubject {
  const char* section;
  const char* title;
  const char* fitted;  ///< what was fitted to its rows; "" where nothing was
  const char* groups;  ///< beginnings of its groups' names, separated by blanks; the longest of all subjects' decides
  bool memory = false;
};
/// By section.
std::span<const MeasuredSubject> measured_subjects();
/// Of a group of the shipped tables; null for others.
const MeasuredSubject* subject_of(std::string_view group, bool memory);

}  // namespace foretrain
