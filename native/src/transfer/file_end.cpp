#include "transfer/file_end.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "host/pages.hpp"
#include "host/write_signals.hpp"

namespace waywiser::transfer {
namespace {

using host::kDiskBlock;

std::string described(const std::string& what, int error) {
    std::string text = what + ": " + std::strerror(error);
    if (error == ENOSPC) text += "; free space on the disk";
    if (error == EPIPE) text += "; nothing reads the other end: keep it open";
    if (error == EFBIG) text += "; raise the limit of file sizes (ulimit -f)";
    return text;
}

// Returns the error of a failure at a byte of a file. It names the descriptor if that is not open.
FileError failed_at(const char* what, int file, std::uint64_t at, int error) {
    const std::string text = std::string(what) + " a file at byte " + std::to_string(at);
    if (error != EBADF) return {text, error};
    return {text + " by descriptor " + std::to_string(file) + ", which is not open for " + what,
            error};
}

// Number of pages of a range in the page cache (cachestat, since Linux 6.5); nullopt if the system
// does not support it.
std::optional<std::uint64_t> cached_pages(int file, std::uint64_t at, std::size_t bytes) {
#if defined(SYS_cachestat)
    constexpr long kCachestat = SYS_cachestat;
#else
    constexpr long kCachestat = 451;  // on x86-64, aarch64, POWER and all newer ones
#endif
    struct Range {
        std::uint64_t offset, length;
    } range{at, bytes};
    struct Counts {
        std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } counts{};
    if (syscall(kCachestat, file, &range, &counts, 0) != 0) return std::nullopt;
    return counts.cached;
}

// A block of the bytes, a different one in each call: a block that was read is cached afterwards.
std::uint64_t some_block(std::size_t bytes, std::uint64_t at) {
    const auto now =
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    const std::uint64_t blocks = std::max<std::uint64_t>(bytes / kDiskBlock, 1);
    return at + (now ^ (now >> 12U)) % blocks * kDiskBlock;
}

// Whether nothing can read what is written to a pipe or socket.
bool has_no_reader(int descriptor) {
    struct stat status{};
    if (fstat(descriptor, &status) != 0) return false;
    pollfd state{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (poll(&state, 1, 0) < 0) return false;
    return (S_ISFIFO(status.st_mode) && (state.revents & POLLERR) != 0) ||
           (S_ISSOCK(status.st_mode) && (state.revents & POLLHUP) != 0);
}

std::string own_path(int file) { return "/proc/self/fd/" + std::to_string(file); }

}  // namespace

FileError::FileError(const std::string& what, int error)
    : std::runtime_error(described(what, error)), error_(error) {}

bool is_direct(int descriptor) {
    const int mode = fcntl(descriptor, F_GETFL);
    return mode >= 0 && (mode & O_DIRECT) != 0;
}

void check_writable(int descriptor, const char* use) {
    const int mode = fcntl(descriptor, F_GETFL);
    const bool only_named = mode >= 0 && (mode & O_PATH) != 0;
    const std::string named = std::string(use) + " by descriptor " + std::to_string(descriptor);
    if (mode < 0 || only_named || (mode & O_ACCMODE) == O_RDONLY) {
        throw FileError(named + ", which is not open for writing", EBADF);
    }
    if (has_no_reader(descriptor)) throw FileError(named, EPIPE);
}

FileEnd::FileEnd(int file, Writing writing)
    : file_(file), access_(writing == Writing::none ? O_RDONLY : O_WRONLY) {
    struct stat status{};
    const int mode = fcntl(file, F_GETFL);
    const bool of_disk =
        fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
    const int useless = writing == Writing::none ? O_WRONLY : O_RDONLY;
    try_direct_ = of_disk && mode >= 0 && (mode & O_ACCMODE) != useless;
    struct statfs system{};
    const bool known = fstatfs(file, &system) == 0;
    // There the cache of the underlying file is used, which cachestat does not see.
    counts_ = known && system.f_type != OVERLAYFS_SUPER_MAGIC;
    if (is_direct(file)) {
        cached_ = host::Descriptor(open(own_path(file).c_str(), (mode & O_ACCMODE) | O_CLOEXEC));
        if (cached_.get() >= 0) file_ = cached_.get();
    }
    const bool in_memory = known && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
    write_direct_ = writing == Writing::direct && try_direct_ && !in_memory && direct() >= 0;
}

int FileEnd::direct() {
    const std::lock_guard lock(opening_);
    if (direct_.get() < 0) {
        direct_ = host::Descriptor(open(own_path(file_).c_str(), access_ | O_DIRECT | O_CLOEXEC));
        if (direct_.get() < 0) try_direct_ = false;
    }
    return direct_.get();
}

std::size_t FileEnd::read_buffered(std::byte* to, std::size_t bytes, std::uint64_t at) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t now = pread(file_, to + done, bytes - done, static_cast<off_t>(at + done));
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) throw failed_at("reading", file_, at + done, errno);
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
        if (now < 0) {  // some file systems open with O_DIRECT but reject the read
            try_direct_ = false;
            return false;
        }
        got += static_cast<std::size_t>(now);
        if (now == 0 || static_cast<std::size_t>(now) % kDiskBlock != 0) break;  // the end
    }
    done = got > before ? std::min(bytes, got - before) : 0;
    if (done == bytes) return true;
    // A short direct read is the end of the file, or needs the page cache.
    done += read_buffered(to + done, bytes - done, at + done);
    return true;
}

