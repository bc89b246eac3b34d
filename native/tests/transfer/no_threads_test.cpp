// A system that starts no thread, or too few: the calling threads do the work.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "host/parallel.hpp"
#include "host/start_thread.hpp"
#include "host/team.hpp"
#include "many_bytes.hpp"
#include "threads_left.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/completion.hpp"
#include "transfer/engine.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::test {

std::atomic<int>& threads_left() {
    static std::atomic<int> count{ThreadsLeft::kAny};
    return count;
}

ThreadsLeft::ThreadsLeft(int count) { threads_left() = count; }
ThreadsLeft::~ThreadsLeft() { threads_left() = kAny; }

}  // namespace waywiser::test

// What std::thread calls. That of the system, or of a sanitizer, comes after this program's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
    static const auto next =
        reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    std::atomic<int>& left = waywiser::test::threads_left();
    if (left != waywiser::test::ThreadsLeft::kAny && !waywiser::fake::starts_stream()) {
        if (left == 0) return EAGAIN;
        --left;
    }
    return next(thread, attributes, run, argument);
}

namespace waywiser {
namespace {

using test::ThreadsLeft;

constexpr std::size_t kMovedBytes = 3 * kMiB;

class NoThreads : public test::OnFake {
protected:
    Context context{{.threads = 4, .pinned_bytes = 8 * kMiB, .relay_bytes = 2 * kMiB}};
    gpu::Stream stream{0};
    gpu::DeviceBuffer device{0, kMovedBytes};
    gpu::DeviceBuffer other_device{1, kMovedBytes};
    std::vector<std::byte> from = test::sequence(kMovedBytes, 5);
    std::vector<std::byte> to = std::vector<std::byte>(kMovedBytes);
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

public:
    NoThreads() = default;
    ~NoThreads() override { close(file); }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;

protected:
    // Calls move(), which moves `from` to `to`.
    void expect_moved(const char* what, const std::function<void()>& move) {
        to.assign(kMovedBytes, std::byte{0});
        ASSERT_NO_THROW(move()) << what;
        EXPECT_TRUE(test::same_bytes(from, to)) << what;
        EXPECT_EQ(context.usage().threads, 0U) << what;
        EXPECT_EQ(context.usage().transfers, 0U) << what;
    }
};

TEST_F(NoThreads, EveryCallMovesItsBytes) {
    const ThreadsLeft none(0);
    void* const queue = stream.handle();
    const auto half = static_cast<std::ptrdiff_t>(kMovedBytes / 2);
    expect_moved("copy", [&] { context.copy(to.data(), from.data(), kMovedBytes); });
    expect_moved("copy_async", [&] {
        const auto handle = context.copy_async(to.data(), from.data(), kMovedBytes);
        EXPECT_TRUE(handle.done());
        handle.result();
    });
    expect_moved("through a device", [&] {
        context.copy(device.data(), from.data(), kMovedBytes, queue);
        context.copy(to.data(), device.data(), kMovedBytes, queue);
        stream.synchronize();
    });
    expect_moved("through two devices, at once", [&] {
        const auto in = context.copy_async(device.data(), from.data(), kMovedBytes, queue);
        in.wait(queue);
        const auto across =
            context.copy_async(other_device.data(), device.data(), kMovedBytes, queue);
        across.result();
        const auto out = context.copy_async(to.data(), other_device.data(), kMovedBytes, nullptr);
        const auto counter = eventfd(0, EFD_CLOEXEC);
        out.notify(counter);
        std::uint64_t count = 0;
        EXPECT_EQ(read(counter, &count, sizeof count), 8);
        close(counter);
        out.result();
    });
    expect_moved("through a file", [&] {
        context.write(file, 0, from.data(), kMovedBytes);
        EXPECT_EQ(context.read(file, 0, to.data(), kMovedBytes), kMovedBytes);
    });
    expect_moved("through a file and a device", [&] {
        context.write_async(file, 4096, from.data(), kMovedBytes).result();
        context.read(file, 4096, device.data(), kMovedBytes, queue);
        context.write(file, 100, device.data(), kMovedBytes, queue);
        context.read_async(file, 100, to.data(), kMovedBytes).result();
    });
    expect_moved("a list", [&] {
        const std::vector<void*> targets{to.data(), to.data() + half};
        const std::vector<const void*> sources{from.data(), from.data() + half};
        const std::vector<std::size_t> sizes{kMovedBytes / 2, kMovedBytes / 2};
        context.copy_batch(targets, sources, sizes);
    });
}

// Callers at once do not wait for one another for ever, also if they share staging memory that is
// too small, and a start that one of them polls for.
TEST_F(NoThreads, SeveralCallersDoTheirOwnWork) {
    constexpr int kCallers = 4;
    constexpr int kRounds = 6;
    std::atomic<bool> begins{false};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
        callers.emplace_back([&, caller] {
            while (!begins) std::this_thread::yield();
            const gpu::Stream own(caller % 2);
            const gpu::DeviceBuffer there(caller % 2, kMovedBytes);
            const auto sent = test::sequence(kMovedBytes, static_cast<unsigned>(caller));
            for (int round = 0; round < kRounds; ++round) {
                std::vector<std::byte> back(kMovedBytes);
                context.copy(there.data(), sent.data(), kMovedBytes, own.handle());
                const auto handle =
                    context.copy_async(back.data(), there.data(), kMovedBytes, own.handle());
                handle.result();
                EXPECT_TRUE(test::same_bytes(back, sent)) << caller << " in round " << round;
            }
        });
    }
    {
        const ThreadsLeft none(0);
        begins = true;
        for (std::thread& caller : callers) caller.join();
    }
    EXPECT_EQ(context.usage().threads, 0U);
}

TEST_F(NoThreads, TheOnesThatStartAreUsed) {
    const ThreadsLeft one(1);
    std::vector<TransferHandle> all;
    std::vector<std::vector<std::byte>> targets(5, std::vector<std::byte>(kMovedBytes));
    for (auto& target : targets) {
        all.push_back(context.copy_async(target.data(), from.data(), kMovedBytes, stream.handle()));
    }
    for (const TransferHandle& each : all) each.result();
    EXPECT_EQ(context.usage().threads, 1U);
    for (const auto& target : targets) EXPECT_TRUE(test::same_bytes(target, from));
}

// A transfer that cannot start in time is given up, with the limit and what helps: nothing else
// would start it.
TEST_F(NoThreads, AStartThatDoesNotComeIsAnError) {
    auto engine = transfer::Engine::make(
        test::this_machine(),
        {.threads = 2, .pinned_bytes = 4 * kMiB, .unresponsive_seconds = 0.05});
    const ThreadsLeft none(0);
    gpu::Gate gate(0);
    gate.close(stream);
    auto event = std::make_shared<gpu::Event>(0, gpu::EventUse::ordering);
    event->record(stream);
    const auto job = std::make_shared<transfer::ChunkedCopy>(
        *engine, transfer::Endpoint::device(device.data(), 0),
        transfer::Endpoint::host(from.data(), false), kMovedBytes,
        transfer::CopyShape{.chunk = 64 * kKiB, .slots = 2});
    engine->start(job, event);
    EXPECT_TRUE(job->done());
    try {
        job->rethrow();
        ADD_FAILURE() << "it has succeeded";
    } catch (const NotSupported& error) {
        EXPECT_NE(std::string(error.what()).find("docker --pids-limit"), std::string::npos)
            << error.what();
    }
    transfer::Completion plain(kMovedBytes, event);
    EXPECT_THROW(plain.notify(file, *engine), NotSupported);
    gate.open();
    EXPECT_NO_THROW(plain.notify(file, *engine));
    EXPECT_TRUE(plain.wait({}));
}

TEST(NoThreadsOfTheHost, AreATypedErrorOrNotNeeded) {
    const ThreadsLeft none(0);
    EXPECT_THROW(host::Team(std::vector<std::vector<int>>(2)), host::NoThread);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 4; ++cpu) cpus.push_back(0);
    std::size_t passed = 0;
    host::parallel(16 * kMiB, cpus, [&](std::size_t begin, std::size_t end) {
        EXPECT_EQ(begin, passed);
        passed = end;
    });
    EXPECT_EQ(passed, 16 * kMiB);
    try {
        host::start_thread([] {});
        ADD_FAILURE() << "it has started";
    } catch (const NotSupported& error) {
        EXPECT_EQ(std::string(error.what()).find("a thread cannot be started: Resource temp"), 0U);
    }
}

}  // namespace
}  // namespace waywiser
