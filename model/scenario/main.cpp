// Packs the catalogue while the program is built: foretrain_pack FOLDER FILE.
#include "model/base/files.hpp"
#include "model/scenario/yaml_document.hpp"

int main(int /*arguments*/, char** argument) {
  foretrain::write_file(argument[2], foretrain::pack_catalogue(argument[1]));
  return 0;
}
