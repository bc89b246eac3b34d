// The file at one end of a transfer: read through the page cache if the bytes are cached, else with
// direct I/O.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "host/files.hpp"

namespace waywiser::transfer {

// A system call on a file failed; what() names the call, error() is errno.
class FileError : public std::runtime_error {
public:
    FileError(const std::string& what, int error);
    [[nodiscard]] int error() const { return error_; }

private:
    int error_;
};

// Throws FileError, with EBADF, for a descriptor that is not open for writing. `use`: what it is
// for, in the message.
void check_writable(int descriptor, const char* use);

// Thread safe. Does not own the descriptor, which must stay open during its lifetime.
class FileEnd {
public:
    explicit FileEnd(int file);

    // Reads up to `bytes` at offset `at` into `to`, fewer only at the end of the file. Uses direct
    // I/O for bytes that are not cached if `to` and `at` have the same offset within a disk block
    // and `padded` is set: the memory before and after `to`, up to whole blocks, may be
    // overwritten. Throws FileError.
    std::size_t read(std::byte* to, std::size_t bytes, std::uint64_t at, bool padded);
    // Writes all bytes. Throws FileError.
    void write(const std::byte* from, std::size_t bytes, std::uint64_t at) const;
    void sync() const;

private:
    std::size_t read_buffered(std::byte* to, std::size_t bytes, std::uint64_t at) const;
    // Whether all of the bytes are in the page cache. Reads at most one block.
    bool is_cached(std::size_t bytes, std::uint64_t at);
    // Returns false if direct I/O does not work for the file.
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
