// The file at one end of a transfer: read through the page cache where the bytes are cached, around
// it where they are not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "host/files.hpp"

namespace waywiser::transfer {

// A system call on a file failed: what was done, and errno.
class FileError : public std::runtime_error {
public:
    FileError(const std::string& what, int error);
    [[nodiscard]] int error() const { return error_; }

private:
    int error_;
};

// Thread safe. Does not own the descriptor, which stays open as long as this lives.
class FileEnd {
public:
    explicit FileEnd(int file);

    // Reads up to `bytes` at `at` into `to`, fewer only at the end of the file. Direct I/O is used
    // for bytes that are not cached if `to` lies as far behind a disk block as `at` does, and
    // `room` bytes before and behind it, up to whole blocks, may be written. Throws FileError.
    std::size_t read(std::byte* to, std::size_t bytes, std::uint64_t at, bool room);
    // Writes all bytes. Throws FileError.
    void write(const std::byte* from, std::size_t bytes, std::uint64_t at) const;
    void sync() const;

private:
    std::size_t read_buffered(std::byte* to, std::size_t bytes, std::uint64_t at) const;
    // Whether all of the bytes are in the page cache. Reads at most one block.
    bool is_cached(std::size_t bytes, std::uint64_t at);
    // Nothing where direct I/O does not work for the file.
    bool read_direct(std::byte* to, std::size_t bytes, std::uint64_t at, std::size_t& done);
    int direct();

    int file_;
    std::atomic<bool> counts_{true};  // the system counts cached pages (cachestat)
    std::atomic<bool> nowait_{true};  // the file system knows RWF_NOWAIT
    std::atomic<bool> try_direct_{true};
    std::mutex opening_;
    host::Descriptor direct_;  // the same file with O_DIRECT
};

}  // namespace waywiser::transfer
