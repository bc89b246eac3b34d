#include "transfer/wait.hpp"

namespace waywiser::transfer {
namespace {

constexpr Polling kSettling{.spin = std::chrono::milliseconds(1),
                            .pause = std::chrono::microseconds(2),
                            .sleep = std::chrono::microseconds(100)};

// To wait without queries has no limit: only if so many have failed in a row.
constexpr int kFailedQueries = 16;

// See EventQuery.
template <class Work, class Count>
bool is_done(const Work& work, Count& failed) {
    try {
        const bool done = work.done();
        failed = 0;
        return done;
    } catch (const gpu::Error& error) {
        if (error.kind() == gpu::Failure::sticky || ++failed >= kFailedQueries) throw;
        return false;
    }
}

template <class Work>
Settled settled(const Work& work) noexcept {
    try {
        try {
            int failed = 0;
            const bool done = poll([&] { return is_done(work, failed); },
                                   Deadline(kUnresponsiveSeconds), kSettling);
            return done ? Settled::yes : Settled::no;
        } catch (const gpu::Error& error) {
            if (error.kind() == gpu::Failure::sticky) return Settled::lost;
        }
        work.synchronize();  // it cannot be queried
        return Settled::yes;
    } catch (const gpu::Error& error) {
        return error.kind() == gpu::Failure::sticky ? Settled::lost : Settled::no;
    }
}

}  // namespace

bool EventQuery::has_happened(const gpu::Event& event) {
    if (happened_.load(std::memory_order_acquire)) return true;
    if (!is_done(event, failed_)) return false;
    note_happened();
    return true;
}

// A stream that others fill all the time is never done.
Settled settle(const gpu::Stream& stream) noexcept {
    try {
        gpu::Event event(stream.device(), gpu::EventUse::ordering);
        event.record(stream);
        return settled(event);
    } catch (const gpu::Error& error) {
        return error.kind() == gpu::Failure::sticky ? Settled::lost : settled(stream);
    }
}
Settled settle(const gpu::Event& event) noexcept { return settled(event); }

}  // namespace waywiser::transfer
