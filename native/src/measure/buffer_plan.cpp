#include "measure/buffer_plan.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "host/pages.hpp"
#include "measure/executor_of.hpp"

namespace waywiser::measure {
namespace {

// Limits of slices: their number, their total payload, and the total size of buffers, which a large
// granule can make large.
constexpr std::size_t kMostSlices = 64;
constexpr std::size_t kSlicedBytes = std::size_t{16} << 20;
constexpr std::size_t kSlicedBuffer = std::size_t{256} << 20;
constexpr std::size_t kSlicedBuffers = std::size_t{1} << 30;  // of all buffers of a workload

std::size_t aligned(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

const MemoryKind& kind_of(const Memory& memory) { return *Memories::instance().find(memory.kind); }

bool needs_own_slices(const Request& request, const Machine& machine) {
    if (request.cache != Cache::warm) return true;
    return std::ranges::any_of(request.transfers, [&](const Transfer& transfer) {
        const Path& path = transfer.path;
        return !executor_of(transfer).repeatable(transfer, machine) ||
               kind_of(path.source).used_up(path.source) ||
               kind_of(path.destination).used_up(path.destination);
    });
}

PlannedTransfer planned_transfer(const Transfer& transfer, const Machine& machine) {
    const Path& path = transfer.path;
    PlannedTransfer planned{.source = arrange(transfer, Side::source),
                            .destination = arrange(transfer, Side::destination),
                            .in_place = executor_of(transfer).in_place(transfer, machine)};
    if (path.source.place.several()) {
        planned.exchange = executor_of(transfer).exchange(transfer, machine);
        planned.source.extent = planned.exchange->source_bytes;
        planned.destination.extent = planned.exchange->destination_bytes;
    }
    const std::size_t granule = std::max(
        {host::page_bytes(), kind_of(path.source).granule(), kind_of(path.destination).granule()});
    planned.stride = aligned(std::max(planned.source.extent, planned.destination.extent), granule);
    return planned;
}

std::size_t slices_for(const Request& request, const std::vector<PlannedTransfer>& transfers) {
    std::size_t payload = 1;
    std::size_t stride = 1;
    std::size_t together = 0;
    for (const Transfer& transfer : request.transfers) payload = std::max(payload, transfer.bytes);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        const PlannedTransfer& planned = transfers[i];
        const std::size_t memories = request.transfers[i].path.source.place.count();
        stride = std::max(stride, planned.stride);
        together += memories * (planned.in_place ? planned.stride : 2 * planned.stride);
    }
    if (together == 0) return 1;
    return std::clamp<std::size_t>(std::min({kSlicedBytes / aligned(payload, host::page_bytes()),
                                             kSlicedBuffer / stride, kSlicedBuffers / together}),
                                   1, kMostSlices);
}

// Limits them to the bytes that the file places allow.
std::size_t slices_in_files(const Request& request, const std::vector<PlannedTransfer>& transfers,
                            const Machine& machine, std::size_t slices) {
    std::map<std::string, std::size_t> strides;  // sum of the strides of all buffers at a place
    std::map<std::string, std::size_t> most;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        const Path& path = request.transfers[i].path;
        for (const Memory* memory : {&path.source, &path.destination}) {
            const std::size_t bytes = kind_of(*memory).most_bytes(*memory, machine);
            if (bytes == 0) continue;
            most[memory->place.text()] = bytes;
            strides[memory->place.text()] += transfers[i].stride;
        }
    }
    for (const auto& [place, bytes] : most) {
        slices = std::clamp<std::size_t>(bytes / strides[place], 1, slices);
    }
    return slices;
}

// The buffer of each side of each transfer: its own or, if shared, that of its memory.
class BufferSpecs {
public:
    BufferSpecs(bool shared, std::vector<BufferPool::Spec>& specs)
        : shared_(shared), specs_(specs) {}

    std::size_t of(const Memory& memory, Side side, std::size_t bytes) {
        const auto key = std::pair{side, memory.text()};
        if (const auto known = named_.find(key); shared_ && known != named_.end()) {
            for (std::size_t n = 0; n < memory.place.count(); ++n) {
                BufferPool::Spec& spec = specs_[known->second + n];
                spec.bytes = std::max(spec.bytes, bytes);
            }
            return known->second;
        }
        const std::size_t first = specs_.size();
        for (Memory& single : memory.each()) specs_.push_back({std::move(single), bytes});
        named_.emplace(key, first);
        return first;
    }

private:
    bool shared_;
    std::vector<BufferPool::Spec>& specs_;
    std::map<std::pair<Side, std::string>, std::size_t> named_;
};

// Whether two transfers that share a buffer have the same layout in it. For a list, that includes
// the number of pieces.
bool same_layout(const Transfer& a, const Transfer& b) {
    return a.layout == b.layout && (a.layout.kind != Layout::Kind::list || a.bytes == b.bytes);
}

}  // namespace

BufferPlan plan_buffers(const Request& request, const Machine& machine) {
    BufferPlan plan;
    plan.own_slices = needs_own_slices(request, machine);
    for (const Transfer& transfer : request.transfers) {
        plan.transfers.push_back(planned_transfer(transfer, machine));
    }
    if (request.shared) {  // slices of one buffer must not overlap
        const std::size_t stride =
            std::ranges::max(plan.transfers, {}, &PlannedTransfer::stride).stride;
        for (PlannedTransfer& planned : plan.transfers) planned.stride = stride;
    }
    if (plan.own_slices) {
        plan.slices =
            slices_in_files(request, plan.transfers, machine, slices_for(request, plan.transfers));
    }
    BufferSpecs specs(request.shared, plan.specs);
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
        PlannedTransfer& planned = plan.transfers[i];
        const Path& path = request.transfers[i].path;
        const auto bytes = [&](const Arrangement& side) {
            return plan.slices == 1 ? side.extent : plan.slices * planned.stride;
        };
        planned.source_buffer = specs.of(path.source, Side::source, bytes(planned.source));
        planned.destination_buffer =
            planned.in_place
                ? planned.source_buffer
                : specs.of(path.destination, Side::destination, bytes(planned.destination));
    }
    return plan;
}

std::optional<std::string> sharing_unsupported_reason(const Request& request,
                                                      const Machine& machine) {
    if (!request.shared) return std::nullopt;
    std::map<std::pair<Side, std::string>, const Transfer*> named;
    for (const Transfer& transfer : request.transfers) {
        if (transfer.path.source.place.several()) {
            return "transfers among several memories cannot share them";
        }
        if (executor_of(transfer).in_place(transfer, machine)) {
            return "transfers that change the place of their bytes cannot share them";
        }
        for (const auto& [side, memory] :
             {std::pair{Side::source, &transfer.path.source},
              std::pair{Side::destination, &transfer.path.destination}}) {
            const Transfer& first =
                *named.try_emplace({side, memory->text()}, &transfer).first->second;
            if (!same_layout(first, transfer)) {
                return "transfers of different layouts cannot share " + memory->text();
            }
        }
    }
    return std::nullopt;
}

}  // namespace waywiser::measure
