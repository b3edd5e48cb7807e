// What a name of the catalogue stands for: its figures, then its file as it is written, comments included.
#pragma once

#include <string>

namespace foretrain {

// Each throws ScenarioError for a name that the catalogue does not have.
std::string shown_scenario(const std::string& name);
std::string shown_hardware(const std::string& name);
std::string shown_model(const std::string& name);
std::string shown_trainer(const std::string& name);

}  // namespace foretrain
