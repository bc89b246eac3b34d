#include "measure/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "case_stride.hpp"
#include "conformance.hpp"
#include "fake/fake.hpp"
#include "gpu/gpu.hpp"

namespace waywiser::measure {
namespace {

class Pattern : public ::testing::Test {
protected:
    Pattern() { fake::reset(); }
    ~Pattern() override { EXPECT_EQ(fake::live(), fake::Live{}); }

    const Machine machine = test::this_machine();

    // Each kind of memory at each place that has addresses and can be written, with `bytes` bytes.
    template <class Visit>
    void for_each(std::size_t bytes, Visit visit) {
        for (const Memory& memory : test::memories(machine)) {
            const MemoryKind& kind = *Memories::instance().find(memory.kind);
            if (memory.kind == "file" || !kind.writable(memory, machine)) continue;
            SCOPED_TRACE(memory.text() + " of " + std::to_string(bytes));
            const auto buffer = kind.allocate(memory, bytes, machine);
            visit(View{buffer->data(), bytes, &memory});
        }
    }
};

TEST_F(Pattern, IsRecognisedOnlyWithItsSeed) {
    for (const std::size_t bytes : {1, 7, 8, 9, 4096, 4099, 300001}) {
        for_each(bytes, [&](const View& view) {
            fill(view, 5, machine);
            EXPECT_EQ(check(view, 5, machine).count, 0u);
            EXPECT_GT(check(view, 6, machine).count, bytes * 9 / 10);
        });
    }
}

TEST_F(Pattern, MayStartBetweenTwoWords) {
    for_each(1100, [&](const View& whole) {
        for (const std::size_t offset : {1u, 3u, 4u, 7u, 63u}) {
            const View view{whole.data + offset, 1003, whole.memory};
            poison(view, 5, machine);
            EXPECT_EQ(check(view, 5, machine).count, view.bytes);
            fill(view, 5, machine);
            EXPECT_EQ(check(view, 5, machine).count, 0u);
        }
    });
}

TEST_F(Pattern, APoisonedBufferHoldsNoRightByte) {
    for (const std::size_t bytes : {1, 13, 70000}) {
        for_each(bytes, [&](const View& view) {
            poison(view, 5, machine);
            const Mismatch wrong = check(view, 5, machine);
            EXPECT_EQ(wrong.count, bytes);
            EXPECT_EQ(wrong.first, 0u);
        });
    }
}

TEST_F(Pattern, FindsAnyWrongByte) {
    constexpr std::size_t kBytes = 1003;
    for_each(kBytes, [&](const View& view) {
        fill(view, 9, machine);
        for (const std::size_t at : {0u, 1u, 8u, 511u, 999u, 1002u}) {
            std::byte byte{};
            gpu::copy_sync(&byte, view.data + at, 1, 0);
            byte ^= std::byte{0x10};
            gpu::copy_sync(view.data + at, &byte, 1, 0);
            const Mismatch wrong = check(view, 9, machine);
            EXPECT_EQ(wrong.count, 1u);
            EXPECT_EQ(wrong.first, at);
            byte ^= std::byte{0x10};
            gpu::copy_sync(view.data + at, &byte, 1, 0);
        }
        EXPECT_EQ(check(view, 9, machine).count, 0u);
    });
}

TEST_F(Pattern, FindsDisplacedBytes) {
    constexpr std::size_t kBytes = 4096;
    for_each(kBytes, [&](const View& view) {
        fill(view, 9, machine);
        std::vector<std::byte> bytes(kBytes);
        gpu::copy_sync(bytes.data(), view.data, kBytes, 0);
        std::rotate(bytes.begin(), bytes.begin() + 64, bytes.end());
        gpu::copy_sync(view.data, bytes.data(), kBytes, 0);
        EXPECT_GT(check(view, 9, machine).count, kBytes * 9 / 10);
    });
}

TEST_F(Pattern, IsTheSameOnEveryMemory) {
    constexpr std::size_t kBytes = 1003;
    std::vector<std::byte> first;
    for_each(kBytes, [&](const View& view) {
        fill(view, 3, machine);
        std::vector<std::byte> bytes(kBytes);
        gpu::copy_sync(bytes.data(), view.data, kBytes, 0);
        if (first.empty()) first = bytes;
        EXPECT_TRUE(bytes == first);
    });
}

// Separate runs of any length: one side of a transfer on every kind of memory.
class PatternInRuns : public Pattern {
protected:
    template <class Visit>
    void for_each_arrangement(Visit visit) {
        for (const test::Shaped& shaped : test::awkward_layouts()) {
            for (const Side side : {Side::source, Side::destination}) {
                const Memory any{"pageable", {Place::Kind::numa, 0, {}}, {}};
                const Transfer transfer{{any, any, "cpu"}, shaped.bytes, {}, shaped.layout};
                const Arrangement arrangement = arrange(transfer, side);
                for_each(arrangement.extent, [&](View view) {
                    SCOPED_TRACE(transfer.text());
                    view.bytes = shaped.bytes;
                    view.arrangement = &arrangement;
                    visit(view);
                });
            }
        }
    }
    // All bytes from the first to the end of the last run.
    static std::vector<std::byte> bytes_of(const View& view) {
        std::vector<std::byte> bytes(view.arrangement->extent);
        gpu::copy_sync(bytes.data(), view.data, bytes.size(), 0);
        return bytes;
    }
    static void turn(const View& view, std::size_t offset) {
        std::byte byte{};
        gpu::copy_sync(&byte, view.data + offset, 1, 0);
        byte ^= std::byte{0x10};
        gpu::copy_sync(view.data + offset, &byte, 1, 0);
    }
};

TEST_F(PatternInRuns, TheNthByteThatIsMovedHasTheNthOfThePattern) {
    for_each_arrangement([&](const View& view) {
        const Arrangement& arrangement = *view.arrangement;
        std::vector<std::byte> expected(view.bytes);
        const Memory plain{"pageable", {Place::Kind::numa, machine.numa.front().index, {}}, {}};
        fill({expected.data(), expected.size(), &plain}, 5, machine);
        fill(view, 5, machine);
        EXPECT_EQ(check(view, 5, machine).count, 0u);
        const std::vector<std::byte> all = bytes_of(view);
        for (std::size_t n = 0; n < view.bytes; ++n) {
            if (all[arrangement.offset(n / arrangement.run) + n % arrangement.run] != expected[n])
                FAIL() << "byte " << n;
        }
    });
}

TEST_F(PatternInRuns, APoisonedDestinationHoldsNoRightByteAndItsGapsAreKnown) {
    for_each_arrangement([&](const View& view) {
        poison(view, 5, machine);
        EXPECT_EQ(check(view, 5, machine).count, view.bytes);
        EXPECT_EQ(check_gaps(view, 5, machine).count, 0u);
        fill(view, 5, machine);
        EXPECT_EQ(check_gaps(view, 5, machine).count, 0u) << "filling wrote between the runs";
    });
}

TEST_F(PatternInRuns, FindsAnyByteThatIsWrongWhereverItLies) {
    for_each_arrangement([&](const View& view) {
        const Arrangement& arrangement = *view.arrangement;
        poison(view, 5, machine);
        fill(view, 5, machine);
        std::vector<bool> moved(arrangement.extent, false);
        for (std::size_t n = 0; n < view.bytes; ++n) {
            moved[arrangement.offset(n / arrangement.run) + n % arrangement.run] = true;
        }
        const std::size_t step =
            std::max<std::size_t>(arrangement.extent * test::case_stride() / 11, 1);
        for (std::size_t offset = 0; offset < arrangement.extent; offset += step) {
            turn(view, offset);
            const Mismatch wrong = check(view, 5, machine);
            const Mismatch between = check_gaps(view, 5, machine);
            EXPECT_EQ(wrong.count, moved[offset] ? 1u : 0u) << offset;
            EXPECT_EQ(between.count, moved[offset] ? 0u : 1u) << offset;
            if (moved[offset]) {
                EXPECT_EQ(arrangement.offset(wrong.first / arrangement.run) +
                              wrong.first % arrangement.run,
                          offset);
            } else {
                EXPECT_EQ(between.first, offset);
            }
            turn(view, offset);
        }
    });
}

// Migrating memory is checked at its place.
TEST_F(Pattern, IsCheckedByTheCpuWhereMemoryIsNotPageLocked) {
    for_each(4096, [&](const View& view) {
        const MemoryKind& kind = *Memories::instance().find(view.memory->kind);
        fill(view, 5, machine);
        const auto launched = fake::counts().launches;
        EXPECT_EQ(check(view, 5, machine).count, 0u);
        const bool by_gpu = view.memory->on_gpu() || kind.page_locked();
        EXPECT_EQ(fake::counts().launches > launched, by_gpu);
    });
}

}  // namespace
}  // namespace waywiser::measure
