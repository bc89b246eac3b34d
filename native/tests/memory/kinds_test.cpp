// Every kind of memory: its buffers are complete, writable if it says so, and at their place.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "conformance.hpp"
#include "fake/fake.hpp"
#include "host/pages.hpp"
#include "units.hpp"

namespace waywiser {
namespace {

class MemoryKinds : public ::testing::Test {
protected:
    MemoryKinds() { fake::reset(); }
    ~MemoryKinds() override { EXPECT_EQ(fake::live(), fake::Live{}); }
    const Machine machine = test::this_machine();
};

std::unique_ptr<Buffer> allocate(const Memory& memory, std::size_t bytes, const Machine& machine) {
    return Memories::instance().find(memory.kind)->allocate(memory, bytes, machine);
}

// By address or by descriptor: not both.
void expect_reachable(const Buffer& buffer) {
    EXPECT_NE(buffer.data() == nullptr, buffer.file() < 0);
}

TEST_F(MemoryKinds, GiveBuffersOfAnySize) {
    for (const Memory& memory : test::memories(machine)) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, 3 * kMiB + 5}) {
            SCOPED_TRACE(memory.text() + " of " + std::to_string(bytes));
            const auto buffer = allocate(memory, bytes, machine);
            expect_reachable(*buffer);
            EXPECT_GE(buffer->bytes(), bytes);
            const MemoryKind& kind = *Memories::instance().find(memory.kind);
            if (kind.cpu_accessible() && kind.writable(memory, machine)) {
                std::memset(buffer->data(), 0x77, bytes);
                EXPECT_EQ(buffer->data()[bytes - 1], std::byte{0x77});
            }
        }
    }
}

TEST_F(MemoryKinds, SayWhereTheBytesAreOrWhyTheyDoNotKnow) {
    for (const Memory& memory : test::memories(machine)) {
        SCOPED_TRACE(memory.text());
        const Placement placement = allocate(memory, kMiB, machine)->placement();
        switch (placement.state) {
            case Placement::State::verified: EXPECT_EQ(placement.fraction_on_place, 1); break;
            case Placement::State::misplaced:
                EXPECT_LT(placement.fraction_on_place, 1);
                EXPECT_NE(placement.detail, "");
                break;
            case Placement::State::unverified:
                EXPECT_EQ(placement.fraction_on_place, 0);
                EXPECT_NE(placement.detail, "");
                break;
        }
    }
}

Memory memory_from(const std::string& kind, const std::string& place, const std::string& from) {
    Memory memory;
    memory.kind = kind;
    memory.place = Place::parse(place);
    if (!from.empty()) memory.variant["from"] = from;
    return memory;
}

Memory device_memory(const std::string& from) { return memory_from("device", "gpu:0", from); }

TEST_F(MemoryKinds, DeviceMemoryThatTheDeviceHasNotIsRejected) {
    fake::configure("without=pool,vmm,ipc");
    const auto reason = [&](const std::string& from) -> std::string {
        try {
            allocate(device_memory(from), kMiB, machine);
        } catch (const NotSupported& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(reason("pool"), "gpu:0 has no stream-ordered pool");
    EXPECT_EQ(reason("vmm"), "gpu:0 has no virtual memory management");
    EXPECT_EQ(reason("ipc"), "gpu:0 shares no memory between processes");
    EXPECT_EQ(reason("malloc"), "");
}

// Each choice is a separate allocator: none falls back on another.
TEST_F(MemoryKinds, DeviceMemoryComesFromWhereItSays) {
    const auto live = [&](const std::string& from) {
        const auto held = allocate(device_memory(from), 1, machine);
        return fake::live();
    };
    EXPECT_EQ(live("malloc").device_buffers, 1u);
    EXPECT_EQ(live("pool").pool_buffers, 1u);
    EXPECT_EQ(live("vmm").mapped_buffers, 1u);
    EXPECT_EQ(live("ipc").foreign_buffers, 1u);
}

TEST_F(MemoryKinds, PageLockedMemoryComesFromWhereItSays) {
    const auto live = [&](const std::string& from) {
        const auto held = allocate(memory_from("pinned", "numa:0", from), 1, machine);
        return fake::live();
    };
    EXPECT_EQ(live("register").registrations, 1u);
    EXPECT_EQ(live("register").host_buffers, 0u);
    EXPECT_EQ(live("host-alloc").registrations, 0u);
    EXPECT_EQ(live("host-alloc").host_buffers, 1u);
    Memory both = memory_from("pinned", "numa:0", "host-alloc");
    both.variant["pages"] = "huge";
    EXPECT_EQ(Memories::instance().find("pinned")->unsupported_reason(both, machine),
              "the runtime chooses the pages of what it allocates itself");
    EXPECT_EQ(fake::live().host_buffers, 0u);
}

TEST_F(MemoryKinds, WhatTheRuntimeAllocatesNeedsACpuOfTheNode) {
    Machine bare = machine;
    bare.numa.front().cpus.clear();
    const auto reason = [&](const std::string& kind, const std::string& from) {
        return Memories::instance().find(kind)->unsupported_reason(
            memory_from(kind, "numa:0", from), bare);
    };
    const std::string none =
        "no CPU of numa:0 may be used, and what the runtime allocates lies where the allocating "
        "thread runs";
    EXPECT_EQ(reason("write-combined", ""), none);
    EXPECT_EQ(reason("pinned", "host-alloc"), none);
    EXPECT_EQ(reason("pinned", ""), std::nullopt);
}

TEST_F(MemoryKinds, NamesAreUnique) {
    std::set<std::string> names;
    for (const auto& kind : Memories::instance().entries()) {
        EXPECT_TRUE(names.insert(kind->info().name).second) << kind->info().name;
    }
}

// Memory that is not available is an error at the allocation, not a crash at the first touch.
TEST_F(MemoryKinds, MoreThanThereIsCannotBeAllocated) {
    constexpr std::size_t kTooMuch = std::size_t{1} << 60;
    for (const Memory& memory : test::memories(machine)) {
        EXPECT_ANY_THROW(allocate(memory, kTooMuch, machine)) << memory.text();
    }
}

TEST_F(MemoryKinds, AreVariedAsTheySay) {
    for (const Memory& memory : test::memories(machine)) {
        const MemoryKind& kind = *Memories::instance().find(memory.kind);
        for (const Parameter& parameter : kind.info().parameters) {
            for (const std::string& choice : parameter.choices) {
                Memory variant = memory;
                variant.variant[parameter.name] = choice;
                if (const auto reason = kind.unsupported_reason(variant, machine)) {
                    EXPECT_NE(*reason, "") << variant.text();
                } else {
                    SCOPED_TRACE(variant.text());
                    expect_reachable(*allocate(variant, kMiB, machine));
                }
            }
        }
    }
}

}  // namespace
}  // namespace waywiser
