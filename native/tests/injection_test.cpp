// Every executor and memory kind reports failures of the runtime, and leaks nothing.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "case_stride.hpp"
#include "conformance.hpp"
#include "failure.hpp"
#include "fake/fixture.hpp"

namespace waywiser::test {
namespace {

constexpr std::size_t kBytes = 40000;

// With few runs, since each may be a call that can fail.
std::vector<Layout> layouts() {
    return {{},
            {Layout::Kind::list, {{"piece", "10000"}}},
            {Layout::Kind::box, {{"width", "1000"}, {"height", "20"}}}};
}

class Injection : public OnFake {
protected:
    const Machine machine = this_machine();

    // Every transfer that this machine supports, each on its own buffers.
    void for_each(const std::function<void(const Transfer&)>& visit) {
        std::vector<Transfer> runnable;
        for (const Path& path : paths(machine)) {
            for (const Layout& layout : layouts()) {
                for (Transfer& transfer : variations(path, machine, layout)) {
                    transfer.bytes = kBytes;
                    if (!unsupported_reason(transfer, machine)) runnable.push_back(transfer);
                }
            }
        }
        for (const Transfer& transfer : some_of(runnable)) {
            SCOPED_TRACE(transfer.text());
            visit(transfer);
        }
    }
};

// Prepares and runs one transfer; the test handles its exceptions.
struct Once {
    const Transfer& transfer;
    const Machine& machine;
    GuardedTransfer bytes{transfer, machine};
    Caller caller{transfer, machine};

    void operator()() const {
        const auto execution = caller.prepare();
        caller.run(*execution, bytes.source(), bytes.destination());
    }
};

struct Count {
    const char* point;
    std::size_t times;
};

// How often running it passes each point of the runtime that can fail.
std::vector<Count> passed(const Once& once) {
    fake::configure("");
    once();
    const fake::Counts counts = fake::counts();
    return {{"copy", counts.copies},
            {"fill", counts.fills},
            {"launch", counts.launches},
            {"event", counts.events}};
}

// Ends the work of a failed run. A real GPU loses it with its context; the fake's streams continue,
// and would write to memory that the next run uses.
void drain(const Once& once) {
    fake::configure("");
    for (const auto* lane : once.caller.lanes()) lane->synchronize();
}

TEST_F(Injection, AnErrorFromAnyCallIsSurfaced) {
    for_each([&](const Transfer& transfer) {
        const Once once{transfer, machine};
        for (const auto& [point, times] : passed(once)) {
            for (std::size_t n = 1; n <= times; ++n) {
                const std::string when = std::string(point) + "@" + std::to_string(n);
                SCOPED_TRACE(when);
                fake::configure("fail=" + when);
                EXPECT_EQ(failure(std::cref(once)), gpu::Failure::other);
                drain(once);
                fake::configure("sticky=" + when);
                EXPECT_EQ(failure(std::cref(once)), gpu::Failure::sticky);
                drain(once);
                fake::configure("lost=" + when);
                EXPECT_EQ(failure(std::cref(once)), gpu::Failure::sticky) << "swallowed";
                drain(once);
            }
        }
        fake::reset();
        EXPECT_EQ(failure(std::cref(once)), std::nullopt) << "it does not recover";
    });
}

bool needs_no_pinning(const Transfer& transfer, const Machine& machine) {
    const Executor& executor = *Executors::instance().find(transfer.path.executor);
    return executor.requirements(transfer, machine).pinned_bytes == 0;
}

TEST_F(Injection, OutOfMemoryAtEachAllocationIsSurfacedAndLeaksNothing) {
    for_each([&](const Transfer& transfer) {
        const auto all = [&] { Once{transfer, machine}(); };
        fake::configure("");
        all();
        const std::size_t times = fake::counts().allocations;
        for (std::size_t n = 1; n <= times; ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            fake::configure("oom_at=" + std::to_string(n));
            const auto found = failure(all);
            // Staging memory that cannot be pinned is pageable: nothing else continues without
            // memory.
            if (found || needs_no_pinning(transfer, machine)) {
                EXPECT_EQ(found, gpu::Failure::out_of_memory);
            }
            EXPECT_EQ(fake::live(), fake::Live{});
        }
    });
}

TEST_F(Injection, WhatAGpuCannotHoldIsOutOfMemory) {
    fake::configure("memory=1");
    for (const Memory& memory : memories(machine)) {
        if (!memory.on_gpu()) continue;
        const MemoryKind& kind = *Memories::instance().find(memory.kind);
        const auto allocate = [&] {
            std::ignore = kind.allocate(memory, std::size_t{2} << 20, machine);
        };
        if (kind.migrates()) {  // the runtime would allocate it, and evict
            EXPECT_THROW(allocate(), NotSupported) << memory.text();
        } else {
            EXPECT_EQ(failure(allocate), gpu::Failure::out_of_memory) << memory.text();
        }
    }
}

TEST_F(Injection, WithoutPeerAccessTheBytesStillArrive) {
    fake::configure("no_peers=all");
    const Machine apart = this_machine();
    for (const Path& path : paths(apart)) {
        if (!path.source.on_gpu() || !path.destination.on_gpu()) continue;
        for (const Layout& layout : layouts()) {
            const Transfer transfer{path, kBytes, {}, layout};
            if (unsupported_reason(transfer, apart)) continue;
            SCOPED_TRACE(transfer.text());
            Once once{transfer, apart};
            const auto execution = once.caller.prepare();
            EXPECT_EQ(move_once(once.caller, *execution, once.bytes, {}, 1), "");
        }
    }
}

TEST_F(Injection, WithoutAGpuEverythingThatNeedsOneIsRejected) {
    const std::vector<Path> known = paths(machine);
    Machine bare = machine;
    bare.gpus.clear();
    for (const Path& path : known) {
        const bool needs = Memories::instance().find(path.source.kind)->needs_gpu() ||
                           Memories::instance().find(path.destination.kind)->needs_gpu();
        const auto reason = unsupported_reason({path, kBytes, {}}, bare);
        if (needs) {
            EXPECT_TRUE(reason && !reason->empty()) << path.text();
        }
    }
}

}  // namespace
}  // namespace waywiser::test
