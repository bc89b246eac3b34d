#include "measure/prepared_workload.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "host/cache.hpp"
#include "measure/exchange_bytes.hpp"
#include "measure/executor_of.hpp"
#include "measure/file_pattern.hpp"
#include "measure/pattern.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

// The machine for one of several transfers: CPUs that no earlier transfer uses come first. The
// first CPU of a node, which handles interrupts, comes last if there are others.
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

bool writable(const Memory& memory, const Machine& machine) {
    return Memories::instance().find(memory.kind)->writable(memory, machine);
}

// Throws WrongBytes if there are any.
void expect_none(const Mismatch& wrong, const Transfer& transfer, const char* which) {
    if (wrong.count == 0) return;
    throw WrongBytes(std::to_string(wrong.count) + " of " + std::to_string(transfer.bytes) +
                     " bytes " + which + std::to_string(wrong.first) + ", after " +
                     transfer.text());
}

}  // namespace

gpu::Stream& Streams::get(int device, std::size_t n) {
    auto& own = streams_[device];
    while (own.size() <= n) own.push_back(std::make_unique<gpu::Stream>(device));
    return *own[n];
}

PreparedWorkload::PreparedWorkload(const Request& request, const Machine& machine, BufferPool& pool,
                                   Streams& streams, transfer::Engine& engine)
    : request_(request), machine_(machine), plan_(plan_buffers(request, machine)) {
    buffers_ = pool.take(plan_.specs);
    parts_.reserve(request.transfers.size());
    for (std::size_t i = 0; i < request.transfers.size(); ++i) lay_out(i, streams, engine);
}

PreparedWorkload::~PreparedWorkload() {
    for (const Part& part : parts_) {
        for (const gpu::Stream* lane : part.lanes) {
            try {
                lane->synchronize();
            } catch (const gpu::Error&) {  // a lost context: nothing is in flight any more
            }
        }
    }
}

View PreparedWorkload::view(const Memory& memory, std::size_t buffer, std::size_t bytes,
                            const Arrangement& arrangement, std::vector<std::byte*>& each) const {
    if (memory.place.several()) {
        for (std::size_t n = 0; n < memory.place.count(); ++n) {
            each.push_back(buffers_[buffer + n]->data());
        }
        return {.bytes = bytes, .memory = &memory, .each = each.data()};
    }
    const Buffer& held = *buffers_[buffer];
    View view{.data = held.data(), .bytes = bytes, .memory = &memory};
    if (arrangement.kind != Layout::Kind::contiguous) view.arrangement = &arrangement;
    if (held.file() >= 0) {
        view.data = nullptr;
        view.file = held.file();
        view.offset = held.offset();
    }
    return view;
}

void PreparedWorkload::lay_out(std::size_t index, Streams& streams, transfer::Engine& engine) {
    const Transfer& transfer = request_.transfers[index];
    const PlannedTransfer& planned = plan_.transfers[index];
    const Executor& executor = executor_of(transfer);
    const int submit_node = executor.submit_node(transfer, machine_);
    const Machine own = rotated(machine_, used_cpus_[submit_node]);
    used_cpus_[submit_node] += threads_of(executor, transfer, machine_);

    Part part;
    part.stride = planned.stride;
    part.slices = plan_.slices;
    part.in_place = planned.in_place;
    part.source = view(transfer.path.source, planned.source_buffer, transfer.bytes, planned.source,
                       part.sources);
    part.destination = view(transfer.path.destination, planned.destination_buffer, transfer.bytes,
                            planned.destination, part.destinations);
    for (const int device : executor.lanes(transfer, machine_)) {
        part.lanes.push_back(&streams.get(device, used_streams_[device]++));
    }
    if (const NumaNode* node = own.node(submit_node)) {
        if (!node->cpus.empty()) part.cpu = {node->cpus.front()};
        if (submit_cpus_.empty()) submit_cpus_ = node->cpus;
    }
    part.execution = executor.prepare(transfer, own, part.lanes, engine);
    parts_.push_back(std::move(part));
}

std::size_t PreparedWorkload::most_repetitions() const {
    return plan_.own_slices ? plan_.slices : std::numeric_limits<std::size_t>::max();
}

// The placement of several memories is that of the first that is not where it should be.
PlacedBuffer PreparedWorkload::placed(const Memory& memory, std::size_t buffer) const {
    Placement found = buffers_[buffer]->placement();
    for (std::size_t n = 1; n < memory.place.count(); ++n) {
        const Placement other = buffers_[buffer + n]->placement();
        if (found.state == Placement::State::verified) found = other;
    }
    return {memory.text(), found};
}

std::vector<PlacedBuffer> PreparedWorkload::placements() const {
    std::vector<PlacedBuffer> placed;
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
        const Path& path = request_.transfers[i].path;
        const PlannedTransfer& planned = plan_.transfers[i];
        placed.push_back(this->placed(path.source, planned.source_buffer));
        placed.push_back(this->placed(path.destination, planned.destination_buffer));
    }
    return placed;
}

const std::shared_ptr<Buffer>& PreparedWorkload::buffer(std::size_t n) const {
    const PlannedTransfer& planned = plan_.transfers[n / 2];
    return buffers_[n % 2 == 0 ? planned.source_buffer : planned.destination_buffer];
}

std::size_t PreparedWorkload::buffer_bytes() const {
    std::size_t total = 0;
    for (const auto& buffer : buffers_) total += buffer->bytes();
    return total;
}

