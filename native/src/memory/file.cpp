// A file, accessed by reads and writes: its bytes have no address.
#include "host/files.hpp"
#include "memory/placed_file.hpp"
#include "waywiser/memory.hpp"

namespace waywiser {
namespace {

class FileBuffer final : public Buffer {
public:
    FileBuffer(const FilePlace& place, std::size_t bytes, bool cold)
        : file_(place, bytes), cold_(cold) {}
    [[nodiscard]] std::byte* data() const override { return nullptr; }
    [[nodiscard]] std::size_t bytes() const override { return file_.bytes(); }
    [[nodiscard]] int file() const override { return file_.get(); }

    // A file is always at its own place.
    [[nodiscard]] Placement placement() const override {
        return {.state = Placement::State::verified,
                .fraction_on_place = 1,
                .detail = "in " + file_.place().path};
    }

    void restore(std::size_t bytes) override {
        if (cold_) {
            file_.evict(bytes);
        } else {
            host::warm(file_.get(), 0, bytes);
        }
    }

private:
    PlacedFile file_;
    bool cold_;
};

class File final : public FileMemoryKind {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "file",
            .description =
                "a file on a disk: a scratch file that vanishes with the survey, or a file that "
                "is only read",
            .parameters = {state_variant({"cold", "warm"})},
            .source =
                "Auto-tuning of Data Communication on Heterogeneous Systems, sec. IV-B (disk I/O)"};
        return info;
    }
    [[nodiscard]] MemoryTraits traits() const override { return {.reference = PathClass::file}; }
    [[nodiscard]] bool cpu_accessible() const override { return false; }
    [[nodiscard]] std::size_t granule() const override { return host::kDiskBlock; }
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes,
                                                   const Machine& machine) const override {
        return std::make_unique<FileBuffer>(file_place(memory, machine), bytes, is_cold(memory));
    }
};

const Registered<MemoryKind, File> registered;

}  // namespace
}  // namespace waywiser
