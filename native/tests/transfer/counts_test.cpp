// OverlongCounts that no array has.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "fake/fixture.hpp"
#include "waywiser/transfer.h"

namespace waywiser {
namespace {

constexpr std::size_t kLargestCount = std::numeric_limits<std::size_t>::max();
// Beyond all memory, by their product with the size of an entry or alone.
constexpr std::array<std::size_t, 5> kOverlongCounts = {
    kLargestCount, kLargestCount / 2 + 1, kLargestCount / 8 + 2, kLargestCount / 112 + 1,
    kLargestCount >> 16U};

class OverlongCounts : public test::OnFake {
protected:
    OverlongCounts() {
        waywiser_options options{};
        options.size = sizeof options;
        EXPECT_EQ(waywiser_context_create(&options, &context), WAYWISER_OK);
    }
    ~OverlongCounts() override { waywiser_context_release(context); }

public:
    OverlongCounts(const OverlongCounts&) = delete;
    OverlongCounts& operator=(const OverlongCounts&) = delete;

protected:
    static void expect_invalid(waywiser_status status, const char* argument) {
        EXPECT_EQ(status, WAYWISER_INVALID) << waywiser_last_error();
        const std::string said = waywiser_last_error();
        EXPECT_NE(said.find(std::string("the argument ") + argument + " is "), std::string::npos)
            << said;
    }

    waywiser_context* context = nullptr;
    std::array<std::byte, 64> to{}, from{};
    std::array<void*, 1> targets{to.data()};
    std::array<const void*, 1> sources{from.data()};
    std::array<std::size_t, 1> sizes{8};
    std::array<std::int64_t, 1> index{0};
    waywiser_transfer* transfer = nullptr;
    std::size_t needed = 0;
};

TEST_F(OverlongCounts, OfPiecesAreInvalid) {
    for (const std::size_t count : kOverlongCounts) {
        expect_invalid(waywiser_copy_batch(context, targets.data(), sources.data(), sizes.data(),
                                           count, nullptr, &transfer),
                       "count");
        expect_invalid(
            waywiser_copy_batch_and_wait(context, targets.data(), sources.data(), sizes.data(),
                                         count, nullptr, -1, nullptr, &transfer),
            "count");
        expect_invalid(waywiser_snapshot(context, targets.data(), sources.data(), sizes.data(),
                                         count, nullptr, &transfer),
                       "count");
        expect_invalid(waywiser_explain_batch(context, targets.data(), sources.data(), sizes.data(),
                                              count, nullptr, 0, &needed),
                       "count");
    }
}

TEST_F(OverlongCounts, OfBlocksAreInvalid) {
    for (const std::size_t count : kOverlongCounts) {
        expect_invalid(waywiser_copy_blocks(context, to.data(), 8, 8, from.data(), 8, 8, 8,
                                            index.data(), index.data(), count, nullptr, &transfer),
                       "count");
        expect_invalid(
            waywiser_explain_blocks(context, to.data(), 8, 8, from.data(), 8, 8, 8, index.data(),
                                    index.data(), count, nullptr, 0, &needed),
            "count");
    }
}

TEST_F(OverlongCounts, OfOperationsAndTransfersAreInvalid) {
    waywiser_operation one{};
    one.size = sizeof one;
    one.kind = WAYWISER_COPY;
    one.to = to.data();
    one.from = from.data();
    one.bytes = 8;
    waywiser_operation blocks = one;
    blocks.kind = WAYWISER_BLOCKS;
    blocks.to_stride = blocks.from_stride = 8;
    blocks.to_blocks = blocks.from_blocks = 8;
    blocks.to_index = blocks.from_index = index.data();
    for (const std::size_t count : kOverlongCounts) {
        expect_invalid(waywiser_submit(context, &one, count, nullptr, 0, &transfer), "count");
        waywiser_plan* plan = nullptr;
        expect_invalid(waywiser_plan_create(context, &one, count, &plan), "count");
        EXPECT_EQ(plan, nullptr);
        blocks.count = count;
        expect_invalid(waywiser_submit(context, &blocks, 1, nullptr, 0, &transfer), "count");
        std::size_t found = 0;
        expect_invalid(waywiser_wait_any(&transfer, count, 0, &found), "count");
    }
}

TEST_F(OverlongCounts, OfOptionsAreInvalid) {
    const int zero = 0;
    for (const std::size_t count : kOverlongCounts) {
        waywiser_context* made = nullptr;
        const auto expect_rejected = [&](const auto& set, const char* argument) {
            waywiser_options options{};
            options.size = sizeof options;
            set(options);
            expect_invalid(waywiser_context_create(&options, &made), argument);
            EXPECT_EQ(made, nullptr);
        };
        expect_rejected(
            [&](waywiser_options& options) {
                options.cpus = &zero;
                options.cpu_count = count;
            },
            "options.cpu_count");
        expect_rejected(
            [&](waywiser_options& options) {
                options.numa_nodes = &zero;
                options.numa_node_count = count;
            },
            "options.numa_node_count");
        expect_rejected(
            [&](waywiser_options& options) {
                options.relays = &zero;
                options.relay_count = count;
            },
            "options.relay_count");
    }
}

}  // namespace
}  // namespace waywiser
