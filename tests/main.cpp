#include <cstdlib>

// Catch2 brings main(). A build folder may lie anywhere; the data is that of the source.
[[maybe_unused]] static const int data_folder = setenv("FORETRAIN_SCENARIOS", FORETRAIN_SOURCE_DIR "/scenarios", 0);
