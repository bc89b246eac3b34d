#include "transfer/list_kernel.hpp"

namespace waywiser::transfer {

void launch_list(const gpu::Stream& stream, unsigned blocks, const Runs& to, const Runs& from) {
    move_runs(stream, {.blocks = blocks, .threads = kThreadsMovingRuns}, to, from);
}

Runs listed_runs(std::byte* base, std::size_t run, std::size_t count, const std::size_t* offsets,
                 std::size_t access) {
    return {.data = base,
            .run = run,
            .count = count,
            .pitch = run,
            .offsets = offsets,
            .bits = run | access};
}

}  // namespace waywiser::transfer
