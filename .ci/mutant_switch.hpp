// Compiled into every source by .ci/mutants: mistake i is on in a process whose environment says FORETRAIN_MUTANT=i;
// FORETRAIN_REACHED names a folder in which each mistake that is passed leaves an empty file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

/// Mistakes that have left their file; .ci/mutant_cases.cpp forgets them where a test begins.
inline bool foretrain_passed[4096];

inline bool foretrain_mutant_now(int mistake) {
  static const char* const said = std::getenv("FORETRAIN_MUTANT");
  static const int on = said != nullptr ? std::atoi(said) : -1;
  static const bool tells = std::getenv("FORETRAIN_REACHED") != nullptr;
  if (tells && !foretrain_passed[mistake]) {
    foretrain_passed[mistake] = true;
    char name[512];
    std::snprintf(name, sizeof name, "%s/%d", std::getenv("FORETRAIN_REACHED"), mistake);
    const int file = ::open(name, O_CREAT | O_WRONLY, 0666);
    if (file >= 0) ::close(file);
  }
  return mistake == on;
}

/// False in what the compiler computes: such a mistake is built by itself.
constexpr bool foretrain_mutant(int mistake) { return !std::is_constant_evaluated() && foretrain_mutant_now(mistake); }
