// What the rings of one route have submitted to its GPU, in order.
//
// Slots that are ready at the same time are submitted together, with one event after them: a copy
// engine pauses between two calls, and for each event. One thread at a time submits, and one asks
// whether the oldest submission has ended: threads that all ask the driver hold up the one that
// submits.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/gpu.hpp"
#include "transfer/ring.hpp"
#include "transfer/route.hpp"
#include "transfer/wait.hpp"

namespace waywiser::transfer {

class Job;

// Thread safe after add(). Has no lock. Its counters have cache lines of their own.
class RouteQueue {  // NOLINT(clang-analyzer-optin.performance.Padding)
public:
    // The job and its route must outlive the queue.
    RouteQueue(Job& job, const Route& route, const RingResources& resources);
    // Called before threads learn of the job. At most `slots` of the ring are in flight.
    void add(Ring& ring, std::size_t slots);

    // Submits until no slot is ready, or the copy engine has enough; unless another thread does so.
    // Throws gpu::Error.
    void submit_ready();
    // Submits once, by the caller, before other threads learn of the job.
    void submit_first();
    // Asks whether the oldest submission has ended, unless another thread does so. Throws
    // gpu::Error.
    void query_oldest();
    // Whether threads that wait have to submit: slots may be held back.
    [[nodiscard]] bool holds_back() const { return rings_.size() > 1; }
    [[nodiscard]] bool is_submitting() const { return submitting_.load(); }
    // After the last submission: what follows all of them. Nullptr: nothing was submitted.
    [[nodiscard]] std::shared_ptr<gpu::Event> last_event() const { return last_; }
    void drop_last_event() { last_.reset(); }
    // No thread uses it any more. `failed`: waits until the GPU has ended what it has. Once: later
    // calls return the same.
    [[nodiscard]] Settled clear(bool failed) noexcept;

private:
    struct Call {
        std::shared_ptr<gpu::Event> event, handover;  // the latter between two devices
        std::vector<Ring::Run> runs;
        std::size_t bytes = 0;
    };
    void open();
    [[nodiscard]] bool can_submit() const;
    [[nodiscard]] bool has_enough() const;
    // False if none is ready; `held_back`: the copy engine has enough.
    [[nodiscard]] bool submit_next(bool& held_back);
    void take_ready(Call& call);
    void submit(Call& call);
    Call& call(std::size_t number) { return in_flight_[number % in_flight_.size()]; }

    Job& job_;
    const Route& route_;
    const RingResources& resources_;
    std::vector<Ring*> rings_;
    std::vector<Call> in_flight_;  // one for each slot, and one that ends

    // Only the thread that submits changes these.
    gpu::Stream* stream_ = nullptr;
    gpu::Stream* second_ = nullptr;
    std::size_t turn_ = 0;  // the ring whose slots come first
    std::vector<Submission> together_;
    std::shared_ptr<gpu::Event> last_;
    std::optional<Settled> cleared_;

    std::atomic<std::size_t> queued_{0};               // bytes of calls that have not ended
    alignas(64) std::atomic<bool> submitting_{false};  // a thread submits
    alignas(64) std::atomic<std::size_t> calls_{0};    // number of calls
    alignas(64) std::atomic<bool> querying_{false};    // a thread asks whether one has ended
    alignas(64) std::atomic<std::size_t> ended_{0};    // number of calls that have ended
};

}  // namespace waywiser::transfer
