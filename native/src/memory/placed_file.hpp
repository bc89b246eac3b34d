// A file at a file place, for a buffer: a scratch file of its own, or somebody's file to be read.
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
    // Throws Refused: more bytes than the file has or than the place allows to all its scratch
    // files together, and what the system refuses.
    PlacedFile(const FilePlace& place, std::size_t bytes);
    ~PlacedFile();
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;

    [[nodiscard]] int get() const { return file_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool writable() const { return place_.scratch; }
    [[nodiscard]] const FilePlace& place() const { return place_; }

    // Puts the first bytes out of the page cache. Throws Refused where they stay.
    void evict(std::size_t bytes) const;
    // Memory through which this process sees the file: it holds pages of it in the page cache, and
    // lets go of them before they are evicted, also when another buffer of the file asks for it.
    void mapped_at(std::byte* data, std::size_t bytes);

private:
    FilePlace place_;
    std::size_t bytes_;
    host::Descriptor file_;
    std::byte* mapping_ = nullptr;
};

// What kinds of memory in files have in common; their first variant is `state`.
class FileMemoryKind : public MemoryKind {
public:
    [[nodiscard]] std::vector<Place::Kind> place_kinds() const override;
    [[nodiscard]] bool writable(const Memory& memory, const Machine& machine) const override;
    [[nodiscard]] bool used_up(const Memory& memory) const override;
    [[nodiscard]] std::size_t most_bytes(const Memory& memory,
                                         const Machine& machine) const override;
    [[nodiscard]] std::optional<std::string> refusal(const Memory& memory,
                                                     const Machine& machine) const override;

protected:
    // The first of the choices is the default.
    static Parameter state_variant(std::vector<std::string> choices);
    [[nodiscard]] bool is_cold(const Memory& memory) const;
};

const FilePlace& file_place(const Memory& memory, const Machine& machine);
// The file system keeps its files in memory and nowhere else.
bool in_memory(const FilePlace& place);

}  // namespace waywiser
