#include "transfer/capi_trace.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <variant>

#include "gpu/gpu.hpp"
#include "transfer/process_state.hpp"

namespace waywiser::capi {
namespace {

std::atomic<const waywiser_tracer*> the_tracer{nullptr};
std::atomic<std::uint64_t> last_id{0};

std::uint64_t now() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

struct TracedSide {
    const void* data = nullptr;
    waywiser_memory_kind kind = WAYWISER_FILE;
    int gpu = -1;
};

TracedSide memory_side(const void* data) {
    if (data == nullptr) return {nullptr, WAYWISER_PAGEABLE, -1};
    try {
        const gpu::PointerInfo info = gpu::pointer_info(data);
        return {data, static_cast<waywiser_memory_kind>(info.kind), info.device};
    } catch (const std::exception&) {
        return {data, WAYWISER_PAGEABLE, -1};  // the call itself reports what fails
    }
}

struct TracedOperation {
    waywiser_operation_kind kind = WAYWISER_COPY;
    TracedSide to, from;
};

TracedOperation list_operation(const transfer::CopyList& list) {
    if (list.block != 0) {
        return {WAYWISER_BLOCKS, memory_side(list.to.data), memory_side(list.from.data)};
    }
    if (list.pieces.empty()) return {WAYWISER_COPY, memory_side(nullptr), memory_side(nullptr)};
    return {WAYWISER_COPY, memory_side(list.pieces.front().to),
            memory_side(list.pieces.front().from)};
}

TracedOperation traced(const transfer::Operation& operation) {
    if (const auto* range = std::get_if<transfer::RangeCopy>(&operation)) {
        return {WAYWISER_COPY, memory_side(range->to), memory_side(range->from)};
    }
    if (const auto* read = std::get_if<transfer::FileRead>(&operation)) {
        return {WAYWISER_READ, memory_side(read->to), {}};
    }
    if (const auto* write = std::get_if<transfer::FileWrite>(&operation)) {
        return {WAYWISER_WRITE, {}, memory_side(write->from)};
    }
    if (const auto* list = std::get_if<transfer::CopyList>(&operation)) {
        return list_operation(*list);
    }
    const auto& groups = std::get<transfer::GroupedList>(operation).groups;
    return list_operation(groups.empty() ? transfer::CopyList{} : groups.front().list);
}

}  // namespace

const waywiser_tracer* active_tracer() noexcept {
    return the_tracer.load(std::memory_order_acquire);
}

void set_tracer(const waywiser_tracer* tracer) {
    if (tracer == nullptr) {
        the_tracer = nullptr;
        return;
    }
    const waywiser_tracer known = take(*tracer, "waywiser_tracer");
    need_argument(known.begin, "tracer->begin", "a function");
    need_argument(known.end, "tracer->end", "a function");
    auto kept = std::make_unique<waywiser_tracer>(known);
    const waywiser_tracer* none = nullptr;
    need(the_tracer.compare_exchange_strong(none, kept.get()),
         "another tracer is set, and there is one at a time: remove it first (pass NULL)");
    transfer::keep_for_ever(kept.release());  // transfers may report their end to it for ever
}

waywiser_transfer_info info_of(const transfer::Completion& completion) noexcept {
    waywiser_transfer_info info{};
    info.size = sizeof info;
    FailureReport failure;
    try {
        info.bytes = completion.bytes();
        info.ended = completion.done() ? 1 : 0;
        info.moved = completion.moved();
        if (info.ended != 0) completion.wait(transfer::Deadline(0));
    } catch (...) {
        info.ended = 1;
        failure = failure_report();
    }
    info.status = failure.status;
    info.error = failure.error;
    const std::size_t length = std::min(failure.message.size(), sizeof info.message - 1);
    std::memcpy(info.message, failure.message.data(), length);
    return info;
}

TracedTransfer::TracedTransfer(const waywiser_tracer& tracer,
                               std::span<const transfer::Operation> operations, void* stream,
                               std::uint32_t flags, bool waits)
    : tracer_(tracer) {
    const gpu::CallerState keep;
    const TracedOperation first =
        operations.empty() ? TracedOperation{} : traced(operations.front());
    record_ = {.size = sizeof record_,
               .id = ++last_id,
               .thread = static_cast<std::uint64_t>(syscall(SYS_gettid)),
               .called = now(),
               .returned = 0,
               .ended = 0,
               .kind = first.kind,
               .operations = operations.size(),
               .bytes = transfer::bytes_of(operations),
               .to_kind = first.to.kind,
               .from_kind = first.from.kind,
               .to_gpu = first.to.gpu,
               .from_gpu = first.from.gpu,
               .to = first.to.data,
               .from = first.from.data,
               .stream = stream,
               .flags = flags,
               .waits = waits ? 1 : 0,
               .status = WAYWISER_OK,
               .moved = 0};
    tracer_.begin(tracer_.data, &record_);
}

void TracedTransfer::fail(waywiser_status status, std::size_t moved) {
    record_.returned = record_.ended = now();
    record_.status = status;
    record_.moved = moved;
    tracer_.end(tracer_.data, &record_);
}

void TracedTransfer::returned(const transfer::Completion* left, transfer::Engine& engine) {
    record_.returned = now();
    if (left == nullptr) {
        record_.ended = record_.returned;
        record_.moved = record_.bytes;
        tracer_.end(tracer_.data, &record_);
        return;
    }
    left->on_end([self = *this](const transfer::Completion& one) { self.end(info_of(one)); },
                 engine);
}

void TracedTransfer::end(const waywiser_transfer_info& info) const {
    waywiser_trace_record record = record_;
    record.ended = now();
    record.status = info.status;
    record.moved = info.moved;
    tracer_.end(tracer_.data, &record);
}

}  // namespace waywiser::capi
