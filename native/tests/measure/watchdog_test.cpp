#include "measure/watchdog.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "async_call.hpp"
#include "fake/fixture.hpp"

namespace waywiser::measure {
namespace {

class WatchdogTest : public test::OnFake {
protected:
    gpu::Stream stream{0};
    gpu::Gate gate{0};
};

TEST_F(WatchdogTest, OpensAGateThatStaysClosed) {
    Watchdog watchdog(gate, 0.05);
    watchdog.closing();
    gate.close(stream);
    EXPECT_TRUE(test::AsyncCall([&] { stream.synchronize(); }).returns());
    EXPECT_FALSE(watchdog.opened());
}

TEST_F(WatchdogTest, LeavesAGateAloneThatIsOpenedInTime) {
    Watchdog watchdog(gate, 20);
    for (int round = 0; round < 3; ++round) {
        watchdog.closing();
        gate.close(stream);
        gate.open();
        EXPECT_TRUE(watchdog.opened());
        stream.synchronize();
        watchdog.finished();
    }
}

TEST_F(WatchdogTest, OpensAgainWhereAnOpeningWasLost) {
    Watchdog watchdog(gate, 0.05);
    watchdog.closing();
    gate.close(stream);
    EXPECT_TRUE(watchdog.opened());  // in time, but the stream did not notice it
    EXPECT_TRUE(test::AsyncCall([&] { stream.synchronize(); }).returns());
    watchdog.finished();
}

TEST_F(WatchdogTest, DoesNotWatchWhatHasFinished) {
    Watchdog watchdog(gate, 0.05);
    watchdog.closing();
    EXPECT_TRUE(watchdog.opened());
    watchdog.finished();
    gate.close(stream);  // without a call of closing()
    test::AsyncCall waiting([&] { stream.synchronize(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(waiting.blocks());
    gate.open();
    EXPECT_TRUE(waiting.returns());
}

TEST_F(WatchdogTest, EndsWithoutWaitingForItsTime) {
    EXPECT_TRUE(test::AsyncCall([&] { const Watchdog watchdog(gate, 3600); }).returns());
}

}  // namespace
}  // namespace waywiser::measure
