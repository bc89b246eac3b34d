#include "files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "host/pages.hpp"
#include "waywiser/words.hpp"

namespace waywiser::host {
namespace {

// Space that is left for others on a disk: a tenth of the free space, and at least this.
constexpr std::size_t kLeastMargin = std::size_t{1} << 30;
constexpr std::size_t kMarginFraction = 10;

constexpr std::size_t kPiece = std::size_t{1} << 20;  // read at once to warm the page cache
// Pages are dropped in groups that may reach beyond a range, so the range is widened to these.
constexpr std::size_t kGroup = std::size_t{4} << 20;
constexpr int kEvictions = 3;  // a page may be busy for a moment
// Bytes of a cold range that may still be cached: those in use by the kernel itself.
constexpr std::size_t kStrayFraction = 50;

[[noreturn]] void throw_system_error(const std::string& what) {
    throw NotSupported(what + ": " + std::strerror(errno));
}

std::string own_path(int file) { return "/proc/self/fd/" + std::to_string(file); }

// Creates a file without a name if the file system supports it, else unlinks it at once.
Descriptor nameless(const std::string& folder) {
    const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) return Descriptor(file);
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
        throw_system_error("no scratch file can be made in " + folder);
    }
    std::string name = folder + "/.waywiser-scratch-XXXXXX";
    Descriptor named(mkostemp(name.data(), O_CLOEXEC));  // never opens an existing file
    if (named.get() < 0) throw_system_error("no scratch file can be made in " + folder);
    if (unlink(name.c_str()) != 0)
        throw_system_error("the scratch file " + name + " cannot be removed");
    return named;
}

// The kernel reports every page as cached if the process neither owns nor may write the file.
bool reports_cached_pages(int file) {
    struct stat status{};
    if (fstat(file, &status) != 0) return false;
    return geteuid() == 0 || geteuid() == status.st_uid ||
           access(own_path(file).c_str(), W_OK) == 0;
}

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0) close(number_);
}

std::size_t free_for_scratch(const std::string& folder) {
    struct statvfs disk{};
    if (statvfs(folder.c_str(), &disk) != 0)
        throw_system_error("the free space of " + folder + " is unknown");
    const std::size_t free = disk.f_bavail * disk.f_frsize;
    return free - std::min(free, std::max(kLeastMargin, free / kMarginFraction));
}

Descriptor scratch_file(const std::string& folder, std::size_t bytes) {
    const std::size_t available = free_for_scratch(folder);
    if (bytes > available) {
        throw NotSupported("a scratch file of " + std::to_string(bytes >> 20) + " MiB in " +
                           folder + " would leave others too little: " +
                           std::to_string(available >> 20) + " MiB may be taken");
    }
    Descriptor file = nameless(folder);
    if (const int error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0) {
        errno = error;
        throw_system_error(std::to_string(bytes >> 20) + " MiB cannot be had in " + folder);
    }
    return file;
}

