// Converts views to runs for kernels and CPUs.
//
// A side is an arrangement (a box by its formula, a list by a table of offsets in the memory of the
// device that moves it), or contiguous; then it is cut into the runs of the other side.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "executor/pieces.hpp"
#include "gpu/gpu.hpp"
#include "transfer/move_runs.hpp"
#include "waywiser/executor.hpp"

namespace waywiser {

using transfer::move_runs;
using transfer::Runs;

// The runs of an arrangement that starts at `data`, with the offsets of a list at `offsets`. `bits`
// does not include the offsets.
inline Runs runs_of(const Arrangement& arrangement, std::byte* data, const std::size_t* offsets) {
    Runs runs{
        .data = data, .run = arrangement.run, .count = arrangement.count, .pitch = arrangement.run};
    runs.bits = arrangement.run;
    if (arrangement.kind == Layout::Kind::box) {
        runs.pitch = arrangement.pitch;
        runs.height = arrangement.height;
        runs.plane = arrangement.plane;
        runs.bits |= arrangement.pitch | arrangement.plane;
    } else if (arrangement.kind == Layout::Kind::list) {
        runs.offsets = offsets;
    }
    return runs;
}

// The runs of a view, for a CPU.
inline Runs runs_of(const View& view) {
    if (view.arrangement == nullptr) return Runs::together(view.data, view.bytes);
    return runs_of(*view.arrangement, view.data, view.arrangement->offsets.data());
}

// An arrangement for the kernels of one device. The offsets of a list are in the device's memory,
// as in programs with block tables on the GPU. Immutable and thread safe; the original arrangement
// need not outlive it. The constructor allocates and copies, which must not happen behind a closed
// gate.
class RunTable {
public:
    // nullptr: contiguous.
    RunTable(const Arrangement* arrangement, int device) {
        if (arrangement == nullptr) return;
        runs_ = runs_of(*arrangement, nullptr, nullptr);
        arrangement_ = *arrangement;
        arrangement_.offsets = {};  // the device has them
        if (arrangement->kind != Layout::Kind::list || arrangement->offsets.empty()) return;
        const std::size_t bytes = arrangement->count * sizeof(std::size_t);
        offsets_.emplace(device, bytes);
        for (const std::size_t offset : arrangement->offsets) runs_.bits |= offset;
        gpu::copy_sync(offsets_->data(), arrangement->offsets.data(), bytes, device);
        runs_.offsets = reinterpret_cast<const std::size_t*>(offsets_->data());
    }

    // The runs of a view that is contiguous or has this arrangement. `data`: the address of its
    // first byte for kernels of the device. Throws NotSupported for a view with another
    // arrangement.
    [[nodiscard]] Runs of(const View& view, std::byte* data) const {
        if (view.arrangement == nullptr) return Runs::together(data, view.bytes);
        check_arrangement(view, arrangement_);
        Runs runs = runs_;
        runs.data = data;
        return runs;
    }

private:
    Runs runs_;
    Arrangement arrangement_;
    std::optional<gpu::DeviceBuffer> offsets_;
};

// The bytes of a transfer's tables on a device that moves `sides` of its sides.
inline std::size_t table_bytes(const Transfer& transfer, std::size_t sides) {
    const auto piece = transfer.layout.settings.find("piece");
    if (transfer.layout.kind != Layout::Kind::list || layout_unsupported_reason(transfer)) return 0;
    return sides * (transfer.bytes / std::stoull(piece->second)) * sizeof(std::size_t);
}

}  // namespace waywiser
