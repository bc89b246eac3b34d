// Reads of files into memory of any kind, and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transfer/caller_stream.hpp"
#include "transfer/completion.hpp"
#include "transfer/wait_for_host.hpp"

namespace waywiser::transfer {

// The bytes of a file from an offset on. Does not own the descriptor.
struct FileRange {
    int file = -1;
    std::uint64_t offset = 0;
};

// What a write does when the file has its bytes.
struct WriteEnd {
    bool truncate = false;  // the file ends with the last of them
    bool sync = false;  // they have reached the disk; then they go there by direct I/O if they can
};

// `moved`: bytes read or written, also if an exception is thrown before all are.
void read(Engine& engine, FileRange from, void* to, std::size_t bytes, const CallerStream& stream,
          std::size_t& moved);
void write(Engine& engine, FileRange to, const void* from, std::size_t bytes,
           const CallerStream& stream, std::size_t& moved, WriteEnd end = {});

// The same, but wait until the deadline at the latest. Return the
// transfer if it has not ended by then, with `moved` 0: it goes on.
WaitResult read_and_wait(const std::shared_ptr<Engine>& engine, FileRange from, void* to,
                         std::size_t bytes, const CallerStream& stream, const Deadline& deadline,
                         std::size_t& moved);
WaitResult write_and_wait(const std::shared_ptr<Engine>& engine, FileRange to, const void* from,
                          std::size_t bytes, const CallerStream& stream, const Deadline& deadline,
                          std::size_t& moved, WriteEnd end = {});

// Return at once; the transfer starts after the work in the stream.
Completion read_async(const std::shared_ptr<Engine>& engine, FileRange from, void* to,
                      std::size_t bytes, const CallerStream& stream);
Completion write_async(const std::shared_ptr<Engine>& engine, FileRange to, const void* from,
                       std::size_t bytes, const CallerStream& stream, WriteEnd end = {});

}  // namespace waywiser::transfer