Descriptor regular_file(const std::string& path) {
    // O_NONBLOCK, since opening a pipe would block; it is rejected below.
    Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat status{};
    if (file.get() < 0 || fstat(file.get(), &status) != 0) {
        throw UnreadableFile(std::string("it cannot be opened: ") + std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) throw UnreadableFile("it is not a regular file");
    return file;
}

// The size of a file that grows, or of one of /proc, is not known before its end.
std::string text_of(const Descriptor& file, std::size_t most) {
    constexpr std::size_t kStep = std::size_t{64} << 10;
    std::string text;
    for (std::size_t size = 0;;) {
        text.resize(std::min(size + kStep, most + 1));
        const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            throw UnreadableFile(std::string("it cannot be read: ") + std::strerror(errno));
        size += static_cast<std::size_t>(got);
        if (size > most) {
            const bool is_mib = most % (std::size_t{1} << 20) == 0;
            throw UnreadableFile("it is larger than " + std::to_string(most >> (is_mib ? 20 : 10)) +
                                 (is_mib ? " MiB" : " KiB"));
        }
        if (got > 0) continue;
        text.resize(size);
        return text;
    }
}

std::string printable(std::string text) {
    constexpr std::size_t kMost = 200;
    std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
    if (text.size() <= kMost) return text;
    return text.substr(0, kMost) + "...";
}

Descriptor readable_file(const std::string& path) {
    try {
        return regular_file(path);
    } catch (const UnreadableFile& why) {
        throw NotSupported(path + ": " + why.what());
    }
}

std::size_t file_bytes(int file) {
    struct stat status{};
    if (fstat(file, &status) != 0) throw_system_error("the size of a file is unknown");
    return static_cast<std::size_t>(status.st_size);
}

Descriptor reopen_direct(int file) {
    const int mode = fcntl(file, F_GETFL) & O_ACCMODE;
    Descriptor direct(open(own_path(file).c_str(), mode | O_DIRECT | O_CLOEXEC));
    if (direct.get() < 0)
        throw_system_error("the file system does not let the file be opened with O_DIRECT");
    return direct;
}

void read_fully(int file, std::byte* to, std::size_t bytes, std::size_t at) {
    while (bytes > 0) {
        const ssize_t done = pread(file, to, bytes, static_cast<off_t>(at));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) throw_system_error("reading at " + std::to_string(at) + " of a file");
        if (done == 0)
            throw NotSupported("the file ends at " + std::to_string(at) + ": it was cut");
        to += done;
        at += static_cast<std::size_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
}

void write_fully(int file, const std::byte* from, std::size_t bytes, std::size_t at) {
    while (bytes > 0) {
        const ssize_t done = pwrite(file, from, bytes, static_cast<off_t>(at));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) throw_system_error("writing at " + std::to_string(at) + " of a file");
        from += done;
        at += static_cast<std::size_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
}

void reach_device(int file) {
    if (fdatasync(file) != 0)
        throw_system_error("what was written to a file does not reach its device");
}

std::optional<std::size_t> cached_bytes(int file, std::size_t at, std::size_t bytes) {
    if (bytes == 0) return 0;
    if (!reports_cached_pages(file)) return std::nullopt;
    const std::size_t step = page_bytes();
    const std::size_t first = at / step * step;
    const std::size_t span = at + bytes - first;
    void* mapping = mmap(nullptr, span, PROT_READ, MAP_SHARED, file, static_cast<off_t>(first));
    if (mapping == MAP_FAILED) return std::nullopt;
    std::vector<unsigned char> resident((span + step - 1) / step);
    const bool known = mincore(mapping, span, resident.data()) == 0;
    munmap(mapping, span);
    if (!known) return std::nullopt;
    const auto pages = std::ranges::count_if(resident, [](unsigned char page) { return page & 1; });
    return std::min(bytes, static_cast<std::size_t>(pages) * step);
}

void drop(int file, std::size_t at, std::size_t bytes) {
    // Also for a file that is only read here: pages that other processes wrote must reach the disk
    // before they can be dropped.
    if (fdatasync(file) != 0 && (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY) {
        throw_system_error("what was written to a file does not reach its device");
    }
    const std::size_t from = at / kGroup * kGroup;
    const std::size_t span = (at + bytes - from + kGroup - 1) / kGroup * kGroup;
    posix_fadvise(file, static_cast<off_t>(from), static_cast<off_t>(span), POSIX_FADV_DONTNEED);
}

void evict(int file, std::size_t at, std::size_t bytes) {
    std::optional<std::size_t> left;
    for (int attempt = 0; attempt < kEvictions; ++attempt) {
        drop(file, at, bytes);
        left = cached_bytes(file, at, bytes);
        if (!left || *left <= bytes / kStrayFraction) return;
    }
    throw NotSupported(
        std::to_string(*left) + " of " + std::to_string(bytes) +
        " bytes of the file stay in the page cache: another program uses them, or its "
        "file system is in memory");
}

void warm(int file, std::size_t at, std::size_t bytes) {
    if (const auto cached = cached_bytes(file, at, bytes); cached && *cached == bytes) return;
    const auto buffer = page_aligned(kPiece);
    for (std::size_t done = 0; done < bytes; done += kPiece) {
        read_fully(file, buffer.get(), std::min(kPiece, bytes - done), at + done);
    }
}

void Free::operator()(std::byte* data) const { std::free(data); }

std::unique_ptr<std::byte[], Free> page_aligned(std::size_t bytes) {
    const std::size_t whole =
        (std::max<std::size_t>(bytes, 1) + kDiskBlock - 1) & ~(kDiskBlock - 1);
    void* data = std::aligned_alloc(kDiskBlock, whole);
    if (data == nullptr) throw std::bad_alloc();
    return std::unique_ptr<std::byte[], Free>(static_cast<std::byte*>(data));
}

}  // namespace waywiser::host
