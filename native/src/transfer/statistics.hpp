// What an engine has moved and waited for since it was made.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transfer/staging.hpp"
#include "waywiser/transfer.h"

namespace waywiser::transfer {

// The name of a method in the interfaces, "chunked"; nullptr if there is no such method.
const char* name_of_method(waywiser_method method);

struct MethodCounts {
    std::uint64_t transfers = 0;  // that have ended, in any way
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds taken{0};
    std::uint64_t failures = 0;
    std::uint64_t cancellations = 0;
};

// Counters that only grow. Thread safe, without a lock: a transfer adds to three of them.
class Statistics {
public:
    using Clock = std::chrono::steady_clock;
    // How a transfer has ended.
    enum class End { done, failed, cancelled };

    // One transfer, or the part of it that one method has moved.
    void count(waywiser_method method, std::uint64_t bytes, std::chrono::nanoseconds taken,
               End end = End::done) noexcept {
        Counters& own = of_methods_[static_cast<std::size_t>(method)];
        own.transfers.fetch_add(1, std::memory_order_relaxed);
        own.bytes.fetch_add(bytes, std::memory_order_relaxed);
        own.nanoseconds.fetch_add(static_cast<std::uint64_t>(taken.count()),
                                  std::memory_order_relaxed);
        if (end == End::failed) own.failures.fetch_add(1, std::memory_order_relaxed);
        if (end == End::cancelled) own.cancellations.fetch_add(1, std::memory_order_relaxed);
    }
    // Makes a call that moves bytes and counts it as one transfer, with the time in the call.
    // `call` returns whether it has moved them: else it is not counted. Returns the same.
    template <class Call>
    bool count_call(waywiser_method method, std::uint64_t bytes, const Call& call) {
        const Clock::time_point begun = Clock::now();
        try {
            if (!call()) return false;
        } catch (...) {
            count(method, 0, Clock::now() - begun, End::failed);
            throw;
        }
        count(method, bytes, Clock::now() - begun);
        return true;
    }
    // A transfer has waited for staging memory.
    void count_staging_wait(std::chrono::nanoseconds taken) noexcept;
    // A slab of pinned staging memory, which counts as long as it exists.
    std::unique_ptr<Slab> counted(std::unique_ptr<Slab> slab, std::size_t bytes);

    [[nodiscard]] MethodCounts of_method(waywiser_method method) const;
    [[nodiscard]] std::uint64_t staging_waits() const { return staging_waits_; }
    [[nodiscard]] std::chrono::nanoseconds staging_wait() const {
        return std::chrono::nanoseconds(staging_wait_nanoseconds_.load());
    }
    // The most pinned staging memory that existed at once.
    [[nodiscard]] std::size_t peak_pinned_bytes() const { return peak_pinned_bytes_; }

private:
    class CountedSlab;
    // Threads that use different methods write to different cache lines.
    struct alignas(64) Counters {
        std::atomic<std::uint64_t> transfers{0};
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint64_t> nanoseconds{0};
        std::atomic<std::uint64_t> failures{0};
        std::atomic<std::uint64_t> cancellations{0};
    };

    std::array<Counters, WAYWISER_METHOD_WRITE + 1> of_methods_;
    std::atomic<std::uint64_t> staging_waits_{0};
    std::atomic<std::uint64_t> staging_wait_nanoseconds_{0};
    std::atomic<std::size_t> pinned_bytes_{0};
    std::atomic<std::size_t> peak_pinned_bytes_{0};
};

}  // namespace waywiser::transfer
