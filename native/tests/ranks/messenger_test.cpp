#include "ranks/messenger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "ranks/bridge_messenger.hpp"
#include "ranks/messenger_checks.hpp"
#include "ranks/thread_messenger.hpp"

namespace waywiser::ranks {
namespace {

using test::ThreadWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> complaints(ThreadWorld& world) {
    std::vector<std::vector<std::string>> wrong(world.size());
    world.run([&](Messenger& messenger) {
        wrong[messenger.rank()] = test::check_messenger(messenger, 4099);
    });
    std::vector<std::string> all;
    for (const auto& each : wrong) all.insert(all.end(), each.begin(), each.end());
    return all;
}

std::string error_of(const auto& work) {
    try {
        work();
    } catch (const MessengerError& error) {
        return error.what();
    }
    return "";
}

class Ranks : public ::testing::TestWithParam<int> {};

TEST_P(Ranks, ExchangeTheRightBytes) {
    ThreadWorld world(GetParam());
    EXPECT_THAT(complaints(world), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Messenger, Ranks, ::testing::Values(1, 2, 3, 4));

TEST(Messenger, ChecksSeeOneWrongByte) {
    ThreadWorld world(2, {.flips = test::MessageOfRank{.rank = 1, .message = 1}});
    EXPECT_THAT(complaints(world), ElementsAre(HasSubstr("wrong from byte 0")));
}

TEST(Messenger, AFailureEndsTheCallsOfAllRanks) {
    ThreadWorld world(3, {.fails = test::MessageOfRank{.rank = 2, .message = 1}});
    EXPECT_EQ(error_of([&] { complaints(world); }), "message 1 failed by design");
}

TEST(Messenger, DelaysMessages) {
    using std::chrono::steady_clock;
    ThreadWorld world(2, {.delay = std::chrono::milliseconds(20)});
    const auto began = steady_clock::now();
    world.run([](Messenger& messenger) { messenger.barrier(); });
    EXPECT_GE(steady_clock::now() - began, std::chrono::milliseconds(40));
}

TEST(Messenger, TheStageNamesTheCallThatHangs) {
    ThreadWorld world(2, {.hangs = test::MessageOfRank{.rank = 1, .message = 1}});
    std::string blocked, waiting;
    std::jthread watcher([&] {
        while (world.stage(0).text().empty() || world.stage(1).text().empty()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        waiting = world.stage(0).text();
        blocked = world.stage(1).text();
        world.end();
    });
    const std::string error = error_of([&] {
        world.run([](Messenger& messenger) {
            std::byte data{};
            if (messenger.rank() == 1) messenger.send(&data, 1, 0);
            if (messenger.rank() == 0) messenger.receive(&data, 1, 1);
        });
    });
    watcher.join();
    EXPECT_EQ(error, "the world of ranks has ended");
    EXPECT_EQ(waiting, "receive from rank 1, call 1");
    EXPECT_EQ(blocked, "send to rank 0, call 1");
    EXPECT_EQ(world.stage(1).text(), "");
    EXPECT_EQ(world.stage(1).calls(), 1);
}

TEST(Messenger, ALargeSendWaitsForItsReceive) {
    ThreadWorld world(2, {.most_buffered_bytes = 8});
    world.run([](Messenger& messenger) {
        std::array<std::byte, 9> data{};
        const auto message = messenger.prepare(1);
        if (messenger.rank() == 0) {
            message->send(data.data(), 8, 1);
            EXPECT_TRUE(message->done());
            message->send(data.data(), 9, 1);
            EXPECT_FALSE(message->done());
            messenger.send(data.data(), 1, 1, 9);
            message->wait();
        } else {
            messenger.receive(data.data(), 1, 0, 9);
            messenger.receive(data.data(), 8, 0);
            messenger.receive(data.data(), 9, 0);
        }
    });
}

TEST(Messenger, StartsNoMoreMessagesThanItPreparedFor) {
    ThreadWorld world(1);
    world.run([](Messenger& messenger) {
        std::byte data{};
        const auto message = messenger.prepare(1);
        message->send(&data, 1, 0);
        EXPECT_EQ(error_of([&] { message->send(&data, 1, 0); }),
                  "more messages than were prepared for");
    });
}

TEST(Messenger, ARankOutsideAGroupCannotJoinIt) {
    ThreadWorld world(2);
    const std::array<int, 1> other{1};
    world.run([&](Messenger& messenger) {
        if (messenger.rank() == 1) return;
        EXPECT_EQ(error_of([&] { static_cast<void>(messenger.group(other)); }),
                  "rank 0 is not in the group");
    });
}

TEST(Parts, AreOneAfterTheOther) {
    const std::array<std::size_t, 3> bytes{3, 0, 4};
    const Parts parts = Parts::in_order(bytes);
    EXPECT_THAT(parts.bytes, ElementsAre(3, 0, 4));
    EXPECT_THAT(parts.offsets, ElementsAre(0, 3, 3));
}

TEST(Bridge, IsAnErrorWithTheFile) {
    EXPECT_THAT(error_of([] { const Bridge bridge("/nowhere/bridge.so"); }),
                HasSubstr("/nowhere/bridge.so"));
    EXPECT_EQ(error_of([] { const Bridge bridge("libm.so.6"); }), "libm.so.6: is no bridge to MPI");
}

}  // namespace
}  // namespace waywiser::ranks
