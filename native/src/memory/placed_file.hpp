// A file at a file place, for a buffer: its own scratch file, or a user's file to read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "host/files.hpp"
#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser {

class PlacedFile {
public:
    // Throws NotSupported for more bytes than the file has or than the place allows for all scratch
    // files, and if a system call fails.
    PlacedFile(const FilePlace& place, std::size_t bytes);
    ~PlacedFile();
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;

    [[nodiscard]] int get() const { return file_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool writable() const { return place_.scratch; }
    [[nodiscard]] const FilePlace& place() const { return place_; }

    // Evicts the first bytes from the page cache. Throws NotSupported if they stay.
    void evict(std::size_t bytes) const;
    // Registers memory that maps the file and so keeps its pages in the page cache. It is unmapped
    // before an eviction, even one by another buffer of the file.
    void mapped_at(std::byte* data, std::size_t bytes);

private:
    FilePlace place_;
    std::size_t bytes_;
    host::Descriptor file_;
    std::byte* mapping_ = nullptr;
};

// Common code of memory kinds in files; their first variant is `state`.
class FileMemoryKind : public MemoryKind {
public:
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override;
    [[nodiscard]] bool writable(const Memory& memory, const Machine& machine) const override;
    [[nodiscard]] bool used_up(const Memory& memory) const override;
    [[nodiscard]] std::size_t most_bytes(const Memory& memory,
                                         const Machine& machine) const override;
    [[nodiscard]] std::optional<std::string> unsupported_reason(
        const Memory& memory, const Machine& machine) const override;

protected:
    // The first choice is the default.
    static Parameter state_variant(std::vector<std::string> choices);
    [[nodiscard]] bool is_cold(const Memory& memory) const;
};

const FilePlace& file_place(const Memory& memory, const Machine& machine);
// Whether the file system keeps its files only in memory.
bool in_memory(const FilePlace& place);

}  // namespace waywiser
