// Interactions between an engine's threads, helping callers, stops and forks.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "host/affinity.hpp"
#include "support/sanitizer.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/copy.hpp"
#include "units.hpp"

namespace waywiser::transfer {
namespace {

class EngineThreads : public test::OnFake {
protected:
    static constexpr std::size_t kBytes = 512 * kKiB;

    static std::shared_ptr<Engine> engine(EngineOptions options) {
        if (options.pinned_bytes == 0) options.pinned_bytes = 4 * kMiB;
        return Engine::make(test::this_machine(), std::move(options));
    }
    std::shared_ptr<Job> copy_in(Engine& own, std::size_t chunk = 64 * kKiB) {
        return std::make_shared<ChunkedCopy>(own, Endpoint::device(device.data(), 0),
                                             Endpoint::host(from.data(), false), kBytes,
                                             CopyShape{.chunk = chunk, .slots = 2});
    }

    std::vector<std::byte> from = std::vector<std::byte>(kBytes, std::byte{7});
    gpu::DeviceBuffer device{0, kBytes};
};

// A helping caller also polls the starts of other transfers, and leaves when its own job is done.
TEST_F(EngineThreads, StartAWaitingTransferAlthoughTheCallerThatWatchedItHasLeft) {
    auto own = engine({.threads = 2});
    for (int round = 0; round < 100; ++round) {
        const gpu::Stream stream(0);
        gpu::Gate gate(0);
        gate.close(stream);
        auto event = std::make_shared<gpu::Event>(0, gpu::EventUse::ordering);
        event->record(stream);
        const auto waiting = copy_in(*own);
        own->start(waiting, std::move(event));
        for (int i = 0; i < 3; ++i) own->run(copy_in(*own), Engine::Until::done);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        gate.open();
        ASSERT_TRUE(waiting->wait(transfer::Deadline(test::kHangSeconds)))
            << "nobody saw that it could start, round " << round;
        waiting->rethrow();
    }
}

// A machine of two nodes whose only thread is on another node than the GPU.
TEST_F(EngineThreads, OfAnotherNodeCopyWhereThereAreNoOthers) {
    Machine machine = test::this_machine();
    const NumaNode all = machine.numa.front();
    machine.numa = {NumaNode{.index = 0, .cpus = all.cpus}, NumaNode{.index = 1, .cpus = all.cpus}};
    for (GpuPlace& gpu : machine.gpus) gpu.numa = 1;
    for (const std::size_t threads : {1, 2}) {
        const auto own_owner = Engine::make(machine, {.threads = threads, .pinned_bytes = kMiB});
        Engine& own = *own_owner;
        const auto job = copy_in(own, kMiB);
        own.start(job);
        EXPECT_TRUE(job->wait(transfer::Deadline(test::kHangSeconds))) << threads;
    }
}

// Counts the CPUs that the thread which fills a chunk may use.
class CountCpus final : public Job {
public:
    CountCpus() : Job(1, {}, CpuWork::all) { routes_.emplace_back(); }
    void fill(const Part&, std::byte*) override { cpus = host::allowed_cpus(); }

    std::vector<int> cpus;
};

// A survey binds the thread that times a transfer, and a program may do so with any thread.
TEST_F(EngineThreads, UseAllCpusOfTheMachineAlthoughTheirStarterIsBoundToOne) {
    const auto own_owner = Engine::make(test::this_machine(), {.threads = 2, .pinned_bytes = kMiB});
    Engine& own = *own_owner;
    const std::vector<int> all = host::allowed_cpus();
    const auto job = std::make_shared<CountCpus>();
    {
        const host::RunOn one({all.front()});
        own.start(job);
    }
    ASSERT_TRUE(job->wait(transfer::Deadline(test::kHangSeconds)));
    const Machine machine = test::this_machine();
    const bool of_a_node = std::ranges::any_of(
        machine.numa, [&](const NumaNode& node) { return node.cpus == job->cpus; });
    EXPECT_TRUE(job->cpus == all || (machine.numa.size() > 1 && of_a_node));
}

TEST_F(EngineThreads, CompleteWhatACallerHasSubmittedWhenTheyAreStopped) {
    fake::configure("h2d=0.5");
    for (int round = 0; round < 40; ++round) {
        auto own = engine({.threads = 2});
        const auto job = copy_in(*own);
        std::thread caller([&] {
            try {
                own->run(job, Engine::Until::submitted);
            } catch (const Cancelled&) {
                EXPECT_FALSE(job->done());
            }
        });
        std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 20)));
        own->stop();
        caller.join();
        EXPECT_EQ(own->jobs(), 0U);
    }
}

