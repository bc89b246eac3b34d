// Files as the survey uses them: scratch files that vanish by themselves, files of others that are
// only read, and the page cache that stands between a program and a disk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace waywiser::host {

// Bytes at whose multiples requests to a disk start and end: no logical block of one is larger.
inline constexpr std::size_t kDiskBlock = 4096;

// An open file; it closes with its owner.
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

// A new file in the folder that no other program sees, with its blocks reserved on the disk. It
// has no name, so nothing is left behind however the process ends. Throws Refused: the folder
// cannot be written, or the disk has no room beside the margin that others are left.
Descriptor scratch_file(const std::string& folder, std::size_t bytes);

// An ordinary file of somebody's, to be read and never written. Throws Refused.
Descriptor readable_file(const std::string& path);

std::size_t file_bytes(int file);

// The same file once more, around the page cache: open(2) with O_DIRECT. Throws Refused where the
// file system does not do that.
Descriptor direct_twin(int file);

// Bytes that may still be taken of the file system that the folder is on.
std::size_t free_for_scratch(const std::string& folder);

// All of it, or Refused: what the system says, and where. `at` is where in the file.
void read_fully(int file, std::byte* to, std::size_t bytes, std::size_t at);
void write_fully(int file, const std::byte* from, std::size_t bytes, std::size_t at);
// Returns when what was written is on the device.
void reach_device(int file);

// The bytes of the range that are in the page cache; nothing where the system does not tell, as of
// files that the process could not write.
std::optional<std::size_t> cached_bytes(int file, std::size_t at, std::size_t bytes);
// Writes back what was changed of the range and lets the page cache forget it, as far as it will.
void drop(int file, std::size_t at, std::size_t bytes);
// The same, and looks: throws Refused where the range stays, as when another program maps the file.
void evict(int file, std::size_t at, std::size_t bytes);
// Brings the range into the page cache.
void warm(int file, std::size_t at, std::size_t bytes);

struct Free {
    void operator()(std::byte* data) const;
};
// Memory that starts on a page.
std::unique_ptr<std::byte[], Free> page_aligned(std::size_t bytes);

}  // namespace waywiser::host
