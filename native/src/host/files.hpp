// Files of a survey: scratch files that are removed automatically, files of the user that are only
// read, and the page cache.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace waywiser::host {

// Alignment of direct I/O requests: no disk has larger logical blocks.
inline constexpr std::size_t kDiskBlock = 4096;

// Owns an open file descriptor.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor();
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    [[nodiscard]] int get() const { return number_; }

private:
    int number_ = -1;
};

// Creates a file in the folder that no other program sees, with its blocks reserved on the disk. It
// has no name, so nothing remains after the process ends. Throws NotSupported if the folder cannot
// be written or the disk has too little free space beyond the margin for others.
Descriptor scratch_file(const std::string& folder, std::size_t bytes);

// Why a file of a user is not read, without its name: "it is not a regular file". One line.
class UnreadableFile : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
// Opens a file that a user has named, for reading. Never blocks: pipes, devices and folders are
// rejected. All readers of such files begin here. Throws UnreadableFile.
Descriptor regular_file(const std::string& path);
// All of such a file, if it has at most so many bytes. Throws UnreadableFile.
std::string text_of(const Descriptor& file, std::size_t most);
// A text of a user for a message of one line of ASCII: other characters become '?', and what is
// longer than a line is cut.
std::string printable(std::string text);

// Opens a user's ordinary file for reading. Throws NotSupported.
Descriptor readable_file(const std::string& path);

std::size_t file_bytes(int file);

// Opens the same file again with O_DIRECT. Throws NotSupported if the file system does not support
// it.
Descriptor reopen_direct(int file);

// Bytes that scratch files may still use on the folder's file system.
std::size_t free_for_scratch(const std::string& folder);

// Reads or writes all bytes at offset `at`, or throws NotSupported with the system's error and the
// place.
void read_fully(int file, std::byte* to, std::size_t bytes, std::size_t at);
void write_fully(int file, const std::byte* from, std::size_t bytes, std::size_t at);
// Returns when written bytes are on the device.
void reach_device(int file);

// The bytes of the range that are in the page cache; nullopt if the system does not show it, as for
// files that the process cannot write.
std::optional<std::size_t> cached_bytes(int file, std::size_t at, std::size_t bytes);
// Writes back dirty pages of the range and drops it from the page cache, if the kernel does so.
void drop(int file, std::size_t at, std::size_t bytes);
// The same, but throws NotSupported if the range stays, because another program maps the file, say.
void evict(int file, std::size_t at, std::size_t bytes);
// Reads the range into the page cache.
void warm(int file, std::size_t at, std::size_t bytes);

struct Free {
    void operator()(std::byte* data) const;
};
// Page-aligned memory.
std::unique_ptr<std::byte[], Free> page_aligned(std::size_t bytes);

}  // namespace waywiser::host
