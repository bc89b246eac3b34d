#include "measure/locality.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "conformance.hpp"
#include "fake/fake.hpp"
#include "fake/fixture.hpp"
#include "host/cache.hpp"
#include "measure/prepared_workload.hpp"

namespace waywiser::measure {
namespace {

using Locality = test::OnFake;

LocalityRequest request(const Machine& machine, const char* kind) {
    const NumaNode& node = machine.numa.front();
    return {.memory = {kind, {Place::Kind::numa, node.index, {}}, {}},
            .blocks = 3,
            .bytes = std::size_t{2} << 20,
            .rounds = 4,
            .cpus = {node.cpus.front(), node.cpus.back()},
            .sweeps = 2,
            .pause = 0.001};
}

TEST_F(Locality, TimesCopiesOfEachBlockToEachGpuInEachRound) {
    fake::configure("devices=3;latency=1");
    const Machine machine = test::this_machine();
    Streams streams;
    const LocalityOutcome found = locality(request(machine, "pinned"), machine, streams);
    EXPECT_EQ(found.gpus, (std::vector<int>{0, 1, 2}));
    ASSERT_EQ(found.blocks.size(), 3u);
    for (const BlockLocality& block : found.blocks) {
        ASSERT_EQ(block.copies.size(), 4u);
        for (const auto& round : block.copies) {
            ASSERT_EQ(round.size(), 3u);
            for (const double seconds : round) EXPECT_GT(seconds, 1e-6);
        }
    }
    EXPECT_GT(found.seconds, 0);
}

TEST_F(Locality, TimesLoadsOfEachCpuInEachSweep) {
    if (host::flush_instruction().empty()) GTEST_SKIP() << "nothing flushes here";
    const Machine machine = test::this_machine();
    Streams streams;
    for (const char* kind : {"pinned", "pageable"}) {
        SCOPED_TRACE(kind);
        const LocalityRequest requested = request(machine, kind);
        const LocalityOutcome found = locality(requested, machine, streams);
        EXPECT_EQ(found.cpus, requested.cpus);
        ASSERT_EQ(found.sweeps.size(), 2u);
        EXPECT_GE(found.sweeps[1] - found.sweeps[0], requested.pause);
        for (const BlockLocality& block : found.blocks) {
            EXPECT_EQ(block.copies.empty(), std::string(kind) == "pageable");
            ASSERT_EQ(block.reads.size(), 2u);
            for (const auto& sweep : block.reads) {
                ASSERT_EQ(sweep.size(), 2u);
                // A load from a core's own cache takes less than 8 ns.
                for (const double seconds : sweep) EXPECT_GT(seconds, 8e-9);
            }
        }
    }
}

TEST_F(Locality, OfMemoryThatIsNotThereIsRejected) {
    const Machine machine = test::this_machine();
    Streams streams;
    LocalityRequest requested = request(machine, "pinned");
    requested.memory.place.index = 99;
    EXPECT_THROW((void)locality(requested, machine, streams), NotSupported);
    requested.memory = {"butter", requested.memory.place, {}};
    EXPECT_THROW((void)locality(requested, machine, streams), NotSupported);
}

TEST_F(Locality, OfABufferIsTakenOnce) {
    const Machine machine = test::this_machine();
    Streams streams;
    BufferSides sides(machine, streams);
    const Memory memory{"pinned", {Place::Kind::numa, machine.numa.front().index, {}}, {}};
    const auto allocate = [&](const Memory& what) {
        return std::shared_ptr<Buffer>(
            Memories::instance().find(what.kind)->allocate(what, 1 << 20, machine));
    };
    auto buffer = allocate(memory);
    const auto first = sides.of(buffer, memory);
    EXPECT_EQ(first.size(), machine.gpus.size());
    const std::size_t copies = fake::counts().copies;
    EXPECT_GT(copies, 0u);
    EXPECT_EQ(sides.of(buffer, memory), first);
    EXPECT_EQ(fake::counts().copies, copies) << "it was taken again";
    buffer.reset();
    buffer = allocate(memory);  // perhaps at the same address, but another buffer
    (void)sides.of(buffer, memory);
    EXPECT_GT(fake::counts().copies, copies);
    const Memory pageable{"pageable", memory.place, {}};
    EXPECT_TRUE(sides.of(allocate(pageable), pageable).empty());
    const Memory device{"device", Place::parse("gpu:0"), {}};
    EXPECT_TRUE(sides.of(allocate(device), device).empty());
}

TEST_F(Locality, OfABufferSaysNothingWithOneGpu) {
    fake::configure("devices=1");
    const Machine machine = test::this_machine();
    Streams streams;
    BufferSides sides(machine, streams);
    const Memory memory{"pinned", {Place::Kind::numa, machine.numa.front().index, {}}, {}};
    const std::shared_ptr<Buffer> buffer =
        Memories::instance().find("pinned")->allocate(memory, 1 << 20, machine);
    EXPECT_TRUE(sides.of(buffer, memory).empty());
    EXPECT_EQ(fake::counts().copies, 0u);
}

}  // namespace
}  // namespace waywiser::measure
