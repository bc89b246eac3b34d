#include "measure/workbench.hpp"

#include <algorithm>
#include <set>

#include "host/cache.hpp"
#include "measure/pattern.hpp"

namespace waywiser::measure {
namespace {

// Where the state of the caches matters, repetitions of one sample each take their own piece of
// the buffers, up to so many bytes and pieces.
constexpr std::size_t kSlicedBytes = std::size_t{16} << 20;
constexpr std::size_t kMostSlices = 64;
constexpr std::size_t kSliceAlignment = 4096;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kSliceAlignment - 1) & ~(kSliceAlignment - 1);
}

std::size_t slices_for(const Request& request) {
    if (request.cache == Cache::warm) return 1;
    const std::size_t largest = std::ranges::max(request.transfers, {}, &Transfer::bytes).bytes;
    return std::clamp<std::size_t>(kSlicedBytes / aligned(std::max<std::size_t>(largest, 1)), 1,
                                   kMostSlices);
}

// The machine as one transfer of several sees it: its CPUs come first that no earlier one took.
// The first CPU of a node, where interrupts land, comes last where there are others.
Machine rotated(const Machine& machine, std::size_t used) {
    Machine view = machine;
    for (NumaNode& node : view.numa) {
        if (node.cpus.size() < 2) continue;
        const std::size_t spared = node.cpus.size() > 2 ? 1 : 0;
        const auto by = static_cast<std::ptrdiff_t>((used + spared) % node.cpus.size());
        std::ranges::rotate(node.cpus, node.cpus.begin() + by);
    }
    return view;
}

std::size_t threads_of(const Executor& executor, const Transfer& transfer, const Machine& machine) {
    const std::string threads = parameter(executor, transfer, machine, "threads");
    return threads.empty() ? 1 : std::stoul(threads);
}

}  // namespace

gpu::Stream& Streams::get(int device, std::size_t n) {
    auto& own = streams_[device];
    while (own.size() <= n) own.push_back(std::make_unique<gpu::Stream>(device));
    return *own[n];
}

Workbench::Workbench(const Request& request, const Machine& machine, BufferPool& pool,
                     Streams& streams)
    : request_(request), machine_(machine), slices_(slices_for(request)) {
    std::vector<BufferPool::Want> wants;
    for (const Transfer& transfer : request.transfers) {
        const std::size_t bytes = slices_ == 1 ? transfer.bytes : slices_ * aligned(transfer.bytes);
        wants.push_back({transfer.path.source, bytes});
        wants.push_back({transfer.path.destination, bytes});
    }
    buffers_ = pool.take(wants);
    parts_.reserve(request.transfers.size());
    for (const Transfer& transfer : request.transfers) lay_out(transfer, machine, streams);
}

Workbench::~Workbench() {
    for (const Part& part : parts_) {
        for (const gpu::Stream* lane : part.lanes) {
            try {
                lane->synchronize();
            } catch (const gpu::Error&) {  // a lost context: nothing is under way any more
            }
        }
    }
}

void Workbench::lay_out(const Transfer& transfer, const Machine& machine, Streams& streams) {
    const Executor& executor = *Executors::instance().find(transfer.path.executor);
    const int submit_node = executor.submit_node(transfer, machine);
    const Machine own = rotated(machine, used_cpus_[submit_node]);
    used_cpus_[submit_node] += threads_of(executor, transfer, machine);

    Part part;
    part.stride = aligned(transfer.bytes);
    part.slices = slices_;
    const std::size_t first = 2 * parts_.size();
    part.source = {buffers_[first]->data(), transfer.bytes, &transfer.path.source};
    part.destination = {buffers_[first + 1]->data(), transfer.bytes, &transfer.path.destination};
    for (const int device : executor.lanes(transfer, machine)) {
        part.lanes.push_back(&streams.get(device, used_streams_[device]++));
    }
    if (const NumaNode* node = own.node(submit_node)) {
        if (!node->cpus.empty()) part.cpu = {node->cpus.front()};
        if (submit_cpus_.empty()) submit_cpus_ = node->cpus;
    }
    part.execution = executor.prepare(transfer, own, part.lanes);
    parts_.push_back(std::move(part));
}

std::vector<PlacedBuffer> Workbench::placements() const {
    std::vector<PlacedBuffer> placed;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const Path& path = request_.transfers[i / 2].path;
        const Memory& memory = i % 2 == 0 ? path.source : path.destination;
        placed.push_back({memory.text(), buffers_[i]->placement()});
    }
    return placed;
}

std::size_t Workbench::buffer_bytes() const {
    std::size_t total = 0;
    for (const auto& buffer : buffers_) total += buffer->bytes();
    return total;
}

std::vector<int> Workbench::gpus() const {
    std::set<int> gpus;
    for (const Part& part : parts_) {
        for (const View* view : {&part.source, &part.destination}) {
            if (view->memory->on_gpu()) gpus.insert(view->memory->place.index);
        }
        for (const gpu::Stream* lane : part.lanes) gpus.insert(lane->device());
    }
    return {gpus.begin(), gpus.end()};
}

void Workbench::fill() {
    for (const Part& part : parts_) {
        for (std::size_t slice = 0; slice < slices_; ++slice) {
            const std::size_t offset = slice * part.stride;
            measure::fill(Part::at(part.source, offset), request_.seed, machine_);
            measure::poison(Part::at(part.destination, offset), request_.seed, machine_);
        }
    }
}

void Workbench::check() const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Mismatch wrong = measure::check(parts_[i].destination, request_.seed, machine_);
        if (wrong.count == 0) continue;
        throw WrongBytes(std::to_string(wrong.count) + " of " +
                         std::to_string(parts_[i].destination.bytes) +
                         " bytes are wrong, the first at offset " + std::to_string(wrong.first) +
                         ", after " + request_.transfers[i].text());
    }
}

void Workbench::condition() {
    for (const Part& part : parts_) {
        part.execution->restore(part.source, part.destination);
        if (request_.cache == Cache::warm) continue;
        const std::size_t span = (slices_ - 1) * part.stride + part.source.bytes;
        const View& source = part.source;
        const View& destination = part.destination;
        if (request_.cache == Cache::dirtied && source.memory->on_host()) {
            host::dirty(source.data, span, machine_.cpus(source.memory->place));
        }
        if (request_.cache == Cache::flushed) {
            if (source.memory->on_host())
                host::flush(source.data, span, machine_.cpus(source.memory->place));
            if (destination.memory->on_host()) {
                host::flush(destination.data, span, machine_.cpus(destination.memory->place));
            }
        }
    }
    for (const Part& part : parts_) part.execution->wake();
}

}  // namespace waywiser::measure
