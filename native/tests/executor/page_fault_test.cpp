// Managed memory migrated by touching it: who touches, how, and that no byte changes.
#include <gtest/gtest.h>
#include <unistd.h>

#include "case_stride.hpp"
#include "executor/migration_fixture.hpp"

namespace waywiser {
namespace {

using test::location;
using test::Migration;
using test::migration;

Transfer touch(const char* from, const char* to, const Settings& parameters = {},
               const Settings& variant = {}) {
    return migration("page-fault", from, to, parameters, variant);
}

const Executor& executor() { return *Executors::instance().find("page-fault"); }

class PageFaultOnFake : public test::OnFake {
protected:
    const Machine machine = test::this_machine();
};

TEST_F(PageFaultOnFake, LeavesEveryByteAsItWas) {
    const std::pair<const char*, const char*> pairs[] = {
        {"numa:0", "gpu:0"}, {"gpu:1", "numa:0"}, {"gpu:0", "gpu:1"}};
    const std::pair<std::size_t, std::size_t> views[] = {
        {0, 8 * kMiB}, {0, 1}, {4095, 3}, {kMiB + 1, 4097}, {3, 2 * kMiB}};
    for (const auto& [from, to] : pairs) {
        for (const Transfer& transfer :
             test::few_of(test::variations(touch(from, to).path, machine))) {
            if (unsupported_reason(transfer, machine)) continue;
            SCOPED_TRACE(transfer.text());
            const Migration move(transfer, machine, 8 * kMiB);
            for (const auto& [offset, bytes] : views) {
                move.restore(offset, bytes);
                EXPECT_EQ(move.at(offset), location(from));
                EXPECT_EQ(move.at(offset + bytes - 1), location(from));
                move.execution().wake();
                move.start(offset, bytes);
            }
            EXPECT_TRUE(move.holds_what_was_sent());
        }
    }
}

TEST_F(PageFaultOnFake, LaunchesOneKernelWhereAGpuTouches) {
    const Migration move(touch("numa:0", "gpu:1"), machine, kMiB);
    move.restore(0, kMiB);
    const auto before = fake::counts();
    move.start(0, kMiB);
    EXPECT_EQ(fake::counts().launches, before.launches + 1);
    const Migration back(touch("gpu:1", "numa:0"), machine, kMiB);
    back.restore(0, kMiB);
    const auto launches = fake::counts().launches;
    back.start(0, kMiB);
    EXPECT_EQ(fake::counts().launches, launches);
}

TEST_F(PageFaultOnFake, IsTimedByWhoTouches) {
    const Transfer to_gpu = touch("gpu:1", "gpu:0");
    EXPECT_EQ(executor().timing(to_gpu, machine), TimingMode::device);
    EXPECT_EQ(executor().lanes(to_gpu, machine), std::vector{0});
    const Transfer to_host = touch("gpu:1", "numa:0");
    EXPECT_EQ(executor().timing(to_host, machine), TimingMode::host);
    EXPECT_EQ(executor().lanes(to_host, machine), std::vector<int>{});
    EXPECT_EQ(executor().submit_node(to_host, machine), 0);
    for (const Transfer& transfer : {to_gpu, to_host}) {
        EXPECT_TRUE(executor().in_place(transfer, machine));
        EXPECT_FALSE(executor().repeatable(transfer, machine));
    }
}

TEST(PageFault, HasThreadsWhereCpusTouch) {
    const Machine machine{.numa = {{0, {0, 1, 2}}, {1, {}}}, .gpus = {{0, "a"}}};
    const auto threads = [&](const Transfer& transfer) {
        for (const Parameter& known : executor().parameters(transfer, machine)) {
            if (known.name == "threads") return known.choices;
        }
        return std::vector<std::string>{};
    };
    EXPECT_EQ(threads(touch("gpu:0", "numa:0")), (std::vector<std::string>{"1", "2", "3"}));
    EXPECT_EQ(threads(touch("numa:0", "gpu:0")), std::vector<std::string>{});
    EXPECT_TRUE(unsupported_reason(touch("gpu:0", "numa:0", {{"threads", "4"}}), machine));
    EXPECT_EQ(unsupported_reason(touch("gpu:0", "numa:1"), machine),
              "no CPU of numa:1 may be used");
    EXPECT_EQ(unsupported_reason(touch("numa:1", "gpu:0"), machine), std::nullopt);
}

TEST(PageFault, TouchesEveryPageByDefault) {
    const Machine machine{.numa = {{0, {0}}}, .gpus = {{0, "a"}}};
    const std::string page = std::to_string(sysconf(_SC_PAGESIZE));
    const Transfer transfer = touch("numa:0", "gpu:0");
    EXPECT_EQ(parameter(executor(), transfer, machine, "stride"), page);
    EXPECT_EQ(parameter(executor(), transfer, machine, "chunk"), page);
    EXPECT_FALSE(unsupported_reason(touch("numa:0", "gpu:0", {{"stride", "2097152"}}), machine));
    EXPECT_TRUE(unsupported_reason(touch("numa:0", "gpu:0", {{"stride", "1"}}), machine));
}

TEST(PageFault, RejectsWhatWouldNotMove) {
    const Machine machine{.numa = {{0, {0}}, {1, {1}}}, .gpus = {{0, "a"}}};
    EXPECT_EQ(unsupported_reason(touch("numa:0", "gpu:0", {}, {{"advice", "preferred"}}), machine),
              "pages may stay at their preferred location when another side touches them");
    EXPECT_EQ(
        unsupported_reason(touch("numa:0", "gpu:0", {}, {{"advice", "accessed-by"}}), machine),
        std::nullopt);
    EXPECT_EQ(unsupported_reason(touch("numa:0", "numa:1"), machine),
              "managed memory migrates from or to a GPU, not between NUMA nodes");
}

}  // namespace
}  // namespace waywiser
