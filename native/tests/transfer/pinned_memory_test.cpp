// Pinned memory for programs: rejected if there is too little, kept while a GPU may use it.
#include "transfer/pinned_memory.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <new>

#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"

namespace waywiser::transfer {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

class PinnedMemoryOfPrograms : public test::OnFake {
protected:
    // Configures the fake and creates a context on GPU 0.
    static void configure(const char* text) {
        fake::configure(text);
        gpu::free_bytes(0);
    }
};

TEST_F(PinnedMemoryOfPrograms, IsRejectedWhereThereIsTooLittle) {
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    for (const std::size_t bytes : {kMost, kMost / 2, std::size_t{1} << 50}) {
        EXPECT_THROW(pinned_allocate(bytes, -1), std::bad_alloc) << bytes;
    }
}

TEST_F(PinnedMemoryOfPrograms, StaysWhileItIsUnknownWhetherAGpuUsesIt) {
    void* const first = pinned_allocate(kBytes, -1);
    EXPECT_EQ(fake::live().registrations, 1U);
    configure("fail=sync@1+");
    pinned_free(first);
    EXPECT_EQ(fake::live().registrations, 1U);
    void* const second = pinned_allocate(kBytes, -1);
    EXPECT_EQ(fake::live().registrations, 2U);
    configure("");
    void* const third = pinned_allocate(kBytes, -1);
    EXPECT_EQ(fake::live().registrations, 2U);  // the first is freed by now
    pinned_free(second);
    pinned_free(third);
    EXPECT_EQ(fake::live().registrations, 0U);
}

TEST_F(PinnedMemoryOfPrograms, IsFreedWithALostContext) {
    void* const data = pinned_allocate(kBytes, -1);
    configure("sticky=sync@1+");
    pinned_free(data);
    EXPECT_EQ(fake::live().registrations, 0U);
}

}  // namespace
}  // namespace waywiser::transfer
