#include "transfer/list_pipeline.hpp"

#include <algorithm>

#include "transfer/list_kernel.hpp"

namespace waywiser::transfer {
namespace {

// Of the first and the last chunks: copying fewer bytes takes less time than starting to.
constexpr std::size_t kLeastChunk = std::size_t{512} << 10;
// With smaller ones in staging memory the link waits for kernels most of the time.
constexpr std::size_t kLeastStaging = std::size_t{1} << 20;

}  // namespace

PipelineShape pipeline_within(std::size_t bytes) {
    PipelineShape shape;
    while (shape.chunk >= kLeastStaging && shape.bytes() > bytes) shape.chunk /= 2;
    if (shape.chunk < kLeastStaging) shape.chunk = 0;
    return shape;
}

ListPipeline::Slot::Slot(int device)
    : filled(device, gpu::EventUse::ordering), emptied(device, gpu::EventUse::ordering) {}

ListPipeline::ListPipeline(int device, std::byte* staging, const PipelineShape& shape)
    : shape_(shape),
      staging_(staging),
      kernels_(device, gpu::StreamUse::prioritized),
      copies_(device),
      tables_(device),
      start_(device, gpu::EventUse::ordering),
      uploaded_(device, gpu::EventUse::ordering),
      joined_(device, gpu::EventUse::ordering),
      done_(device, gpu::EventUse::ordering) {
    for (std::size_t i = 0; i < shape.slots; ++i) slots_.emplace_back(device);
}

Settled ListPipeline::settle() const noexcept {
    Settled worst = Settled::yes;
    for (const gpu::Stream* stream : {&kernels_, &copies_, &tables_}) {
        worst = std::max(worst, transfer::settle(*stream));
        if (worst == Settled::no) break;
    }
    return worst;
}

void ListPipeline::start_after(const gpu::Stream& stream, std::size_t bytes, std::size_t slots) {
    start_.record(stream);
    wait(start_);
    moved_ = 0;
    left_ = bytes;
    used_ = slots == 0 ? slots_.size() : std::min(slots, slots_.size());
    next_ %= used_;
}

void ListPipeline::wait(const gpu::Event& event) {
    gpu::wait(kernels_, event);
    gpu::wait(copies_, event);
}

std::size_t ListPipeline::chunk_bytes(std::size_t needed, std::size_t most, std::size_t run,
                                      std::size_t left) const {
    most = std::min(most, shape_.chunk);
    const std::size_t bytes = std::clamp(needed, std::min(kLeastChunk, most), most);
    return std::min(std::max<std::size_t>(bytes / run, 1) * run, left);
}

std::pair<ListPipeline::Slot*, std::byte*> ListPipeline::next_slot() {
    const std::size_t number = next_;
    next_ = (next_ + 1) % used_;
    return {&slots_[number], staging_ + number * shape_.chunk};
}

void ListPipeline::gather(std::byte* to, const Runs& from, std::size_t chunk, unsigned blocks) {
    kernels_are_last_ = false;
    std::size_t count = 0;
    for (std::size_t first = 0; first < from.count; first += count) {
        // As much as was moved before: the link does not wait for a long chunk after a short one.
        const std::size_t bytes =
            chunk_bytes(moved_, chunk, from.run, (from.count - first) * from.run);
        count = bytes / from.run;
        const auto [slot, staged] = next_slot();
        if (slot->used) gpu::wait(kernels_, slot->emptied);
        launch_list(kernels_, blocks, Runs::together(staged, bytes), from.part(first, count));
        slot->filled.record(kernels_);
        gpu::wait(copies_, slot->filled);
        gpu::copy_async(to + first * from.run, staged, bytes, copies_);
        slot->emptied.record(copies_);
        slot->used = true;
        moved_ += bytes;
    }
}

void ListPipeline::load(const std::byte* from, std::size_t bytes, std::size_t run,
                        std::size_t chunk) {
    source_ = {.data = from, .bytes = bytes, .run = run, .chunk = chunk};
    load_more();
}

void ListPipeline::load_further(std::size_t bytes) {
    source_.bytes += bytes;
    load_more();
}

void ListPipeline::load_more() {
    while (source_.bytes != 0 && loaded_.size() < used_) {
        // Half of what is left, so that the last chunks are short.
        const std::size_t bytes = chunk_bytes(left_ / 2, source_.chunk, source_.run, source_.bytes);
        const auto [slot, staged] = next_slot();
        if (slot->used) gpu::wait(copies_, slot->emptied);
        gpu::copy_async(staged, source_.data, bytes, copies_);
        slot->filled.record(copies_);
        loaded_.push_back({.slot = slot, .data = staged, .bytes = bytes});
        source_.data += bytes;
        source_.bytes -= bytes;
        left_ -= std::min(left_, bytes);
    }
}

void ListPipeline::scatter(const Runs& to, const std::byte* from, std::size_t chunk,
                           unsigned blocks) {
    kernels_are_last_ = true;
    if (!loads()) load(from, to.count * to.run, to.run, chunk);
    std::size_t count = 0;
    for (std::size_t first = 0; first < to.count; first += count) {
        Loaded& one = loaded_.front();
        count = std::min(to.count - first, (one.bytes - one.scattered) / to.run);
        const std::size_t bytes = count * to.run;
        if (one.scattered == 0) gpu::wait(kernels_, one.slot->filled);
        auto* const staged = const_cast<std::byte*>(one.data + one.scattered);
        launch_list(kernels_, blocks, to.part(first, count), Runs::together(staged, bytes));
        one.scattered += bytes;
        if (one.scattered < one.bytes) continue;
        one.slot->emptied.record(kernels_);
        one.slot->used = true;
        loaded_.pop_front();
        load_more();
    }
}

void ListPipeline::upload(std::byte* to, const std::byte* from, std::size_t bytes) {
    // In the stream of the kernels or the copies it would wait for the chunks in flight.
    gpu::copy_async(to, from, bytes, tables_);
    uploaded_.record(tables_);
    gpu::wait(kernels_, uploaded_);
}

void ListPipeline::join() {
    source_ = {};
    loaded_.clear();
    joined_.record(tables_);
    gpu::wait(kernels_, joined_);
    joined_.record(copies_);
    gpu::wait(kernels_, joined_);
    joined_.record(kernels_);
    gpu::wait(copies_, joined_);
}

void ListPipeline::finish_before(const gpu::Stream& stream) {
    const gpu::Stream& last = kernels_are_last_ ? kernels_ : copies_;
    joined_.record(kernels_are_last_ ? copies_ : kernels_);
    gpu::wait(last, joined_);
    done_.record(last);
    started_ = true;
    last_stream_ = stream.handle();
    gpu::wait(stream, done_);
}

}  // namespace waywiser::transfer
