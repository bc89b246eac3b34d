#include "host/team.hpp"
#include "host/start_thread.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "async_call.hpp"
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

TEST(Team, WorksWithACallerThatIsOneOfThem) {
    Team team(anywhere(3));
    std::atomic<int> runs{0};
    const std::function<void(std::size_t)> job = [&](std::size_t) { ++runs; };
    for (int round = 1; round <= 200; ++round) {
        team.start(job);
        team.join();
        EXPECT_EQ(runs, 3 * round);
        // Long enough for all to fall asleep; in between once the other kind of start.
        if (round == 100) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (round % 50 != 0) continue;
        team.arm(job);
        team.release();
        team.wait();
        runs = 3 * round;
    }
    const std::function<void(std::size_t)> failing = [](std::size_t) {
        throw std::runtime_error("all of them");
    };
    team.start(failing);
    EXPECT_THROW(team.join(), std::runtime_error);
}

TEST(Team, EndsWhileArmedWithoutStarting) {
    std::atomic<int> started{0};
    const std::function<void(std::size_t)> job = [&](std::size_t) { ++started; };
    const test::AsyncCall call([&] {
        Team team(anywhere(2));
        team.arm(job);
    });
    EXPECT_TRUE(call.returns());
    EXPECT_EQ(started, 0);
}

// A process that may start no more threads gets an error; it does not wait forever for the others.
TEST(TeamDeathTest, SaysWhenThereAreNoMoreThreads) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto attempt = [] {
        alarm(20);
        constexpr uid_t kNobody = 65534;
        if (setuid(kNobody) != 0 && geteuid() == 0) std::exit(1);
        const rlimit few{.rlim_cur = 6, .rlim_max = 6};
        setrlimit(RLIMIT_NPROC, &few);
        try {
            const Team team(anywhere(40));
        } catch (const NoThread&) {
            std::_Exit(0);
        }
        std::_Exit(2);
    };
    EXPECT_EXIT(attempt(), ::testing::ExitedWithCode(0), "");
}

double seconds_of(clockid_t clock) {
    timespec used{};
    clock_gettime(clock, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

constexpr auto kPause = std::chrono::milliseconds(300);
constexpr double kLittle = 0.1;  // seconds of CPU time

TEST(Team, SleepsWhileItIsArmed) {
    Team team(anywhere(2));
    std::atomic<int> started{0};
    const std::function<void(std::size_t)> job = [&](std::size_t) { ++started; };
    team.arm(job);
    const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(kPause);
    EXPECT_LT(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before, kLittle);
    EXPECT_EQ(started, 0);
    team.release();
    team.wait();
    EXPECT_EQ(started, 2);
}

TEST(Team, SleepsWhileItWaitsForTheOthers) {
    Team team(anywhere(2));
    const std::function<void(std::size_t)> job = [](std::size_t) {
        std::this_thread::sleep_for(kPause);
    };
    team.start(job);
    const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    team.join();
    EXPECT_LT(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before, kLittle);
}

TEST(Team, RunsTheJobsOfSeveralCallersOneAfterTheOther) {
    Team team(anywhere(3));
    constexpr int kRounds = 200;
    std::atomic<bool> running{false};
    std::atomic<int> together{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller) {
        callers.emplace_back([&, caller] {
            std::vector<int> runs(3);
            const std::function<void(std::size_t)> job = [&](std::size_t i) {
                if (i == 0 && running.exchange(true)) ++together;
                ++runs[i];
                if (i == 0) running = false;
            };
            for (int round = 0; round < kRounds; ++round) {
                if (caller == 0) {
                    team.arm(job);
                    team.release();
                    team.wait();
                } else {
                    team.start(job);
                    team.join();
                }
            }
            EXPECT_EQ(runs, std::vector<int>(3, kRounds));
        });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(together, 0);
}

TEST(Team, EndsWithoutEverStarting) {
    const Team team(anywhere(2));
    EXPECT_EQ(team.size(), 2u);
}

}  // namespace
}  // namespace waywiser::host
