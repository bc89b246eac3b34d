// Reports the calls of the C interface to a tracer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transfer/capi_guard.hpp"
#include "transfer/submit.hpp"

namespace waywiser::capi {

// The tracer of this process; nullptr: none. It is never freed.
const waywiser_tracer* active_tracer() noexcept;

// What is known of a transfer now. Does not wait, and throws nothing.
waywiser_transfer_info info_of(const transfer::Completion& completion) noexcept;

// One traced transfer, from the beginning of its call to its end.
class TracedTransfer {
public:
    // Reports the beginning. `flags` are those of waywiser_submit().
    TracedTransfer(const waywiser_tracer& tracer, std::span<const transfer::Operation> operations,
                   void* stream, std::uint32_t flags, bool waits);

    // The call has failed.
    void fail(waywiser_status status, std::size_t moved);
    // The call has returned. `left`: what goes on, or nullptr if all has ended.
    void returned(const transfer::Completion* left, transfer::Engine& engine);

private:
    void end(const waywiser_transfer_info& info) const;

    const waywiser_tracer& tracer_;
    waywiser_trace_record record_{};
};

// Sets or removes the tracer. Throws InvalidCopy.
void set_tracer(const waywiser_tracer* tracer);

}  // namespace waywiser::capi
