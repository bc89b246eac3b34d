#include "executor/cpu_mover.hpp"

#include <gtest/gtest.h>

#include "conformance.hpp"
#include "host/affinity.hpp"

namespace waywiser {
namespace {

// Every byte once, for any number of threads and length of runs.
TEST(CpuMover, SharesRunsAmongThreads) {
    const Machine machine = test::this_machine();
    const Memory memory{"pageable", {Place::Kind::numa, machine.numa.front().index, {}}, {}};
    std::vector<test::Shaped> all = test::awkward_layouts();
    for (const std::size_t bytes : {1UL, 63UL, 64UL, 1000UL, 4099UL}) all.push_back({{}, bytes});
    for (const std::size_t threads : {1UL, 2UL, 3UL, 7UL}) {
        for (const bool streaming : {false, true}) {
            CpuMover mover(host::allowed_cpus(), threads, streaming);
            for (const test::Shaped& shaped : all) {
                const Transfer transfer{{memory, memory, "cpu"}, shaped.bytes, {}, shaped.layout};
                SCOPED_TRACE(transfer.text() + " by " + std::to_string(threads));
                test::GuardedTransfer bytes(transfer, machine);
                bytes.lay({3, 5}, 1);
                mover.wake();
                mover.move(bytes.destination(), bytes.source());
                EXPECT_EQ(bytes.wrong(), "");
            }
        }
    }
}

TEST(CpuMover, OffersPowersOfTwoAndAll) {
    EXPECT_EQ(thread_choices(0), std::vector<std::string>{"1"});
    EXPECT_EQ(thread_choices(1), std::vector<std::string>{"1"});
    EXPECT_EQ(thread_choices(6), (std::vector<std::string>{"1", "2", "4", "6"}));
}

}  // namespace
}  // namespace waywiser
