// The buffers of a session: kept between series of one process, within a bound.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser::measure {

class BufferPool {
public:
    BufferPool(const Machine& machine, std::size_t limit_bytes);

    // A buffer of the memory with at least so many bytes that nobody else holds. Others that
    // nobody holds are given up, oldest first, where the bound asks for it. Throws Refused where
    // the bound does not hold it, and what the memory kind throws.
    std::shared_ptr<Buffer> take(const Memory& memory, std::size_t bytes);

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t peak_bytes() const { return peak_; }
    void clear();  // gives up everything that nobody holds

private:
    struct Entry {
        Memory memory;
        std::shared_ptr<Buffer> buffer;
    };

    void make_room(const Memory& memory, std::size_t bytes);

    const Machine& machine_;
    std::size_t limit_;
    std::size_t peak_ = 0;
    std::list<Entry> entries_;  // least recently used first
};

}  // namespace waywiser::measure