TEST_F(EngineThreads, AreStoppedOnceForAllWhoStopThem) {
    fake::configure("h2d=0.5");
    for (int round = 0; round < 10; ++round) {
        auto own = engine({.threads = 2});
        const auto job = copy_in(*own);
        own->start(job);
        std::vector<std::thread> callers;
        for (int i = 0; i < 3; ++i) {
            callers.emplace_back([&] {
                own->stop();
                EXPECT_TRUE(job->done());
            });
        }
        for (std::thread& caller : callers) caller.join();
    }
}

// The limit of queued bytes holds for any number of threads that have filled chunks.
TEST_F(EngineThreads, KeepTheBoundOfPoliteTransfersTogether) {
    for (int round = 0; round < 5; ++round) {
        auto own = engine({.threads = 4, .max_queued_bytes = 64 * kKiB});
        fake::configure("hang=copy@/1");
        const auto job = copy_in(*own);
        own->start(job);
        while (fake::counts().copies == 0) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(fake::counts().copies, 1U);
        fake::configure("");
        EXPECT_TRUE(job->wait(transfer::Deadline(test::kHangSeconds)));
    }
}

sigset_t blocked_signals() {
    sigset_t now{};
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return now;
}

TEST(EngineThreadsDeathTest, LeaveTheSignalsOfACallerWhoGetsNoThreads) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto attempt = [] {
        alarm(60);
        fake::configure("devices=0");
        constexpr uid_t kNobody = 65534;
        if (setuid(kNobody) != 0 && geteuid() == 0) std::exit(1);
        const rlimit none{.rlim_cur = 1, .rlim_max = 1};
        setrlimit(RLIMIT_NPROC, &none);
        const auto own_owner =
            Engine::make(test::this_machine(), {.threads = 2, .pinned_bytes = kMiB});
        Engine& own = *own_owner;
        const auto job = std::make_shared<Job>();
        own.start(job);
        const sigset_t now = blocked_signals();
        if (own.threads() != 0 || !job->done()) std::_Exit(3);
        std::_Exit(sigismember(&now, SIGINT) == 0 ? 0 : 2);
    };
    EXPECT_EXIT(attempt(), ::testing::ExitedWithCode(0), "");
}

// A child may create its own engines, at any time of the fork.
TEST_F(EngineThreads, LetAChildMakeAnEngineWheneverItIsForked) {
    if (test::sanitizer() == test::Sanitizer::address) {
        GTEST_SKIP()
            << "the address sanitizer of GCC 12 keeps the locks of its allocator in a child "
               "that is forked while another thread allocates";
    }
    std::atomic<bool> over{false};
    const auto first = engine({.threads = 1});
    std::thread maker([&] {
        while (!over) engine({.threads = 1}).reset();
    });
    for (int i = 0; i < 30; ++i) {
        const Machine machine = test::this_machine();
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            {
                const auto own = Engine::make(machine, {.threads = 1, .pinned_bytes = kMiB});
            }
            _exit(0);
        }
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    over = true;
    maker.join();
}

// Staging: a thread without a slot is notified when there is one, only by the pool it waits for.
TEST(Slots, NotifyOfAChangeOnlyIfItIsAwaited) {
    class Memory final : public Slab {
    public:
        explicit Memory(std::size_t bytes) : bytes_(bytes) {}
        [[nodiscard]] std::byte* data() const override { return bytes_.data(); }

    private:
        mutable std::vector<std::byte> bytes_;
    };
    int changes = 0;
    Budget budget(64 * kKiB);
    Slots pool(
        budget, 64 * kKiB, [](std::size_t bytes) { return std::make_unique<Memory>(bytes); },
        [&] { ++changes; });
    auto slot = pool.take(64 * kKiB);
    ASSERT_TRUE(slot);
    EXPECT_FALSE(pool.take(64 * kKiB));
    slot.reset();
    EXPECT_EQ(changes, 0);
    slot = pool.take(64 * kKiB);
    pool.await_change();
    EXPECT_FALSE(pool.take(64 * kKiB));
    slot.reset();
    slot = pool.take(64 * kKiB);
    slot.reset();
    EXPECT_EQ(changes, 1);
}

}  // namespace
}  // namespace waywiser::transfer
