// Memory for the tables of lists that kernels move on streams of callers.
//
// A kernel uses its tables until the caller's stream has come so far, which may be never. So they
// are apart from the staging of jobs, small and bounded: where there is no room left, lists are
// copied without tables, and nobody waits.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/staging.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

// A table on its way to a GPU. It goes back to ListStaging.
struct Table {
    Slot pinned;     // filled by the CPU
    Slot on_device;  // of the same size
};

// Thread safe. stop() comes before the destructor.
class ListStaging {
public:
    // Pinned memory is at the node, and no more than `budget`; as much is used on each GPU.
    // `warn` is told why memory cannot be pinned.
    ListStaging(std::size_t budget, NumaNode node, std::function<void(const std::string&)> warn)
        : budget_(budget), node_(std::move(node)), warn_(std::move(warn)) {}
    ListStaging(const ListStaging&) = delete;
    ListStaging& operator=(const ListStaging&) = delete;

    // Room for a table of so many bytes; nothing where there is none now, or no memory that could
    // be allocated. Throws gpu::Error for what is worse.
    std::optional<Table> take(int device, std::size_t bytes);
    // Gives a table back once what is in the stream now is done. Where no event can be had, it
    // waits for that.
    void retire(Table table, const gpu::Stream& stream);
    // A stream for copies that the legacy stream of a device does not take. It follows legacy
    // streams alone, which follow each other anyway: so nobody waits for somebody else's work.
    gpu::Stream& legacy_substitute(int device);
    // Multiprocessors of a GPU.
    unsigned multiprocessors(int device);
    // An event for an order between streams; keep() takes it back.
    gpu::Event take_event(int device);
    void keep_event(int device, gpu::Event event);
    // Waits for what is under way; from then on there is no room.
    void stop() noexcept;

    [[nodiscard]] std::size_t pinned_bytes() const;

private:
    struct Retired {
        gpu::Event event;
        Table table;
    };
    void reap(int device);

    const std::size_t budget_;
    const NumaNode node_;
    const std::function<void(const std::string&)> warn_;

    mutable std::mutex mutex_;
    std::unique_ptr<Slots> pinned_;
    std::map<int, std::unique_ptr<Slots>> on_device_;
    std::map<int, gpu::Stream> streams_;
    std::map<int, std::vector<Retired>> retired_;  // by device; streams end in any order
    std::map<int, std::vector<gpu::Event>> events_;
    std::map<int, unsigned> multiprocessors_;
    bool stopped_ = false;
};

}  // namespace waywiser::transfer
