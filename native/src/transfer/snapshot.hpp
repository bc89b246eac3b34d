// Snapshots: copies of GPU memory to the host that let the GPU go on, until the memory changes.
#pragma once

#include <memory>

#include "transfer/caller_stream.hpp"
#include "transfer/completion.hpp"
#include "transfer/piece_list.hpp"

namespace waywiser::transfer {

// Copies the pieces beside the caller's stream: they start after the work that is in it now, and
// later work in it does not wait for them. Completion::order_reads() orders a stream that changes
// the sources. All sources are memory of one GPU, and all destinations host memory of one kind.
//
// Into pinned memory, all copies are submitted here, to a stream of their own. Else threads submit
// them, through staging, when the caller's stream has come this far: nothing of the library waits
// inside the GPU runtime until then. Throws InvalidCopy for other memory, and NotSupported while
// the stream is captured.
Completion snapshot(const std::shared_ptr<Engine>& engine, CopyList list,
                    const CallerStream& stream);

}  // namespace waywiser::transfer
