#include "transfer/statistics.hpp"

#include <utility>

namespace waywiser::transfer {

const char* name_of_method(waywiser_method method) {
    switch (method) {
        case WAYWISER_METHOD_NONE: return "none";
        case WAYWISER_METHOD_PLAIN: return "plain";
        case WAYWISER_METHOD_CHUNKED: return "chunked";
        case WAYWISER_METHOD_RING: return "ring";
        case WAYWISER_METHOD_RELAYED: return "relayed";
        case WAYWISER_METHOD_LIST_COPIES: return "list_copies";
        case WAYWISER_METHOD_LIST_BATCH: return "list_batch";
        case WAYWISER_METHOD_LIST_KERNEL: return "list_kernel";
        case WAYWISER_METHOD_LIST_PIPELINE: return "list_pipeline";
        case WAYWISER_METHOD_LIST_STAGED: return "list_staged";
        case WAYWISER_METHOD_SNAPSHOT: return "snapshot";
        case WAYWISER_METHOD_SNAPSHOT_STAGED: return "snapshot_staged";
        case WAYWISER_METHOD_READ: return "read";
        case WAYWISER_METHOD_WRITE: return "write";
    }
    return nullptr;
}

class Statistics::CountedSlab final : public Slab {
public:
    CountedSlab(std::unique_ptr<Slab> slab, std::size_t bytes, std::atomic<std::size_t>& counter)
        : slab_(std::move(slab)), bytes_(bytes), counter_(counter) {}
    ~CountedSlab() override { counter_ -= bytes_; }
    CountedSlab(const CountedSlab&) = delete;
    CountedSlab& operator=(const CountedSlab&) = delete;
    [[nodiscard]] std::byte* data() const override { return slab_->data(); }

private:
    const std::unique_ptr<Slab> slab_;
    const std::size_t bytes_;
    std::atomic<std::size_t>& counter_;
};

void Statistics::count_staging_wait(std::chrono::nanoseconds taken) noexcept {
    staging_waits_.fetch_add(1, std::memory_order_relaxed);
    staging_wait_nanoseconds_.fetch_add(static_cast<std::uint64_t>(taken.count()),
                                        std::memory_order_relaxed);
}

std::unique_ptr<Slab> Statistics::counted(std::unique_ptr<Slab> slab, std::size_t bytes) {
    auto made = std::make_unique<CountedSlab>(std::move(slab), bytes, pinned_bytes_);
    const std::size_t now = pinned_bytes_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_pinned_bytes_;
    while (peak < now && !peak_pinned_bytes_.compare_exchange_weak(peak, now)) {
    }
    return made;
}

MethodCounts Statistics::of_method(waywiser_method method) const {
    const Counters& own = of_methods_[static_cast<std::size_t>(method)];
    return {.transfers = own.transfers,
            .bytes = own.bytes,
            .taken = std::chrono::nanoseconds(own.nanoseconds.load()),
            .failures = own.failures,
            .cancellations = own.cancellations};
}

}  // namespace waywiser::transfer
