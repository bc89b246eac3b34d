// What the C++ header adds to the C interface: owners that move, names, memory for containers.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

static_assert(std::is_nothrow_move_constructible_v<Context>);
static_assert(std::is_nothrow_move_assignable_v<Context>);
static_assert(!std::is_copy_constructible_v<Context>);
static_assert(std::is_nothrow_move_constructible_v<PinnedBuffer>);
static_assert(std::is_nothrow_move_assignable_v<PinnedBuffer>);
static_assert(!std::is_copy_constructible_v<PinnedBuffer>);
static_assert(std::is_nothrow_move_constructible_v<PinnedRegistration>);
static_assert(!std::is_constructible_v<PinnedRegistration, std::span<const int>>);

TEST(StatusNames, AreThoseOfTheHeader) {
    EXPECT_STREQ(waywiser_status_name(WAYWISER_OK), "WAYWISER_OK");
    EXPECT_STREQ(waywiser_status_name(WAYWISER_IN_USE), "WAYWISER_IN_USE");
    const TransferError error(WAYWISER_TIMEOUT, "slow", 0, 0);
    EXPECT_STREQ(error.status_name(), "WAYWISER_TIMEOUT");
    const std::string unknown = waywiser_status_name(static_cast<waywiser_status>(15));
    EXPECT_NE(unknown.find("does not know"), std::string::npos);
}

class Owners : public test::OnFake {
protected:
    const ContextOptions options{.threads = 2, .pinned_bytes = kMiB};
};

TEST_F(Owners, OfContextsMove) {
    std::vector<std::byte> from(kKiB, std::byte{5}), to(kKiB);
    Context first(options);
    const waywiser_context* const made = first.get();
    Context second(std::move(first));
    EXPECT_EQ(second.get(), made);
    try {
        first.copy(to.data(), from.data(), kKiB);  // NOLINT(bugprone-use-after-move)
        FAIL() << "it has no context";
    } catch (const TransferError& error) {
        EXPECT_EQ(error.status(), WAYWISER_INVALID);
    }
    first = Context(options);
    first = std::move(second);
    EXPECT_EQ(first.get(), made);
    Context& same = first;
    first = std::move(same);
    EXPECT_EQ(first.get(), made);
    first.copy(to.data(), from.data(), kKiB);
    EXPECT_EQ(to, from);
}

TEST_F(Owners, OfPinnedBuffersMove) {
    PinnedBuffer first(kMiB);
    std::byte* const made = first.data();
    PinnedBuffer second(std::move(first));
    EXPECT_EQ(second.data(), made);
    EXPECT_EQ(second.bytes(), kMiB);
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(first.bytes(), 0U);
    first = PinnedBuffer(kKiB);
    EXPECT_EQ(fake::live().registrations, 2U);
    first = std::move(second);
    EXPECT_EQ(fake::live().registrations, 1U);
    PinnedBuffer& same = first;
    first = std::move(same);
    EXPECT_EQ(first.data(), made);
}

TEST_F(Owners, OfHandlesMove) {
    Context context(options);
    std::vector<std::byte> from(kKiB, std::byte{5}), to(kKiB);
    TransferHandle handle = context.copy_async(to.data(), from.data(), kKiB);
    TransferHandle& same = handle;
    handle = std::move(same);
    EXPECT_EQ(handle.result(), kKiB);
}

class PinnedResources : public test::OnFake {};

TEST_F(PinnedResources, GiveContainersPinnedMemory) {
    PinnedResource resource;
    std::pmr::vector<double> numbers(1000, 1.5, &resource);
    EXPECT_EQ(describe(numbers.data(), 8000).kind, WAYWISER_PINNED);
    numbers.resize(100000, 2.5);
    EXPECT_EQ(numbers.front(), 1.5);
    EXPECT_EQ(describe(numbers.data(), 800000).kind, WAYWISER_PINNED);
}

TEST_F(PinnedResources, HonourTheAlignment) {
    PinnedResource resource;
    for (std::size_t alignment = 1; alignment <= 8 * kMiB; alignment *= 2) {
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, 3 * kMiB}) {
            void* const data = resource.allocate(bytes, alignment);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0U);
            EXPECT_EQ(describe(data, bytes).kind, WAYWISER_PINNED);
            resource.deallocate(data, bytes, alignment);
        }
    }
}

TEST_F(PinnedResources, ThrowBadAlloc) {
    PinnedResource resource;
    EXPECT_THROW((void)resource.allocate(SIZE_MAX / 2), std::bad_alloc);
    EXPECT_THROW((void)resource.allocate(SIZE_MAX - 100, 8192), std::bad_alloc);
    PinnedResource nowhere(1000);
    EXPECT_THROW((void)nowhere.allocate(1), std::bad_alloc);
    gpu::free_bytes(0);
    fake::configure("oom_at=1");
    gpu::free_bytes(0);
    EXPECT_THROW((void)resource.allocate(1), std::bad_alloc);
}

TEST_F(PinnedResources, FreeWhatOthersAllocate) {
    PinnedResource one, other(0);
    EXPECT_TRUE(one == other);
    EXPECT_FALSE(one == *std::pmr::new_delete_resource());
    std::pmr::synchronized_pool_resource pool(&one);
    EXPECT_FALSE(one == pool);
}

TEST_F(PinnedResources, AreUsedBySeveralThreadsAtOnce) {
    PinnedResource resource;
    std::pmr::synchronized_pool_resource pool(&resource);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 10; ++round) {
                const std::pmr::vector<int> own(100, round, &resource);
                const std::pmr::vector<int> pooled(100, round, &pool);
                EXPECT_EQ(own, pooled);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace waywiser
