#include "host/team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <vector>

#include "host/affinity.hpp"

namespace waywiser::host {
namespace {

std::vector<std::vector<int>> anywhere(std::size_t size) {
    return std::vector<std::vector<int>>(size, allowed_cpus());
}

TEST(Team, RunsTheJobOnEveryMemberEachTime) {
    Team team(anywhere(4));
    ASSERT_EQ(team.size(), 4u);
    std::vector<int> runs(4);
    const std::function<void(std::size_t)> job = [&](std::size_t i) { ++runs[i]; };
    for (int round = 0; round < 50; ++round) {
        team.arm(job);
        team.release();
        team.wait();
    }
    EXPECT_EQ(runs, std::vector<int>(4, 50));
}

TEST(Team, NobodyStartsBeforeTheRelease) {
    Team team(anywhere(3));
    std::atomic<int> started{0};
    const std::function<void(std::size_t)> job = [&](std::size_t) { ++started; };
    team.arm(job);
    EXPECT_EQ(started, 0);
    team.release();
    team.wait();
    EXPECT_EQ(started, 3);
}

TEST(Team, ThrowsAgainWhatAMemberThrewAndGoesOn) {
    Team team(anywhere(3));
    std::atomic<int> finished{0};
    const std::function<void(std::size_t)> failing = [&](std::size_t i) {
        if (i == 1) throw std::runtime_error("one of them");
        ++finished;
    };
    team.arm(failing);
    team.release();
    EXPECT_THROW(team.wait(), std::runtime_error);
    EXPECT_EQ(finished, 2);
    const std::function<void(std::size_t)> fine = [&](std::size_t) { ++finished; };
    team.arm(fine);
    team.release();
    EXPECT_NO_THROW(team.wait());
    EXPECT_EQ(finished, 5);
}

TEST(Team, OfNobodyIsDoneAtOnce) {
    Team team({});
    const std::function<void(std::size_t)> job = [](std::size_t) { FAIL() << "nobody was there"; };
    team.arm(job);
    team.release();
    team.wait();
}

TEST(Team, EndsWithoutEverStarting) {
    const Team team(anywhere(2));
    EXPECT_EQ(team.size(), 2u);
}

}  // namespace
}  // namespace waywiser::host
