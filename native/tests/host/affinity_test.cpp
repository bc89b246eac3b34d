#include "host/affinity.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace waywiser::host {
namespace {

TEST(Affinity, BindsTheThreadAndThenRestoresIt) {
    std::jthread([] {  // in a new thread, since affinity outlives a failed test
        const std::vector<int> before = allowed_cpus();
        ASSERT_FALSE(before.empty());
        EXPECT_TRUE(std::ranges::is_sorted(before));
        {
            const RunOn last({before.back()});
            EXPECT_EQ(allowed_cpus(), std::vector<int>{before.back()});
            EXPECT_EQ(sched_getcpu(), before.back());
            {
                const RunOn anywhere({});
                EXPECT_EQ(allowed_cpus(), std::vector<int>{before.back()});
            }
        }
        EXPECT_EQ(allowed_cpus(), before);
    });
}

TEST(Affinity, SaysWhenItCannot) {
    std::jthread([] {
        const std::vector<int> before = allowed_cpus();
        EXPECT_FALSE(run_on({}));
        EXPECT_FALSE(run_on({-1}));
        EXPECT_FALSE(run_on({8000}));
        EXPECT_EQ(allowed_cpus(), before);
    });
}

}  // namespace
}  // namespace waywiser::host
