// Flushes CPU caches for a range, with the CPU's cache instructions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace waywiser::host {

// The flush instruction: "clflushopt", "clflush", "dc civac", "dcbf", or "" if there is none.
std::string flush_instruction();

// Writes back and evicts every line of the range from all cores' caches, with several threads on
// `cpus` if the range is large; returns when the evictions are done. False if not supported.
bool flush(const void* data, std::size_t bytes, const std::vector<int>& cpus);

// Rewrites every line of the range with its own bytes, from `cpus`: their caches then own the
// lines, modified.
void dirty(void* data, std::size_t bytes, const std::vector<int>& cpus);

// Smallest cache line of this machine in bytes.
std::size_t line_bytes();

}  // namespace waywiser::host
