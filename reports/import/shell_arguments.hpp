// The options of the commands in a shell script: `--key value`, wherever they stand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/import/settings.hpp"

namespace foretrain {

/// Every option as a setting "--key" with the word behind it, in the order of the file; those of `#SBATCH` lines as
/// "#SBATCH --key". Quotes, comments, continued lines, arrays and strings of options are understood, variables and
/// $(( … )) are put in as far as the file sets them. What it does not set stays as it is written ("$RANK"). Conditions
/// and loops are not followed: what is assigned last above a use counts. Throws ScenarioError for a quote that is not
/// closed.
std::vector<ForeignSetting> shell_arguments(std::string_view text, const std::string& file);

}  // namespace foretrain
