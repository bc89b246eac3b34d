#include "measure/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

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

    // Each kind of memory at each place, with so many bytes of it.
    template <class Visit>
    void for_each(std::size_t bytes, Visit visit) {
        for (const Memory& memory : test::memories(machine)) {
            SCOPED_TRACE(memory.text() + " of " + std::to_string(bytes));
            const auto buffer =
                Memories::instance().find(memory.kind)->allocate(memory, bytes, machine);
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

}  // namespace
}  // namespace waywiser::measure