bool FileEnd::is_cached(std::size_t bytes, std::uint64_t at) {
    if (counts_) {
        if (const auto pages = cached_pages(file_, at, bytes)) {
            const auto page = static_cast<std::uint64_t>(host::page_bytes());
            return *pages >= (at + bytes - 1) / page - at / page + 1;
        }
        counts_ = false;
    }
    return has_cached_block(bytes, at);
}

// A read of more than a block with RWF_NOWAIT cannot be used for this: the kernel starts to read
// ahead all of it, and the disk delivers everything twice. A fast disk may deliver a block within
// the call, which then seems to be cached: so only kernels that cannot count are tried so.
bool FileEnd::has_cached_block(std::size_t bytes, std::uint64_t at) {
    const std::uint64_t some = some_block(bytes, at);
    if (counts_) {
        if (const auto pages = cached_pages(file_, some, 1)) return *pages > 0;
        counts_ = false;
    }
    if (!nowait_) return true;
    std::array<std::byte, kDiskBlock> block{};
    iovec piece{.iov_base = block.data(), .iov_len = std::min(block.size(), bytes)};
    const ssize_t got = preadv2(file_, &piece, 1, static_cast<off_t>(some), RWF_NOWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) nowait_ = false;
    // Linux 5.9 and 5.10 may return 0 before the end too.
    return got > 0 || !nowait_;
}

std::size_t FileEnd::read(std::byte* to, std::size_t bytes, std::uint64_t at, bool padded) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % kDiskBlock == at % kDiskBlock;
    std::size_t done = 0;
    // A partly cached range is read as a whole: direct I/O needs whole blocks.
    if (bytes > 0 && padded && aligned && try_direct_ && !is_cached(bytes, at) &&
        read_direct(to, bytes, at, done)) {
        return done;
    }
    return read_buffered(to, bytes, at);
}

// The part of a block at each end goes through the page cache, which direct I/O of its neighbours
// does not touch.
void FileEnd::write(const std::byte* from, std::size_t bytes, std::uint64_t at) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(from) % kDiskBlock == at % kDiskBlock;
    const std::size_t head = (kDiskBlock - at % kDiskBlock) % kDiskBlock;
    if (!write_direct_ || !aligned || bytes < head + kDiskBlock) {
        return write_cached(from, bytes, at);
    }
    write_cached(from, head, at);
    const std::size_t body = (bytes - head) / kDiskBlock * kDiskBlock;
    const std::size_t done = head + write_direct(from + head, body, at + head);
    write_cached(from + done, bytes - done, at + done);
}

std::size_t FileEnd::write_direct(const std::byte* from, std::size_t bytes, std::uint64_t at) {
    const int file = direct();
    const host::WriteSignalsHeld held;
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t now = pwrite(file, from + done, bytes - done, static_cast<off_t>(at + done));
        if (now < 0 && errno == EINTR) continue;
        if (now < 0 && errno != EINVAL && errno != EOPNOTSUPP) {
            throw failed_at("writing", file_, at + done, errno);
        }
        if (now > 0) done += static_cast<std::size_t>(now);
        if (now <= 0 || static_cast<std::size_t>(now) % kDiskBlock != 0) {
            // Some file systems open with O_DIRECT but reject the write.
            if (now < 0) write_direct_ = false;
            break;
        }
    }
    return done;
}

void FileEnd::write_cached(const std::byte* from, std::size_t bytes, std::uint64_t at) const {
    if (bytes == 0) return;
    const host::WriteSignalsHeld held;
    while (bytes > 0) {
        const ssize_t now = pwrite(file_, from, bytes, static_cast<off_t>(at));
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) {  // some file systems write nothing if they cannot, without an error
            throw failed_at("writing", file_, at, now < 0 ? errno : EIO);
        }
        from += now;
        at += static_cast<std::uint64_t>(now);
        bytes -= static_cast<std::size_t>(now);
    }
}

void FileEnd::truncate(std::uint64_t end) const {
    const host::WriteSignalsHeld held;
    while (ftruncate(file_, static_cast<off_t>(end)) != 0) {
        if (errno != EINTR) {
            throw FileError("ending a file at byte " + std::to_string(end) + " (ftruncate)", errno);
        }
    }
}

void FileEnd::sync() const {
    if (fdatasync(file_) != 0) throw FileError("bringing a file to its disk (fdatasync)", errno);
}

}  // namespace waywiser::transfer
