#include "plans.hpp"

#include <utility>

#include "contexts.hpp"
#include "gil_release.hpp"
#include "submission.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Keeps a plan as an object of Python.
nb::object kept_plan(Plan plan) {
    return nb::capsule(new Plan(std::move(plan)),
                       [](void* kept) noexcept { delete static_cast<Plan*>(kept); });
}

}  // namespace

TransferPlan::TransferPlan(Context context, PreparedOperations prepared)
    : context_(std::move(context)), prepared_(std::move(prepared)), process_(fork_count()) {
    const std::vector<waywiser_operation> described = prepared_.described();
    if (described.empty()) return;
    const waywiser_status made = use(*context_, [&](waywiser_context* c) {
        return waywiser_plan_create(c, described.data(), described.size(), &plan_);
    });
    if (made == WAYWISER_INVALID) prepared_.name_invalid();
    check_use(made);
}

TransferPlan::~TransferPlan() {
    if (process_ != fork_count()) {
        Held held = prepared_.take_held();
        keep_for_ever(held);  // as in the parent
        return;
    }
    if (plan_ == nullptr) return;
    // This may also destroy a closed context, which waits for GPUs to free staging memory.
    const GilRelease unlocked;
    waywiser_plan_release(plan_);
}

Handle TransferPlan::submit(const std::optional<void*>& requested) {
    prune();
    context_->check_process();
    const int gpu = prepared_.streams().gpu;
    StartedTransfer started{.bytes = prepared_.bytes(),
                            .streams = requested
                                           ? Streams{with_gpu(*requested, gpu), std::nullopt, gpu}
                                           : prepared_.streams_now(),
                            .file_call = prepared_.file_call()};
    prepared_.note_writes();
    if (plan_ != nullptr) {
        const waywiser_status made = use(*context_, [&](waywiser_context* c) {
            bool captured = false;  // then the library rejects it
            const waywiser_status status = order_before(c, started.streams, captured);
            if (status != WAYWISER_OK) return status;
            return waywiser_plan_submit(plan_, started.streams.carrier, 0, &started.transfer);
        });
        started.held.push_back(kept_plan(shared_from_this()));
        keep_if_in_use(made, started.held);
        check_use(made);
    }
    auto pending = std::make_shared<PendingTransfer>(std::move(started));
    keep(pending);
    return pending;
}

Plan plan_operations(const Context& context, nb::handle operations) {
    prune();
    context->check_process();
    PreparedOperations prepared(context, operations, std::nullopt, false);
    prepared.open_files();
    prepared.finish_long_copies(context, false);
    return std::make_shared<TransferPlan>(context, std::move(prepared));
}

}  // namespace waywiser::python