std::vector<int> PreparedWorkload::gpus() const {
    std::set<int> gpus;
    for (const Part& part : parts_) {
        for (const View* view : {&part.source, &part.destination}) {
            if (view->memory->on_gpu()) gpus.insert(view->memory->place.index);
        }
        for (const gpu::Stream* lane : part.lanes) gpus.insert(lane->device());
    }
    return {gpus.begin(), gpus.end()};
}

// Each slice of each transfer has its own pattern, so that bytes of another transfer or slice are
// detected. Transfers that share buffers must agree on their content.
std::uint64_t PreparedWorkload::seed(std::size_t transfer, std::size_t slice) const {
    const std::size_t buffers = request_.shared ? 0 : transfer;
    return request_.seed + buffers * plan_.slices + slice;
}

void PreparedWorkload::fill() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        for (std::size_t slice = 0; slice < parts_[i].slices; ++slice) {
            fill_source(i, slice);
            poison_destination(i, slice);
        }
    }
}

void PreparedWorkload::refill() {
    const auto has_own_source = [](const PlannedTransfer& planned) {
        return !planned.in_place && !planned.exchange;
    };
    if (request_.shared || !std::ranges::all_of(plan_.transfers, has_own_source)) return fill();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        for (std::size_t slice = 0; slice < parts_[i].slices; ++slice) poison_destination(i, slice);
    }
}

void PreparedWorkload::fill_source(std::size_t index, std::size_t slice) const {
    const Part& part = parts_[index];
    const View source = Part::at(part.source, slice * part.stride);
    if (const auto& exchange = plan_.transfers[index].exchange) {
        fill_sources(source, *exchange, seed(index, slice));
    } else if (writable(*part.source.memory, machine_)) {
        measure::fill(source, seed(index, slice), machine_);
    }
}

void PreparedWorkload::poison_destination(std::size_t index, std::size_t slice) const {
    const Part& part = parts_[index];
    const View destination = Part::at(part.destination, slice * part.stride);
    if (const auto& exchange = plan_.transfers[index].exchange) {
        poison_destinations(destination, *exchange, seed(index, slice));
    } else if (!part.in_place) {
        measure::poison(destination, seed(index, slice), machine_);
    }
}

void PreparedWorkload::check(std::size_t repetitions) const {
    const std::size_t last = std::min(repetitions, plan_.slices) - 1;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        check(i, 0);
        if (last > 0) check(i, last);
    }
}

void PreparedWorkload::check(std::size_t index, std::size_t slice) const {
    const Part& part = parts_[index];
    const Transfer& transfer = request_.transfers[index];
    const View source = Part::at(part.source, slice * part.stride);
    const View destination = Part::at(part.destination, slice * part.stride);
    if (const auto& exchange = plan_.transfers[index].exchange) {
        const auto [wrong, place] = check_destinations(destination, *exchange, seed(index, slice));
        const std::string which = "are wrong on " + place.text() + ", the first at offset ";
        return expect_none(wrong, transfer, which.c_str());
    }
    const Mismatch wrong = writable(*part.source.memory, machine_)
                               ? measure::check(destination, seed(index, slice), machine_)
                               : measure::compare_with_file(destination, source, machine_);
    expect_none(wrong, transfer, "are wrong, the first at offset ");
    if (part.in_place) return;
    expect_none(measure::check_gaps(destination, seed(index, slice), machine_), transfer,
                "were written outside the right place, the first at offset ");
}

// Restores the state of executions, then of memories, whose state has priority.
void PreparedWorkload::restore(std::size_t slices) const {
    std::vector<std::size_t> spans(buffers_.size(), 0);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        for (std::size_t slice = 0; slice < slices; ++slice) {
            const std::size_t offset = slice * part.stride;
            part.execution->restore(Part::at(part.source, offset),
                                    Part::at(part.destination, offset));
        }
        const PlannedTransfer& planned = plan_.transfers[i];
        const std::size_t last = (slices - 1) * part.stride;
        std::size_t& source = spans[planned.source_buffer];
        source = std::max(source, last + planned.source.extent);
        std::size_t& destination = spans[planned.destination_buffer];
        destination = std::max(destination, last + planned.destination.extent);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i]->restore(spans[i]);
}

void PreparedWorkload::condition_caches(const Part& part, std::size_t before) const {
    const auto span = [&](const View& view) {
        return before + (view.arrangement == nullptr ? view.bytes : view.arrangement->extent);
    };
    const auto flush = [&](const View& view) {
        host::flush(view.data, span(view), machine_.cpus(view.memory->place));
    };
    const View& source = part.source;
    const View& destination = part.destination;
    if (request_.cache == Cache::dirtied && source.memory->on_host()) {
        host::dirty(source.data, span(source), machine_.cpus(source.memory->place));
    }
    if (request_.cache == Cache::flushed) {
        if (source.memory->on_host()) flush(source);
        // In place, the bytes are not at the destination before the execution.
        if (destination.memory->on_host() && !part.in_place) flush(destination);
    }
}

void PreparedWorkload::condition(std::size_t repetitions) {
    const std::size_t slices = std::min(repetitions, plan_.slices);
    restore(slices);
    if (request_.cache != Cache::warm) {
        for (const Part& part : parts_) condition_caches(part, (slices - 1) * part.stride);
    }
    for (const Part& part : parts_) part.execution->wake();
}

}  // namespace waywiser::measure
