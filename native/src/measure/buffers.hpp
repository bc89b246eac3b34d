// The buffers of a session: kept between series of one process, within a bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "waywiser/memory.hpp"
#include "waywiser/words.hpp"

namespace waywiser::measure {

class BufferPool {
public:
    BufferPool(const Machine& machine, std::size_t limit_bytes);

    struct Want {
        Memory memory;
        std::size_t bytes = 0;
    };
    // The buffers of one workload, in this order: each with at least so many bytes, and nobody else
    // holds them. Others that nobody holds are given up, oldest first, where the bound asks for it.
    // Throws Refused where the bound does not hold the workload, and what the memory kinds throw.
    std::vector<std::shared_ptr<Buffer>> take(const std::vector<Want>& wants);
    std::shared_ptr<Buffer> take(const Memory& memory, std::size_t bytes);

    // So many bytes of the bound are for staging memory of the next workload.
    void reserve(std::size_t bytes) { reserved_ = bytes; }

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t peak_bytes() const { return peak_; }
    void clear();  // gives up everything that nobody holds

private:
    struct Entry {
        Memory memory;
        std::shared_ptr<Buffer> buffer;
    };

    // Generous: what is idle and large enough, or new and rather larger than asked, so that the
    // next size finds it. Exact: new, and no larger than asked.
    enum class Manner { generous, exact };
    // Empty where the bound does not hold them in this manner.
    std::vector<std::shared_ptr<Buffer>> take_all(const std::vector<Want>& wants, Manner manner);
    std::shared_ptr<Buffer> idle_for(const Want& want);
    bool make_room(const Memory& memory, std::size_t bytes);

    const Machine& machine_;
    std::size_t limit_;
    std::size_t reserved_ = 0;
    [[nodiscard]] std::size_t room() const { return limit_ - std::min(limit_, reserved_); }
    std::size_t peak_ = 0;
    std::list<Entry> entries_;  // least recently used first
};

}  // namespace waywiser::measure
