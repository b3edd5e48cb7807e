#include "model/base/reads.hpp"

#include <utility>

namespace foretrain {

namespace {

thread_local ReadSet noted;

}  // namespace

void note_read(std::size_t number) { noted.set(number); }

void note_reads(const ReadSet& numbers) { noted |= numbers; }

const ReadSet& reads_so_far() { return noted; }

ReadScope::ReadScope() : before_(std::exchange(noted, {})) {}

ReadScope::~ReadScope() { noted |= before_; }

}  // namespace foretrain
