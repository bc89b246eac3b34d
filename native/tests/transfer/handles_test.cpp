// Handles of transfers that several threads use at once, and descriptors that signal the end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "transfer/engine.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

// An eventfd, which counts the writes to it.
class Counter {
public:
    Counter() : number_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Counter() { close(number_); }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool readable(int milliseconds) const {
        pollfd look{.fd = number_, .events = POLLIN, .revents = 0};
        return poll(&look, 1, milliseconds) == 1;
    }
    [[nodiscard]] std::uint64_t count() const {
        std::uint64_t value = 0;
        return ::read(number_, &value, sizeof value) == sizeof value ? value : 0;
    }

private:
    int number_;
};

constexpr int kLongMilliseconds = 60000;

class Handles : public test::OnFake {
protected:
    Context context{{.threads = 2, .pinned_bytes = 8 * kMiB}};
    gpu::Stream stream{0};
    gpu::HostBuffer pinned{kMiB, gpu::HostUse::portable, 0};
    std::vector<std::byte> pageable = std::vector<std::byte>(kMiB, std::byte{3});
    gpu::DeviceBuffer device{0, kMiB};

    // Plain copies have an event, others are jobs.
    TransferHandle start(bool plain) {
        return context.copy_async(device.data(), plain ? pinned.data() : pageable.data(), kMiB,
                                  stream.handle());
    }
};

