// Managed memory: its place after allocation, and never more of it than fits on any GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "units.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kGranule = 2 * kMiB;

class ManagedMemoryOnFake : public test::OnFake {
protected:
    [[nodiscard]] std::unique_ptr<Buffer> allocate(const char* place, std::size_t bytes,
                                                   const Settings& variant = {}) const {
        return kind().allocate({"managed", Place::parse(place), variant}, bytes, machine);
    }
    static const MemoryKind& kind() { return *Memories::instance().find("managed"); }

    const Machine machine = test::this_machine();
};

TEST_F(ManagedMemoryOnFake, IsWhereTheMemorySays) {
    for (const char* advice : {"none", "preferred", "read-mostly", "accessed-by"}) {
        SCOPED_TRACE(advice);
        const Settings variant{{"advice", advice}};
        const auto on_gpu = allocate("gpu:1", 5 * kMiB, variant);
        EXPECT_EQ(fake::location(on_gpu->data()), gpu::Location{.device = 1});
        EXPECT_EQ(fake::location(on_gpu->data() + 5 * kMiB - 1), gpu::Location{.device = 1});
        const auto on_host = allocate("numa:0", 5 * kMiB, variant);
        EXPECT_EQ(fake::location(on_host->data()), gpu::Location{.node = 0});
    }
}

TEST_F(ManagedMemoryOnFake, StartsAndEndsAtGranules) {
    for (const std::size_t bytes : {std::size_t{1}, kGranule, kGranule + 1}) {
        const auto buffer = allocate("gpu:0", bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % kGranule, 0u);
        EXPECT_EQ(buffer->bytes() % kGranule, 0u);
        EXPECT_GE(buffer->bytes(), bytes);
    }
    EXPECT_EQ(kind().granule(), kGranule);
}

TEST_F(ManagedMemoryOnFake, DoesNotClaimToKnowWhereItsPagesAre) {
    const Placement placement = allocate("gpu:0", 1)->placement();
    EXPECT_EQ(placement.state, Placement::State::unverified);
    EXPECT_NE(placement.detail, "");
}

TEST_F(ManagedMemoryOnFake, NeverExceedsTheFreeMemoryOfAnyGpu) {
    fake::configure("memory=64");
    const gpu::DeviceBuffer used(1, 32 * kMiB);  // another GPU than requested
    try {
        std::ignore = allocate("gpu:0", 32 * kMiB);
        FAIL() << "more than gpu:1 has free";
    } catch (const NotSupported& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("32 MiB free on gpu:1"), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
    EXPECT_NO_THROW((void)allocate("numa:0", 30 * kMiB));
}

// Memory on the host may be migrated to a GPU later.
TEST_F(ManagedMemoryOnFake, CountsWhatIsHeldAlready) {
    fake::configure("memory=64");
    const auto held = allocate("numa:0", 30 * kMiB);
    EXPECT_THROW((void)allocate("numa:0", 34 * kMiB), NotSupported);
    EXPECT_NO_THROW((void)allocate("numa:0", 16 * kMiB));
}

TEST_F(ManagedMemoryOnFake, GivesBackItsClaimWhenAllocationFails) {
    fake::configure("memory=64;oom_at=1");
    EXPECT_THROW((void)allocate("numa:0", 60 * kMiB), gpu::Error);
    EXPECT_NO_THROW((void)allocate("numa:0", 60 * kMiB));
}

// Other executors would migrate it.
TEST_F(ManagedMemoryOnFake, IsServedByWhatMovesItInPlaceAlone) {
    const Memory here{"managed", Place::parse("numa:0"), {}};
    const Memory there{"managed", Place::parse("gpu:0"), {}};
    const Memory device{"device", Place::parse("gpu:0"), {}};
    for (const auto& executor : Executors::instance().entries()) {
        const std::string& name = executor->info().name;
        const bool moves = name == "prefetch" || name == "page-fault";
        EXPECT_EQ(!unsupported_reason(Transfer{{here, there, name}, 4096, {}}, machine), moves)
            << name;
        EXPECT_TRUE(unsupported_reason(Transfer{{here, device, name}, 4096, {}}, machine)) << name;
        EXPECT_TRUE(unsupported_reason(Transfer{{device, here, name}, 4096, {}}, machine)) << name;
    }
}

}  // namespace
}  // namespace waywiser
