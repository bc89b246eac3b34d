// The file at one end of a transfer. It is read through the page cache if the bytes are cached,
// else with direct I/O, and written through the page cache, or with direct I/O if that was asked
// for.
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

// Whether a descriptor is open with O_DIRECT.
bool is_direct(int descriptor);

// Throws FileError, with EBADF, for a descriptor that is not open for writing. `use`: what it is
// for, in the message.
void check_writable(int descriptor, const char* use);

// How the bytes of a write reach the file.
enum class Writing { none, cached, direct };

// Thread safe. Does not own the descriptor, which must stay open during its lifetime.
class FileEnd {
public:
    // `writing`: none for a file that is read. The descriptor may be open with O_DIRECT: what goes
    // through the page cache then uses a descriptor without it.
    explicit FileEnd(int file, Writing writing = Writing::none);

    // Reads up to `bytes` at offset `at` into `to`, fewer only at the end of the file. Uses direct
    // I/O for bytes that are not cached if `to` and `at` have the same offset within a disk block
    // and `padded` is set: the memory before and after `to`, up to whole blocks, may be
    // overwritten. Throws FileError.
    std::size_t read(std::byte* to, std::size_t bytes, std::uint64_t at, bool padded);
    // Whether some block of the bytes is in the page cache, or may be. Takes less time than to look
    // at all of them.
    bool has_cached_block(std::size_t bytes, std::uint64_t at);
    // Writes all bytes. Whole blocks go directly to the disk if writes_directly() and `from` and
    // `at` have the same offset within a block. Throws FileError.
    void write(const std::byte* from, std::size_t bytes, std::uint64_t at);
    // Whether direct I/O was asked for and the file system allows it. False for one in memory.
    [[nodiscard]] bool writes_directly() const { return write_direct_; }
    // The file ends at byte `end` from now on. Throws FileError.
    void truncate(std::uint64_t end) const;
    void sync() const;
    // What is left to do when all bytes up to `end` are written. Throws FileError.
    void finish(std::uint64_t end, bool truncates, bool syncs) const {
        if (truncates) truncate(end);
        if (syncs) sync();
    }

private:
    std::size_t read_buffered(std::byte* to, std::size_t bytes, std::uint64_t at) const;
    // Whether all of the bytes are in the page cache. Reads at most one block.
    bool is_cached(std::size_t bytes, std::uint64_t at);
    // Returns false if direct I/O does not work for the file.
    bool read_direct(std::byte* to, std::size_t bytes, std::uint64_t at, std::size_t& done);
    void write_cached(const std::byte* from, std::size_t bytes, std::uint64_t at) const;
    // Returns the bytes that are written: fewer if the file system does not take more directly.
    std::size_t write_direct(const std::byte* from, std::size_t bytes, std::uint64_t at);
    int direct();

    int file_;          // for access through the page cache
    const int access_;  // O_RDONLY or O_WRONLY: of the direct descriptor
    host::Descriptor
        cached_;  // the same file without O_DIRECT, if the caller's descriptor has that
    std::atomic<bool> write_direct_{false};
    std::atomic<bool> counts_{true};  // the system counts cached pages (cachestat)
    std::atomic<bool> nowait_{true};  // the file system knows RWF_NOWAIT
    std::atomic<bool> try_direct_{true};
    std::mutex opening_;
    host::Descriptor direct_;  // the same file with O_DIRECT
};

}  // namespace waywiser::transfer