TEST_F(Handles, AreUsedBySeveralThreadsAtOnce) {
    const std::unique_ptr<gpu::Stream> other = std::make_unique<gpu::Stream>(0);
    for (int round = 0; round < 20; ++round) {
        gpu::Gate gate(0);
        gate.close(stream);
        const TransferHandle transfer = start(round % 2 == 0);
        std::vector<std::unique_ptr<Counter>> counters;
        for (int i = 0; i < 6; ++i) counters.push_back(std::make_unique<Counter>());
        std::atomic<bool> opened{false};
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 3; ++i) {
            threads.emplace_back([&, i] {
                for (std::size_t n = 0; n < 2; ++n) {
                    transfer.notify(counters[2 * i + n]->number());
                }
                while (!transfer.done()) std::this_thread::yield();
                EXPECT_TRUE(opened);
                EXPECT_EQ(transfer.result(), kMiB);
            });
        }
        threads.emplace_back([&] {
            transfer.wait(other->handle());
            EXPECT_EQ(transfer.result(), kMiB);
        });
        threads.emplace_back([&] {
            for (;;) {
                try {
                    EXPECT_EQ(transfer.result(0.001), kMiB);
                    return;
                } catch (const TransferError& error) {
                    ASSERT_EQ(error.status(), WAYWISER_TIMEOUT);
                }
            }
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
        opened = true;
        gate.open();
        for (std::thread& thread : threads) thread.join();
        for (const auto& counter : counters) EXPECT_EQ(counter->count(), 1U);
    }
}

// notify() and the end of the transfer are concurrent: one of the two writes.
TEST_F(Handles, AreNotifiedOnceWheneverTheyAsk) {
    for (int round = 0; round < 200; ++round) {
        const TransferHandle transfer = start(round % 2 == 0);
        const Counter early;
        const Counter late;
        transfer.notify(early.number());
        std::this_thread::sleep_for(std::chrono::microseconds(10 * (round % 40)));
        transfer.notify(late.number());
        transfer.result();
        EXPECT_EQ(early.count(), 1U);
        EXPECT_EQ(late.count(), 1U);
    }
}

// A thread that finds the transfer done closes the descriptor: nothing is written to it any more.
TEST_F(Handles, HaveWrittenToTheDescriptorWhenTheyAreDone) {
    for (int round = 0; round < 200; ++round) {
        const TransferHandle transfer = start(round % 2 == 0);
        const Counter counter;
        transfer.notify(counter.number());
        if (round % 4 < 2) {
            while (!transfer.done()) std::this_thread::yield();
        } else {
            transfer.result(kLongMilliseconds);
        }
        EXPECT_EQ(counter.count(), 1U);
    }
}

// After reading the descriptor the transfer is done.
TEST_F(Handles, AreDoneWhenTheDescriptorSaysSo) {
    for (int round = 0; round < 200; ++round) {
        const TransferHandle transfer = start(round % 2 == 0);
        const Counter counter;
        transfer.notify(counter.number());
        ASSERT_TRUE(counter.readable(kLongMilliseconds));
        EXPECT_TRUE(transfer.done());
        EXPECT_EQ(transfer.result(0), kMiB);
    }
}

TEST_F(Handles, OfALostContextAreNotifiedToo) {
    gpu::Gate gate(0);
    gate.close(stream);
    const TransferHandle transfer = start(true);
    const Counter counter;
    transfer.notify(counter.number());
    fake::configure("sticky=call");
    EXPECT_THROW(gpu::Stream(0), gpu::Error);
    ASSERT_TRUE(counter.readable(kLongMilliseconds));
    EXPECT_TRUE(transfer.done());
    EXPECT_THROW(transfer.result(), TransferError);
    const Counter late;
    transfer.notify(late.number());
    EXPECT_EQ(late.count(), 1U);
}

// Nothing could be written at the end: the caller would wait forever.
TEST_F(Handles, RejectADescriptorThatIsNotOpenForWriting) {
    const auto closed = [] {
        const Counter counter;
        return counter.number();
    }();
    const int read_only = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int only_named = open("/dev/null", O_PATH | O_CLOEXEC);
    gpu::Gate gate(0);
    gate.close(stream);
    const TransferHandle transfers[] = {start(true), start(false), TransferHandle()};
    for (const TransferHandle& transfer : transfers) {
        for (const int descriptor : {-1, closed, read_only, only_named}) {
            try {
                transfer.notify(descriptor);
                ADD_FAILURE() << descriptor;
            } catch (const TransferError& error) {
                EXPECT_EQ(error.status(), WAYWISER_IO);
                EXPECT_EQ(error.error_number(), EBADF);
                const std::string said =
                    "descriptor " + std::to_string(descriptor) + ", which is not open for writing";
                EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
            }
        }
    }
    gate.open();
    for (const TransferHandle& transfer : transfers) {
        transfer.result();
        const Counter counter;
        transfer.notify(counter.number());
        EXPECT_EQ(counter.count(), 1U);
    }
    close(read_only);
    close(only_named);
}

// The two ends of a pipe, or of a socket, to write to.
struct NotifiedChannel {
    explicit NotifiedChannel(bool is_socket) {
        int ends[2] = {-1, -1};
        if (is_socket) {
            EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        } else {
            EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        }
        reader = ends[0];
        writer = ends[1];
    }
    ~NotifiedChannel() {
        close_reader();
        close(writer);
    }
    NotifiedChannel(const NotifiedChannel&) = delete;
    NotifiedChannel& operator=(const NotifiedChannel&) = delete;
    void close_reader() {
        if (reader >= 0) close(std::exchange(reader, -1));
    }
    int reader = -1;
    int writer = -1;
};

// SIGPIPE would end the program, which has its usual action here.
TEST_F(Handles, OfAPipeOrSocketThatNothingReadsGetAnErrorAndNoSignal) {
    for (const bool is_socket : {false, true}) {
        gpu::Gate gate(0);
        gate.close(stream);
        const TransferHandle transfers[] = {start(true), start(false), TransferHandle()};
        NotifiedChannel unread(is_socket);
        unread.close_reader();
        const auto expect_rejected = [&](const TransferHandle& transfer) {
            try {
                transfer.notify(unread.writer);
                ADD_FAILURE() << is_socket;
            } catch (const TransferError& error) {
                EXPECT_EQ(error.status(), WAYWISER_IO);
                EXPECT_EQ(error.error_number(), EPIPE) << error.what();
            }
        };
        for (const TransferHandle& transfer : transfers) expect_rejected(transfer);
        NotifiedChannel left(is_socket);  // its reader goes before the transfers end
        for (const TransferHandle& transfer : transfers) transfer.notify(left.writer);
        left.close_reader();
        gate.open();
        for (const TransferHandle& transfer : transfers) {
            transfer.result();
            expect_rejected(transfer);
        }
    }
    sigset_t pending{};
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

// A signal that the program itself waits for is not taken from it.
TEST_F(Handles, LeaveASignalThatWasPendingBefore) {
    sigset_t pipe_signal{};
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigset_t before{};
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    pthread_kill(pthread_self(), SIGPIPE);
    EXPECT_THROW(TransferHandle().notify(open("/dev/full", O_WRONLY | O_CLOEXEC)), TransferError);
    int taken = 0;
    EXPECT_EQ(sigwait(&pipe_signal, &taken), 0);
    EXPECT_EQ(taken, SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// No thread is left that could write when the copy is done.
TEST_F(Handles, OfPlainCopiesAreNotifiedWhenTheContextEnds) {
    auto own = std::make_unique<Context>(ContextOptions{.threads = 2});
    gpu::Gate gate(0);
    gate.close(stream);
    const TransferHandle transfer =
        own->copy_async(device.data(), pinned.data(), kMiB, stream.handle());
    const Counter counter;
    transfer.notify(counter.number());
    EXPECT_EQ(counter.count(), 0U);
    own.reset();
    EXPECT_EQ(counter.count(), 1U);
    EXPECT_FALSE(transfer.done());
    gate.open();
    EXPECT_EQ(transfer.result(), kMiB);
}

TEST_F(Handles, WaitUntilTheTimeout) {
    gpu::Gate gate(0);
    gate.close(stream);
    const TransferHandle job = start(false);
    std::vector<std::unique_ptr<test::AsyncCall>> calls;
    for (const double seconds : {1e300, HUGE_VAL, -1.0}) {
        calls.push_back(std::make_unique<test::AsyncCall>(
            [&job, seconds] { EXPECT_EQ(job.result(seconds), kMiB); }));
    }
    for (const auto& call : calls) EXPECT_TRUE(call->blocks());
    gate.open();
    for (const auto& call : calls) EXPECT_TRUE(call->returns());
    try {
        job.result(std::nan(""));
        ADD_FAILURE() << "not a number";
    } catch (const TransferError& error) {
        EXPECT_EQ(error.status(), WAYWISER_INVALID);
    }
}

}  // namespace
}  // namespace waywiser

namespace waywiser::transfer {
namespace {

// A job that ends on request.
class Held final : public Job {
public:
    Held() : Job(1, {}, CpuWork::all) { routes_.emplace_back(); }
    void fill(const Part&, std::byte*) override { open_.wait(false); }
    void let_go() {
        open_ = true;
        open_.notify_all();
    }

private:
    std::atomic<bool> open_{false};
};

using OnEngineHandles = test::OnFake;

// A caller that sees the end closes its descriptor: from then on nothing is written to the number,
// which may be another file's.
TEST_F(OnEngineHandles, AJobIsDoneOnlyWhenItHasWrittenToItsDescriptors) {
    const auto engine_owner =
        Engine::make(test::this_machine(), {.threads = 2, .pinned_bytes = kMiB});
    Engine& engine = *engine_owner;
    for (int round = 0; round < 300; ++round) {
        const auto job = std::make_shared<Held>();
        std::vector<std::unique_ptr<Counter>> counters;
        for (int i = 0; i < 20; ++i) {
            counters.push_back(std::make_unique<Counter>());
            job->notify(std::make_shared<Notification>(counters.back()->number(), 1));
        }
        engine.start(job);
        job->let_go();
        while (!job->done()) {
        }
        EXPECT_EQ(counters.back()->count(), 1U);
    }
}

}  // namespace
}  // namespace waywiser::transfer
