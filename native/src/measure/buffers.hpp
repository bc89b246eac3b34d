// The buffers of a session, kept between the series of one process, within a limit.
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

    struct Spec {
        Memory memory;
        std::size_t bytes = 0;
    };
    // The buffers of one workload, in this order, each with at least the requested bytes and no
    // other holder. Frees idle buffers, oldest first, if the limit requires it. Throws NotSupported
    // if the workload exceeds the limit, and what the memory kinds throw.
    std::vector<std::shared_ptr<Buffer>> take(const std::vector<Spec>& specs);
    std::shared_ptr<Buffer> take(const Memory& memory, std::size_t bytes);

    // Reserves bytes of the limit for the next workload's staging memory.
    void reserve(std::size_t bytes) { reserved_ = bytes; }

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t peak_bytes() const { return peak_; }
    void clear();  // frees all idle buffers

private:
    struct Entry {
        Memory memory;
        std::shared_ptr<Buffer> buffer;
    };

    // generous: an idle buffer that is large enough, or a new, larger one that the next size can
    // reuse. exact: a new buffer of the requested size.
    enum class Manner { generous, exact };
    // Empty if the limit does not allow them in this manner.
    std::vector<std::shared_ptr<Buffer>> take_all(const std::vector<Spec>& specs, Manner manner);
    std::shared_ptr<Buffer> idle_for(const Spec& spec);
    bool evict_for(const Memory& memory, std::size_t bytes);

    const Machine& machine_;
    std::size_t limit_;
    std::size_t reserved_ = 0;
    [[nodiscard]] std::size_t available() const { return limit_ - std::min(limit_, reserved_); }
    std::size_t peak_ = 0;
    std::list<Entry> entries_;  // least recently used first
};

}  // namespace waywiser::measure
