// What .ci/mutants compiles every source with: mistake i is on in a process whose environment says FORETRAIN_MUTANT=i;
// FORETRAIN_REACHED names a folder in which each mistake that is passed leaves an empty file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

inline bool foretrain_mutant_now(int mistake) {
  static const char* const said = std::getenv("FORETRAIN_MUTANT");
  static const int on = said != nullptr ? std::atoi(said) : -1;
  static const char* const folder = std::getenv("FORETRAIN_REACHED");
  static bool seen[4096];
  if (folder != nullptr && !seen[mistake]) {
    seen[mistake] = true;
    char name[512];
    std::snprintf(name, sizeof name, "%s/%d", folder, mistake);
    const int file = ::open(name, O_CREAT | O_WRONLY, 0666);
    if (file >= 0) ::close(file);
  }
  return mistake == on;
}

/// False in what the compiler computes: such a mistake is built by itself.
constexpr bool foretrain_mutant(int mistake) {
  return !std::is_constant_evaluated() && foretrain_mutant_now(mistake);
}
