#include "transfer/list_pipeline.hpp"

#include <algorithm>

#include "transfer/list_kernel.hpp"

namespace waywiser::transfer {

ListPipeline::Slot::Slot(int device)
    : filled(device, gpu::EventUse::ordering), emptied(device, gpu::EventUse::ordering) {}

ListPipeline::ListPipeline(int device, std::byte* staging, const PipelineShape& shape)
    : shape_(shape),
      staging_(staging),
      kernels_(device),
      copies_(device),
      start_(device, gpu::EventUse::ordering),
      joined_(device, gpu::EventUse::ordering),
      done_(device, gpu::EventUse::ordering) {
    for (std::size_t i = 0; i < shape.slots; ++i) slots_.emplace_back(device);
}

ListPipeline::~ListPipeline() {
    for (const gpu::Stream* stream : {&*kernels_, &copies_}) {
        try {
            stream->synchronize();
        } catch (const gpu::Error&) {  // a lost context: nothing is in flight any more
        }
    }
}

void ListPipeline::start_after(const gpu::Stream& stream) {
    start_.record(stream);
    gpu::wait(*kernels_, start_);
    gpu::wait(copies_, start_);
}

template <class Move>
void ListPipeline::for_each_chunk(const Runs& runs, std::size_t chunk, const Move& move) {
    const std::size_t most = std::max<std::size_t>(std::min(chunk, shape_.chunk) / runs.run, 1);
    for (std::size_t first = 0; first < runs.count; first += most) {
        Slot& slot = slots_[next_];
        move(slot, staging_ + next_ * shape_.chunk, first, std::min(most, runs.count - first));
        slot.used = true;
        next_ = (next_ + 1) % slots_.size();
    }
}

void ListPipeline::gather(std::byte* to, const Runs& from, std::size_t chunk, unsigned blocks) {
    for_each_chunk(
        from, chunk, [&](Slot& slot, std::byte* staged, std::size_t first, std::size_t count) {
            const std::size_t bytes = count * from.run;
            if (slot.used) gpu::wait(*kernels_, slot.emptied);
            launch_list(*kernels_, blocks, Runs::together(staged, bytes), from.part(first, count));
            slot.filled.record(*kernels_);
            gpu::wait(copies_, slot.filled);
            gpu::copy_async(to + first * from.run, staged, bytes, copies_);
            slot.emptied.record(copies_);
        });
}

void ListPipeline::scatter(const Runs& to, const std::byte* from, std::size_t chunk,
                           unsigned blocks) {
    for_each_chunk(
        to, chunk, [&](Slot& slot, std::byte* staged, std::size_t first, std::size_t count) {
            const std::size_t bytes = count * to.run;
            if (slot.used) gpu::wait(copies_, slot.emptied);
            gpu::copy_async(staged, from + first * to.run, bytes, copies_);
            slot.filled.record(copies_);
            gpu::wait(*kernels_, slot.filled);
            launch_list(*kernels_, blocks, to.part(first, count), Runs::together(staged, bytes));
            slot.emptied.record(*kernels_);
        });
}

void ListPipeline::upload(std::byte* to, const std::byte* from, std::size_t bytes, bool to_host) {
    // To the host, the engine for copies to the GPU is idle. From the host, a copy in the stream of
    // the kernels would wait for the chunks in flight.
    gpu::copy_async(to, from, bytes, to_host ? *kernels_ : copies_);
}

void ListPipeline::join() {
    joined_.record(copies_);
    gpu::wait(*kernels_, joined_);
    joined_.record(*kernels_);
    gpu::wait(copies_, joined_);
}

void ListPipeline::finish_before(const gpu::Stream& stream) {
    joined_.record(*kernels_);
    gpu::wait(copies_, joined_);
    done_.record(copies_);
    started_ = true;
    last_stream_ = stream.handle();
    gpu::wait(stream, done_);
}

}  // namespace waywiser::transfer
