// Messages of the fake NCCL between ranks that are threads.
#include "ranks/nccl_messenger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fake/fixture.hpp"
#include "nccl/fake_nccl.hpp"
#include "ranks/messenger_checks.hpp"
#include "ranks/nccl_ranks.hpp"
#include "waywiser/words.hpp"

namespace waywiser::ranks {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr double kPatience = 60;
using Connection = std::shared_ptr<NcclConnection>;

class NcclRanks : public test::OnFake {
protected:
    NcclRanks() {
        fake::configure("devices=5");  // a GPU waits for all its work when it frees memory
        test::configure_fake_nccl("");
    }
    ~NcclRanks() override { test::configure_fake_nccl(""); }
};

// How often threads of this process have slept.
long sleeps() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

std::string what_ended(const auto& work) {
    try {
        work();
    } catch (const MessengerError& error) {
        return error.what();
    }
    return "";
}

// The first byte of a message that never comes.
void wait_in_vain(const Connection& connection) {
    std::byte data{};
    NcclMessenger(connection).receive(&data, 1, 1 - connection->rank());
}

TEST_F(NcclRanks, ExchangeTheRightBytes) {
    for (const int size : {1, 2, 3, 5}) {
        SCOPED_TRACE(size);
        std::vector<std::vector<std::string>> wrong(static_cast<std::size_t>(size));
        test::run_nccl_ranks(size, 5, kPatience, [&](const Connection& connection) {
            NcclMessenger messenger(connection);
            wrong[static_cast<std::size_t>(messenger.rank())] =
                test::check_messenger(messenger, 4099, false);
        });
        for (const auto& each : wrong) EXPECT_THAT(each, IsEmpty());
    }
}

TEST_F(NcclRanks, ExchangeMemoryOfGpus) {
    test::run_nccl_ranks(2, 5, kPatience, [](const Connection& connection) {
        NcclMessenger messenger(connection);
        const int peer = 1 - messenger.rank();
        constexpr std::size_t kBytes = 200003;
        const gpu::DeviceBuffer out(connection->gpu(), kBytes), in(connection->gpu(), kBytes);
        const auto of = [](int rank) {
            return std::vector<std::byte>(kBytes, static_cast<std::byte>(rank + 1));
        };
        gpu::copy_sync(out.data(), of(messenger.rank()).data(), kBytes, connection->gpu());
        const auto both = messenger.prepare(2);
        both->receive(in.data(), kBytes, peer);
        both->send(out.data(), kBytes, peer);
        both->wait();
        std::vector<std::byte> received(kBytes);
        gpu::copy_sync(received.data(), in.data(), kBytes, connection->gpu());
        EXPECT_EQ(received, of(peer));
    });
}

TEST_F(NcclRanks, ShowAWrongByte) {
    test::configure_fake_nccl("spoil=1;least=4096");
    std::atomic<int> wrong = 0;
    test::run_nccl_ranks(2, 5, kPatience, [&](const Connection& connection) {
        NcclMessenger messenger(connection);
        wrong += static_cast<int>(test::check_messenger(messenger, 4099, false).size());
    });
    EXPECT_EQ(wrong, 1);
}

TEST_F(NcclRanks, AreKnownByTheirPlaceInAGroup) {
    test::run_nccl_ranks(3, 5, kPatience, [](const Connection& connection) {
        NcclMessenger world(connection);
        EXPECT_TRUE(world.is_whole());
        const std::vector<int> reversed{2, 1, 0};
        const auto group = world.group(reversed);
        const auto& other = dynamic_cast<const NcclMessenger&>(*group);
        EXPECT_FALSE(other.is_whole());
        EXPECT_EQ(other.number(0), 2);
        EXPECT_EQ(other.number(other.rank()), world.rank());
    });
}

TEST_F(NcclRanks, DoNotWaitLongerThanTheyMayForOnesThatDoNotJoin) {
    const long before = sleeps();
    const std::string error =
        what_ended([] { test::run_nccl_ranks(2, 5, 0.6, [](const Connection&) {}, 1); });
    EXPECT_EQ(error, "NCCL, joining of ranks, call 1: took longer than 0.6 s");
    // A thousandth of the wait at a time, from 0.05 s on: 1000 * ln(0.6 / 0.05) times at most.
    EXPECT_LT(sleeps() - before, 3500);
}

TEST_F(NcclRanks, DoNotWaitLongerThanTheyMayForAMessage) {
    std::vector<std::string> ended(2);
    const std::string error = what_ended([&] {
        test::run_nccl_ranks(2, 5, 0.3, [&](const Connection& connection) {
            const std::string own = what_ended([&] { wait_in_vain(connection); });
            ended[static_cast<std::size_t>(connection->rank())] = connection->ended();
            EXPECT_THAT(what_ended([&] { wait_in_vain(connection); }), HasSubstr("not connected"));
            throw MessengerError(own);
        });
    });
    EXPECT_THAT(error, StartsWith("NCCL, receive from rank 1, call "));
    EXPECT_TRUE(std::ranges::find(ended, "timeout") != ended.end());
}

TEST_F(NcclRanks, EndWhenAnotherThreadSaysSo) {
    test::run_nccl_ranks(2, 5, kPatience, [](const Connection& connection) {
        if (connection->rank() == 1) {
            // It sees that the other one has gone.
            EXPECT_THAT(what_ended([&] { wait_in_vain(connection); }), HasSubstr("remote process"));
            EXPECT_EQ(connection->ended(), "remote");
            return;
        }
        std::jthread stops([&] {
            while (connection->stage().text().find("receive") == std::string::npos) {
                std::this_thread::yield();
            }
            connection->stop();
        });
        EXPECT_THAT(what_ended([&] { wait_in_vain(connection); }),
                    HasSubstr("receive from rank 1, call 2: was ended from outside"));
        EXPECT_EQ(connection->ended(), "stopped");
    });
}

TEST_F(NcclRanks, EndWithWhatNcclSays) {
    test::configure_fake_nccl("error=1;least=4096");
    test::run_nccl_ranks(1, 5, kPatience, [](const Connection& connection) {
        const std::vector<std::byte> data(4096);
        std::vector<std::byte> other(4096);
        NcclMessenger messenger(connection);
        const auto both = messenger.prepare(2);
        both->send(data.data(), data.size(), 0);
        both->receive(other.data(), other.size(), 0);
        EXPECT_THAT(what_ended([&] { both->wait(); }), HasSubstr("unhandled system error"));
        EXPECT_EQ(connection->ended(), "failed");
    });
}

TEST_F(NcclRanks, CloseTheGroupOfCallsThatThrowSomethingElse) {
    test::run_nccl_ranks(1, 5, kPatience, [](const Connection& connection) {
        const std::string error =
            what_ended([&] { connection->submit([] { throw std::length_error("too many"); }); });
        EXPECT_THAT(error, HasSubstr("too many"));
        EXPECT_EQ(connection->ended(), "failed");
        // In a group that was left open, the next communicator of this thread would not be made.
        NcclConnection next(connection->gpu(), kPatience);
        next.join(new_nccl_id(), 0, 1);
        std::byte sent{7};
        std::byte received{};
        NcclMessenger messenger(std::shared_ptr<NcclConnection>(&next, [](NcclConnection*) {}));
        const auto both = messenger.prepare(2);
        both->send(&sent, 1, 0);
        both->receive(&received, 1, 0);
        both->wait();
        EXPECT_EQ(received, sent);
    });
}

TEST_F(NcclRanks, AskForMemoryAgainAfterTheyHadNone) {
    fake::configure("devices=5;oom_at=2");
    test::run_nccl_ranks(1, 5, kPatience, [](const Connection& connection) {
        NcclMessenger messenger(connection);
        std::byte sent{7};
        std::byte received{};
        const auto exchange = [&] {
            const auto both = messenger.prepare(2);
            both->send(&sent, 1, 0);
            both->receive(&received, 1, 0);
            both->wait();
        };
        EXPECT_THROW(exchange(), gpu::Error);
        exchange();
        EXPECT_EQ(received, sent);
    });
}

TEST_F(NcclRanks, HaveOneTransferAtATime) {
    NcclConnection connection(0, kPatience);
    {
        const auto held = connection.reserve();
        EXPECT_THROW((void)connection.reserve(), NotSupported);
    }
    EXPECT_NE(connection.reserve(), nullptr);
}

}  // namespace
}  // namespace waywiser::ranks
