// Copies of one range of memory, ordered in the caller's stream.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "transfer/caller_stream.hpp"
#include "transfer/completion.hpp"
#include "transfer/engine.hpp"
#include "transfer/wait_for_host.hpp"

namespace waywiser::transfer {

// Copies like cudaMemcpyAsync. On return, a pageable destination is filled and a pageable source
// can be reused. Throws InvalidCopy, NotSupported, gpu::Error, Cancelled, ForkedProcess.
void copy(Engine& engine, void* to, const void* from, std::size_t bytes,
          const CallerStream& stream);
// The same, but returns when a host destination is filled and a host source can be reused, also if
// it is pinned; see wait_for_host(). A small copy (kPlainBelow) has then ended on the GPU too.
WaitResult copy_and_wait(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                         std::size_t bytes, const CallerStream& stream, const Deadline& deadline);
// Of a piece of a list, whose caller has checked the process and keeps its state. Like copy(), but
// returns what is left of it at the deadline; like copy_async().
std::optional<Completion> run_copy(Engine& engine, void* to, const void* from, std::size_t bytes,
                                   const CallerStream& stream, const Deadline& deadline);
Completion start_copy(Engine& engine, void* to, const void* from, std::size_t bytes,
                      const CallerStream& stream);
// Returns at once; the copy starts after the work in the stream.
Completion copy_async(const std::shared_ptr<Engine>& engine, void* to, const void* from,
                      std::size_t bytes, const CallerStream& stream);

}  // namespace waywiser::transfer
