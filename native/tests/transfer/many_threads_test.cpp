// An engine with more threads than the test machine may have.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "case_stride.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "host/affinity.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/limits.hpp"
#include "units.hpp"

namespace {
// Number of CPUs that this process seems to be allowed; 0: the true ones.
std::atomic<unsigned> pretended_cpus{0};
}  // namespace

// Replaces the C library's function.
extern "C" int sched_getaffinity(pid_t process, std::size_t bytes, cpu_set_t* set) noexcept {
    const long written =
        syscall(SYS_sched_getaffinity, process, std::min<std::size_t>(bytes, INT_MAX), set);
    if (written < 0) return -1;
    const auto known = static_cast<std::size_t>(written);
    std::memset(reinterpret_cast<char*>(set) + known, 0, bytes - known);
    for (unsigned cpu = 0; cpu < pretended_cpus; ++cpu) CPU_SET_S(cpu, bytes, set);
    return 0;
}

namespace waywiser::transfer {
namespace {

constexpr std::size_t kManyThreads = 8;

class ManyThreads : public test::OnFake {
protected:
    ManyThreads() { pretended_cpus = kManyThreads; }
    ~ManyThreads() override { pretended_cpus = 0; }

public:
    ManyThreads(const ManyThreads&) = delete;
    ManyThreads& operator=(const ManyThreads&) = delete;

protected:
    std::shared_ptr<Job> copy(Engine& own, const Endpoint& to, const Endpoint& from,
                              std::size_t bytes, std::size_t slots = 2) {
        return std::make_shared<ChunkedCopy>(
            own, to, from, bytes,
            CopyShape{.chunk = 64 * kKiB, .least = 64 * kKiB, .slots = slots});
    }

    const Machine machine = test::this_machine();
};

TEST_F(ManyThreads, NeverMissAWakeUp) {
    ASSERT_GE(host::allowed_cpus().size(), kManyThreads);
    if (thread_limit() < kManyThreads) {
        GTEST_SKIP() << "the control group allows fewer than " << kManyThreads << " CPUs";
    }
    const auto own_owner =
        Engine::make(machine, {.threads = kManyThreads, .pinned_bytes = 4 * kMiB});
    Engine& own = *own_owner;
    ASSERT_EQ(own.options().threads, kManyThreads);
    constexpr std::size_t kBytes = kMiB;
    std::vector<std::byte> from(2 * kBytes, std::byte{7});
    std::vector<std::byte> to(2 * kBytes);
    for (int round = 0; round < (test::many_sizes() ? 100 : 30); ++round) {
        std::vector<std::thread> feeders;
        for (std::size_t n = 0; n < 2; ++n) {
            feeders.emplace_back([&, n] {
                for (int i = 0; i < 20; ++i) {
                    const auto job = copy(own, Endpoint::host(to.data() + n * kBytes, false),
                                          Endpoint::host(from.data() + n * kBytes, false), kBytes);
                    own.start(job);
                    EXPECT_TRUE(job->wait(transfer::Deadline(test::kHangSeconds)));
                }
            });
        }
        for (std::thread& feeder : feeders) feeder.join();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // all threads sleep
        const auto one =
            copy(own, Endpoint::host(to.data(), false), Endpoint::host(from.data(), false), kKiB);
        own.start(one);
        ASSERT_TRUE(one->wait(transfer::Deadline(test::kHangSeconds)))
            << "nobody woke for a chunk, round " << round;
    }
    EXPECT_EQ(to, from);
}

TEST_F(ManyThreads, ServeCopiesOfFewerSlotsWhileOthersHaveMore) {
    const auto own_owner = Engine::make(machine, {.threads = 2, .pinned_bytes = 4 * kMiB});
    Engine& own = *own_owner;
    constexpr std::size_t kBytes = 2 * kMiB;
    std::vector<std::byte> memory(kBytes, std::byte{7});
    const gpu::DeviceBuffer in(0, kBytes);
    const gpu::DeviceBuffer out(0, kBytes);
    std::vector<std::byte> got(kBytes, std::byte{1});
    std::atomic<bool> ending{false};
    std::vector<std::thread> feeders;
    for (int n = 0; n < 2; ++n) {
        feeders.emplace_back([&] {
            while (!ending) {
                const auto job = copy(own, Endpoint::device(in.data(), 0),
                                      Endpoint::host(memory.data(), false), kBytes, 3);
                own.start(job);
                job->wait();
            }
        });
    }
    const auto back =
        copy(own, Endpoint::host(got.data(), false), Endpoint::device(out.data(), 0), kBytes, 2);
    own.start(back);
    EXPECT_TRUE(back->wait(transfer::Deadline(test::kHangSeconds)))
        << "it starves while other copies have more slots";
    ending = true;
    for (std::thread& feeder : feeders) feeder.join();
    back->wait();
    EXPECT_TRUE(test::same_bytes(got.data(), out.data(), kBytes));
}

}  // namespace
}  // namespace waywiser::transfer
