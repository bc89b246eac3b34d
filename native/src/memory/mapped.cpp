// A memory-mapped file: loads and stores access its pages in the page cache, and page faults read
// missing pages from the disk.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "host/files.hpp"
#include "host/pages.hpp"
#include "memory/placed_file.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

// A mapping of the first bytes of a file.
class Mapping {
public:
    Mapping(int file, std::size_t bytes, bool writable)
        : bytes_(bytes), writable_(writable), data_(map(file)) {}
    ~Mapping() { munmap(data_, bytes_); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    [[nodiscard]] std::byte* data() const { return data_; }

    // Reads the pages of the range, and maps them so that the CPU accesses them without a fault.
    void populate(std::size_t bytes) const {
        const auto step = static_cast<std::size_t>(host::kDiskBlock);
        for (std::size_t at = 0; at < bytes; at += step) {
            // Writes the same value, since the first write to a clean page faults.
            auto* byte = static_cast<volatile std::byte*>(data_ + at);
            const std::byte now = *byte;
            if (writable_) *byte = now;
        }
    }

    // Writes the pages back and unmaps them; the page cache still has them.
    void release() const {
        if (writable_ && msync(data_, bytes_, MS_SYNC) != 0) fail("written back");
        if (madvise(data_, bytes_, MADV_DONTNEED) != 0) fail("released");
    }

private:
    [[nodiscard]] std::byte* map(int file) const {
        const int access = writable_ ? PROT_READ | PROT_WRITE : PROT_READ;
        void* data = mmap(nullptr, bytes_, access, MAP_SHARED, file, 0);
        if (data == MAP_FAILED) fail("mapped");
        return static_cast<std::byte*>(data);
    }
    [[noreturn]] static void fail(const std::string& what) {
        throw NotSupported("a file cannot be " + what + ": " + std::strerror(errno));
    }

    std::size_t bytes_;
    bool writable_;
    std::byte* data_;
};

class MappedBuffer final : public Buffer {
public:
    MappedBuffer(const FilePlace& place, std::size_t bytes, bool cold)
        : file_(place, bytes), mapping_(file_.get(), bytes, file_.writable()), cold_(cold) {
        file_.mapped_at(mapping_.data(), bytes);
        if (!cold_) mapping_.populate(bytes);
    }
    [[nodiscard]] std::byte* data() const override { return mapping_.data(); }
    [[nodiscard]] std::size_t bytes() const override { return file_.bytes(); }

    // The place is the file; `detail` also says where its cached pages are.
    [[nodiscard]] Placement placement() const override {
        const Placement pages = host::placement_of(data(), bytes(), kNoNode);
        return {.state = Placement::State::verified,
                .fraction_on_place = 1,
                .detail = "in " + file_.place().path +
                          (pages.detail.empty() ? std::string() : ", " + pages.detail)};
    }

    void restore(std::size_t bytes) override {
        if (!cold_) {
            mapping_.populate(bytes);
            return;
        }
        mapping_.release();
        file_.evict(bytes);
    }

private:
    static constexpr int kNoNode = -1;  // no node is the right one

    PlacedFile file_;
    Mapping mapping_;
    bool cold_;
};

class Mapped final : public FileMemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "mapped",
            .description =
                "a file mapped into memory: pages of the page cache, filled from the disk by "
                "faults where they are cold",
            .parameters = {state_variant({"warm", "cold"})},
            .source = "mmap(2), mincore(2) and posix_fadvise(2) of the Linux manual"};
        return info;
    }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        return std::make_unique<MappedBuffer>(file_place(memory, machine), bytes, is_cold(memory));
    }
};

const Registered<MemoryKind, Mapped> registered;

}  // namespace
}  // namespace waywiser
