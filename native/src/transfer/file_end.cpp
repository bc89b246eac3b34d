#include "transfer/file_end.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace waywiser::transfer {
namespace {

using host::kDiskBlock;

std::string described(const std::string& what, int error) {
    std::string text = what + ": " + std::strerror(error);
    if (error == ENOSPC) text += "; free space on the disk";
    return text;
}

}  // namespace

FileError::FileError(const std::string& what, int error)
    : std::runtime_error(described(what, error)), error_(error) {}

int FileEnd::direct() {
    const std::lock_guard lock(opening_);
    if (direct_.get() < 0) {
        const std::string own = "/proc/self/fd/" + std::to_string(file_);
        direct_ = host::Descriptor(open(own.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
        if (direct_.get() < 0) try_direct_ = false;
    }
    return direct_.get();
}

std::size_t FileEnd::read_buffered(std::byte* to, std::size_t bytes, std::uint64_t at) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t now = pread(file_, to + done, bytes - done, static_cast<off_t>(at + done));
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) throw FileError("reading a file at byte " + std::to_string(at + done), errno);
        if (now == 0) break;
        done += static_cast<std::size_t>(now);
    }
    return done;
}

bool FileEnd::read_direct(std::byte* to, std::size_t bytes, std::uint64_t at, std::size_t& done) {
    const int file = direct();
    if (file < 0) return false;
    const std::size_t before = at % kDiskBlock;
    const std::size_t span = (before + bytes + kDiskBlock - 1) / kDiskBlock * kDiskBlock;
    std::size_t got = 0;
    while (got < before + bytes) {
        const ssize_t now =
            pread(file, to - before + got, span - got, static_cast<off_t>(at - before + got));
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) {  // some file systems open with O_DIRECT and refuse the read
            try_direct_ = false;
            return false;
        }
        got += static_cast<std::size_t>(now);
        if (now == 0 || static_cast<std::size_t>(now) % kDiskBlock != 0) break;  // the end
    }
    done = got > before ? std::min(bytes, got - before) : 0;
    if (done == bytes) return true;
    // A short direct read is the end of the file, or one that the cache knows better.
    done += read_buffered(to + done, bytes - done, at + done);
    return true;
}

std::size_t FileEnd::read(std::byte* to, std::size_t bytes, std::uint64_t at, bool room) {
    std::size_t done = 0;
    if (nowait_ && room && try_direct_) {
        iovec piece{.iov_base = to, .iov_len = bytes};
        const ssize_t now = preadv2(file_, &piece, 1, static_cast<off_t>(at), RWF_NOWAIT);
        // Linux 5.9 and 5.10 may return 0 before the end too: what follows finds the true one.
        if (now > 0) done = static_cast<std::size_t>(now);
        if (now < 0 && errno != EAGAIN && errno != EINTR) nowait_ = false;
    }
    if (done == bytes) return done;
    std::size_t rest = 0;
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % kDiskBlock == at % kDiskBlock;
    // What is cached in part is read anew as a whole: direct I/O wants whole blocks.
    if (nowait_ && room && aligned && try_direct_ && read_direct(to, bytes, at, rest)) return rest;
    return done + read_buffered(to + done, bytes - done, at + done);
}

void FileEnd::write(const std::byte* from, std::size_t bytes, std::uint64_t at) const {
    while (bytes > 0) {
        const ssize_t now = pwrite(file_, from, bytes, static_cast<off_t>(at));
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) throw FileError("writing a file at byte " + std::to_string(at), errno);
        from += now;
        at += static_cast<std::uint64_t>(now);
        bytes -= static_cast<std::size_t>(now);
    }
}

void FileEnd::sync() const {
    if (fdatasync(file_) != 0) throw FileError("bringing a file to its disk (fdatasync)", errno);
}

}  // namespace waywiser::transfer
