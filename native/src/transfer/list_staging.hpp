// Memory for lists that are moved on callers' streams: tables for kernels, and pipelines through
// staging memory on a GPU.
//
// A kernel uses its tables until the caller's stream reaches it, which may be never. So they are
// separate from the staging memory of jobs, small and bounded. If no table or pipeline is free,
// lists are copied without instead of waiting.
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
#include "transfer/event_pool.hpp"
#include "transfer/staging.hpp"
#include "waywiser/words.hpp"

namespace waywiser::transfer {

// A table to be copied to a GPU; returned by ListStaging::retire().
struct Table {
    Slot pinned;     // filled by the CPU
    Slot on_device;  // of the same size
};

class OwnPipeline;  // list_pipeline.hpp

// Thread safe. Its lock guards what it keeps; events are queried and given back to their pool with
// it held. Memory is allocated without it. Call stop() before the destructor.
class ListStaging {
public:
    // Pinned memory is at the node and limited to `budget`; as much is used on each GPU. Calls
    // `warn` with the reason if memory cannot be pinned. The pool must outlive this.
    ListStaging(std::size_t budget, NumaNode node, EventPool& events,
                std::function<void(const std::string&)> warn);
    ~ListStaging();
    ListStaging(const ListStaging&) = delete;
    ListStaging& operator=(const ListStaging&) = delete;

    // Memory for a table of `bytes`; nullopt if none is free now or allocation fails. Throws
    // gpu::Error for other failures.
    std::optional<Table> take(int device, std::size_t bytes);
    // Frees a table once the work now in the stream is done. If no event can be created, waits for
    // that.
    void retire(Table table, const gpu::Stream& stream);
    // A pipeline for a list in a stream; nullptr if none is free now or allocation fails. One whose
    // moves are not done is free only for the stream that follows them. Throws gpu::Error for other
    // failures.
    std::unique_ptr<OwnPipeline> take_pipeline(const gpu::Stream& stream);
    // After its moves for the list, and finish_before() the stream.
    void give_back(int device, std::unique_ptr<OwnPipeline> pipeline);
    // A stream for copies that the legacy stream of a device does not support. It only follows
    // legacy streams, which are ordered among themselves anyway, so nobody waits for unrelated
    // work.
    gpu::Stream& legacy_substitute(int device);
    // Number of multiprocessors of a GPU.
    unsigned multiprocessors(int device);
    // Events for ordering streams.
    [[nodiscard]] EventPool& events() { return events_; }
    // Waits for work in progress. Afterwards take() returns nullopt.
    void stop() noexcept;

    [[nodiscard]] std::size_t pinned_bytes() const;

private:
    struct Retired {
        gpu::Event event;
        Table table;
    };
    struct Pipelines;
    void reap(int device);

    const std::size_t budget_;
    const NumaNode node_;
    EventPool& events_;
    const std::function<void(const std::string&)> warn_;

    mutable std::mutex mutex_;
    std::unique_ptr<Slots> pinned_;
    std::map<int, std::unique_ptr<Slots>> on_device_;
    std::map<int, gpu::Stream> streams_;
    std::map<int, std::vector<Retired>> retired_;  // by device; streams end in any order
    std::map<int, unsigned> multiprocessors_;
    std::map<int, Pipelines> pipelines_;  // by device
    bool stopped_ = false;
};

}  // namespace waywiser::transfer
