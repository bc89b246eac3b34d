// The CPU's caches: written back and emptied of a range, by the instructions made for it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace waywiser::host {

// What flushes here: "clflushopt", "clflush", "dc civac", "dcbf", or "" where nothing does.
std::string flush_instruction();

// Writes back and evicts every line of the range from all cores' caches, by several threads on
// `cpus` where the range is large; returns when the evictions are done. False where nothing can.
bool flush(const void* data, std::size_t bytes, const std::vector<int>& cpus);

// Writes every line of the range again with the bytes it holds, from `cpus`: their caches then own
// the lines, modified.
void dirty(void* data, std::size_t bytes, const std::vector<int>& cpus);

// Smallest cache line of this machine in bytes.
std::size_t line_bytes();

}  // namespace waywiser::host
