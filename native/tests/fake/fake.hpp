// A GPU runtime on host memory, for tests. It implements src/gpu/gpu.hpp with a thread per stream,
// blocks the host when the real runtime was observed to do so, and fails on command. As with CUDA,
// a child of a process that has used a GPU has none; configure() makes it a process of its own.
//
// Its configuration is `key=value;key=value;...`, from the environment variable WAYWISER_FAKE at
// the first use, or from configure(). Unknown keys and malformed values throw
// std::invalid_argument; if they are in the environment, the fake is unavailable, with the reason.
//
// WHEN selects events counted since configure(): `3` the third, `3+` the third and all after it,
// `/3` every third. POINT is one of `copy` (of any shape, one for a whole batch; also prefetches)
// `fill` `launch` (of kernels and graphs) `event` (its record) `alloc` `sync`; `call` is any of
// them and any other call that can fail, except queries whether a stream or event is done, which
// are `query`: their number depends on the time. POINT@WHEN applies there, and POINT alone means
// POINT@1. Of the effects, `call` and `query` support `fail` and `sticky`. A recorded operation of
// a graph passes its point once, when it is recorded; its fault then applies to every launch.
//
// | key             | value           | what it does                                            |
// |-----------------|-----------------|---------------------------------------------------------|
// | devices         | number          | how many GPUs there are; 2                              |
// | memory          | MiB             | memory of each GPU; 16384                               |
// | unavailable     | text            | no GPU, and this reason                                 |
// | pageable_access | 0 or 1          | kernels may read pageable memory; 0                     |
// | no_peers        | 0-1,2-3 or all  | pairs without peer access, both directions              |
// | without         | batch,pool,...  | what driver and devices lack: batch, pool, vmm, ipc     |
// | multiprocessors | h2d,local,... | copies of h2d, d2h, local, peer, and fills (fill), that |
// |                 |                 | wait while a kernel occupies all multiprocessors; none  |
// | occupied        | 0 or 1          | a kernel can occupy all multiprocessors; 1              |
// | h2d d2h d2d peer| GB/s            | rates of page-locked to GPU, back, within, between GPUs |
// | staged          | GB/s            | rate with a pageable side, or peer access off           |
// | latency         | microseconds    | added to every copy, fill and launch; 2                 |
// | remote          | MICROS@SEED     | added between page-locked memory and GPUs of the other  |
// |                 |                 | half of them; SEED, 1 by default, deals blocks; 0       |
// | piece           | microseconds    | added to a batched copy for each of its runs; 0.2       |
// | event           | microseconds    | what recording an event takes of its stream; 0.5        |
// | oom_at          | WHEN            | allocations, registrations included, out of memory      |
// | fail            | POINT@WHEN      | an error that the context survives, from the call       |
// | sticky          | POINT@WHEN      | the context is lost: this call and all after it throw   |
// | lost            | POINT@WHEN      | the same when the stream gets there; the call succeeds  |
// | hang            | POINT@WHEN      | never ends: the stream's work, or a call that blocks    |
// | crash           | POINT@WHEN      | the process dies of SIGSEGV                             |
// | delay           | SECONDS@WHEN    | such copies take longer; WHEN is 1+ by default          |
// | flip            | copy@WHEN       | one bit of the last byte arrives wrong                  |
// | drop            | copy@WHEN       | the copy does nothing                                   |
// | block           | copy@WHEN       | the call blocks its host until done, though it need not |
// | gate            | lost or stuck   | a gate's first opening, or every one, is ignored        |
// | only_bytes      | number          | count and strike only copies of so many bytes           |
// | once            | file            | strike only in the process that manages to create it    |
//
// A hang, and a gate that is stuck, last until configure() or reset().
#pragma once

#include <cstddef>
#include <iosfwd>
#include <set>
#include <string>

#include "gpu/gpu.hpp"

namespace waywiser::fake {

// Resets the behaviour and all counters, with a working context and no peer access. Existing
// objects stay, and calls that hang still hang.
void configure(const std::string& text);
// configure(""): the defaults, independent of the environment.
void reset();

// Existing objects, for tests of leaks.
struct Live {
    std::size_t streams = 0;
    std::size_t events = 0;
    std::size_t device_buffers = 0;
    std::size_t host_buffers = 0;
    std::size_t registrations = 0;
    std::size_t gates = 0;
    std::size_t pool_buffers = 0;
    std::size_t mapped_buffers = 0;
    std::size_t foreign_buffers = 0;
    std::size_t managed_buffers = 0;
    std::size_t async_allocations = 0;
    std::size_t graphs = 0;
    std::size_t executable_graphs = 0;
    bool operator==(const Live&) const = default;
};
Live live();
std::ostream& operator<<(std::ostream& stream, const Live& live);

// Number of passes of each POINT since configure().
struct Counts {
    std::size_t copies = 0;
    std::size_t fills = 0;
    std::size_t launches = 0;
    std::size_t events = 0;
    std::size_t allocations = 0;
    std::size_t synchronisations = 0;
    std::size_t calls = 0;
    std::size_t queries = 0;
};
Counts counts();

// Whether the calling thread is starting the thread of a stream: a test in which the system starts
// no threads for the library lets this one start.
bool starts_stream();

// The devices with calls in their context since configure(): each would use memory of them.
std::set<int> contexts();
// The device of the calling thread's context; -1 for none.
int current_device();
void set_current_device(int device);

// The location of a byte of managed memory: unspecified until it is prefetched or filled. Kernels
// and CPUs do not move it. Throws std::out_of_range for other memory.
gpu::Location location(const void* data);

}  // namespace waywiser::fake
