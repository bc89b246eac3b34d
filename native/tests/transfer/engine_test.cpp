// The engine of the transfer library over the fake GPU: order, progress, limits, failures, ends.
#include "transfer/engine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "case_stride.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "many_bytes.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/copy.hpp"
#include "units.hpp"

namespace waywiser::transfer {
namespace {

using test::sequence;

// Device memory of the fake is host memory: tests access it directly.
bool same(const std::byte* a, const std::byte* b, std::size_t bytes) {
    return test::same_bytes(a, b, bytes);
}

class OnEngine : public test::OnFake {
protected:
    std::shared_ptr<Engine> engine(EngineOptions options = {}) {
        if (options.pinned_bytes == 0) options.pinned_bytes = 4 * kMiB;
        return Engine::make(test::this_machine(), std::move(options));
    }
    static CopyShape small_chunks() {
        return {.chunk = 64 * kKiB, .threads = 0, .slots = 2, .streaming = false};
    }
    static std::shared_ptr<Job> job(Engine& engine, const Endpoint& to, const Endpoint& from,
                                    std::size_t bytes, const CopyShape& shape = small_chunks()) {
        return std::make_shared<ChunkedCopy>(engine, to, from, bytes, shape);
    }
};

TEST_F(OnEngine, MovesAnySizeAndOffsetInBothDirections) {
    auto own = engine();
    constexpr std::size_t kMost = 700 * kKiB + 13;
    const gpu::DeviceBuffer device(0, kMost + 64);
    for (const std::size_t bytes :
         {std::size_t{1}, 63 * kKiB + 1, 64 * kKiB, 128 * kKiB + 7, kMost}) {
        for (const std::size_t offset : {0, 1, 61}) {
            const auto from = sequence(bytes + 64, static_cast<unsigned>(bytes));
            std::vector<std::byte> back(bytes + 64, std::byte{0xEE});
            own->run(
                job(*own, Endpoint::device(device.data() + offset, 0),
                    Endpoint::host(const_cast<std::byte*>(from.data()) + offset, false), bytes),
                Engine::Until::done);
            ASSERT_TRUE(same(device.data() + offset, from.data() + offset, bytes));
            own->run(job(*own, Endpoint::host(back.data() + offset, false),
                         Endpoint::device(device.data() + offset, 0), bytes),
                     Engine::Until::done);
            ASSERT_TRUE(same(back.data() + offset, from.data() + offset, bytes));
            for (std::size_t i = 0; i < offset; ++i) ASSERT_EQ(back[i], std::byte{0xEE});
            for (std::size_t i = offset + bytes; i < back.size(); ++i) {
                ASSERT_EQ(back[i], std::byte{0xEE});
            }
        }
    }
}

TEST_F(OnEngine, StagesBetweenGpusAndRelaysOverOthers) {
    fake::configure("devices=3");
    auto own = engine({.relay_bytes = kMiB});
    constexpr std::size_t kBytes = kMiB + 5;
    const auto from = sequence(kBytes, 3);
    const gpu::DeviceBuffer one(0, kBytes);
    const gpu::DeviceBuffer two(1, kBytes);
    test::copy_bytes(one.data(), from.data(), kBytes);
    own->run(job(*own, Endpoint::device(two.data(), 1), Endpoint::device(one.data(), 0), kBytes),
             Engine::Until::done);
    EXPECT_TRUE(same(two.data(), from.data(), kBytes));

    CopyShape shape = small_chunks();
    shape.relays = {1, 2};
    for (const bool pinned : {true, false}) {
        const gpu::HostBuffer locked(kBytes, gpu::HostUse::portable, 0);
        std::vector<std::byte> pageable(kBytes);
        std::byte* const host = pinned ? locked.data() : pageable.data();
        test::copy_bytes(host, from.data(), kBytes);
        test::fill_bytes(one.data(), 0, kBytes);
        own->run(
            job(*own, Endpoint::device(one.data(), 0), Endpoint::host(host, pinned), kBytes, shape),
            Engine::Until::done);
        EXPECT_TRUE(same(one.data(), from.data(), kBytes));
        test::fill_bytes(host, 0, kBytes);
        own->run(
            job(*own, Endpoint::host(host, pinned), Endpoint::device(one.data(), 0), kBytes, shape),
            Engine::Until::done);
        EXPECT_TRUE(same(host, from.data(), kBytes));
    }
}

TEST_F(OnEngine, OneThreadWithOneSlotCompletesAnySetOfTransfers) {
    fake::configure("devices=2");
    auto own = engine({.threads = 1, .pinned_bytes = 64 * kKiB, .relay_bytes = 64 * kKiB});
    constexpr std::size_t kBytes = 300 * kKiB;
    const auto from = sequence(kBytes, 5);
    std::vector<std::unique_ptr<gpu::DeviceBuffer>> devices;
    std::vector<std::vector<std::byte>> back(4, std::vector<std::byte>(kBytes));
    std::vector<std::shared_ptr<Job>> jobs;
    for (int i = 0; i < 4; ++i) {
        devices.push_back(std::make_unique<gpu::DeviceBuffer>(i % 2, kBytes));
        test::copy_bytes(devices.back()->data(), from.data(), kBytes);
        CopyShape shape = small_chunks();
        if (i == 3) shape.relays = {0};
        jobs.push_back(job(*own, Endpoint::host(back[static_cast<std::size_t>(i)].data(), false),
                           Endpoint::device(devices.back()->data(), i % 2), kBytes, shape));
        own->start(jobs.back());
    }
    for (const auto& each : jobs) {
        each->wait();
        each->rethrow();
        EXPECT_EQ(each->moved(), kBytes);
    }
    for (const auto& bytes : back) EXPECT_EQ(bytes, from);
    EXPECT_LE(own->pinned_bytes(), 64 * kKiB);
}

TEST_F(OnEngine, TakesNothingBeforeTheStreamHasComeSoFar) {
    auto own = engine();
    constexpr std::size_t kBytes = 256 * kKiB;
    auto from = sequence(kBytes, 7);
    const gpu::DeviceBuffer device(0, kBytes);
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    gate.close(stream);
    auto event = std::make_shared<gpu::Event>(0, gpu::EventUse::ordering);
    event->record(stream);
    const auto waiting =
        job(*own, Endpoint::device(device.data(), 0), Endpoint::host(from.data(), false), kBytes);
    own->start(waiting, std::move(event));
    EXPECT_FALSE(waiting->wait(Deadline(0.05)));
    EXPECT_EQ(own->pinned_bytes(), 0U);
    EXPECT_EQ(waiting->moved(), 0U);
    // A later transfer completes first.
    std::vector<std::byte> back(kBytes);
    own->run(
        job(*own, Endpoint::host(back.data(), false), Endpoint::device(device.data(), 0), kBytes),
        Engine::Until::done);
    gate.open();
    waiting->wait();
    waiting->rethrow();
    EXPECT_TRUE(same(device.data(), from.data(), kBytes));
}

TEST_F(OnEngine, StopCancelsWhatHasNotStarted) {
    auto own = engine();
    auto from = sequence(64 * kKiB, 7);
    const gpu::DeviceBuffer device(0, from.size());
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    gate.close(stream);
    auto event = std::make_shared<gpu::Event>(0, gpu::EventUse::ordering);
    event->record(stream);
    const auto waiting = job(*own, Endpoint::device(device.data(), 0),
                             Endpoint::host(from.data(), false), from.size());
    own->start(waiting, std::move(event));
    own->stop();
    EXPECT_TRUE(waiting->done());
    EXPECT_THROW(waiting->rethrow(), Cancelled);
    EXPECT_THROW(own->start(job(*own, Endpoint::device(device.data(), 0),
                                Endpoint::host(from.data(), false), from.size())),
                 Cancelled);
    gate.open();
}

// The caller has submitted the first part of the copy when the engine throws.
TEST_F(OnEngine, WaitsForWhatAFailedCopyHasSubmitted) {
    fake::configure("d2h=0.5");
    auto own = engine({.pinned_bytes = 8 * kMiB, .spin_seconds = 1e-3});
    const gpu::DeviceBuffer device(0, 2 * kMiB);
    std::vector<std::byte> host(2 * kMiB);
    own->stop();
    EXPECT_THROW(copy(*own, host.data(), device.data(), host.size(), CallerStream{}), Cancelled);
    // So the caller may free both sides.
    EXPECT_TRUE(own->streams().of({0, Direction::out}).done());
}

// A CPU that writes to a slow disk, say.
class SlowOnHost final : public Job {
public:
    explicit SlowOnHost(double seconds) : Job(1, {}, CpuWork::all), seconds_(seconds) {
        routes_.push_back({});
    }
    void fill(const Part&, std::byte*) override { sleep(); }
    void finish() override { sleep(); }
    [[nodiscard]] bool has_begun() const { return begun_; }

private:
    void sleep() {
        begun_ = true;
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    }
    const double seconds_;
    std::atomic<bool> begun_{false};
};

TEST_F(OnEngine, WaitsForWorkOnTheHostHoweverLongItTakes) {
    auto own = engine({.unresponsive_seconds = 0.02});
    const auto slow = std::make_shared<SlowOnHost>(0.3);
    own->start(slow);
    while (!slow->has_begun()) std::this_thread::yield();
    EXPECT_TRUE(own->stop());
    EXPECT_TRUE(slow->done());
    slow->rethrow();
}

// A job that has failed before it started has no chunk that a thread could complete.
TEST_F(OnEngine, CompletesAJobThatHasFailedBefore) {
    auto own = engine();
    auto from = sequence(64 * kKiB, 9);
    const gpu::DeviceBuffer device(0, from.size());
    for (const bool waits : {false, true}) {
        const auto failed = job(*own, Endpoint::device(device.data(), 0),
                                Endpoint::host(from.data(), false), from.size());
        failed->fail(std::make_exception_ptr(std::runtime_error("it failed before")));
        const gpu::Stream stream(0);
        std::shared_ptr<gpu::Event> event;
        if (waits) {
            event = std::make_shared<gpu::Event>(0, gpu::EventUse::ordering);
            event->record(stream);
        }
        own->start(failed, std::move(event));
        EXPECT_TRUE(failed->wait(Deadline(60)));
        EXPECT_THROW(failed->rethrow(), std::runtime_error);
        EXPECT_EQ(own->jobs(), 0U);
    }
}

TEST_F(OnEngine, CompletesTransfersInFlightWhenItIsStopped) {
    fake::configure("staged=0.5;h2d=0.5");
    auto own = engine();
    auto from = sequence(2 * kMiB, 9);
    const gpu::DeviceBuffer device(0, from.size());
    const auto in_flight = job(*own, Endpoint::device(device.data(), 0),
                               Endpoint::host(from.data(), false), from.size());
    own->start(in_flight);
    own->stop();
    EXPECT_TRUE(in_flight->done());
    in_flight->rethrow();
    EXPECT_TRUE(same(device.data(), from.data(), from.size()));
}

// Every runtime call of a transfer fails once: it reports the error, and nothing leaks.
TEST_F(OnEngine, EndsWithAnErrorWhateverFailsAndWhenever) {
    fake::configure("devices=2");
    constexpr std::size_t kBytes = 512 * kKiB;
    auto from = sequence(kBytes, 11);
    std::vector<std::byte> back(kBytes);
    const gpu::DeviceBuffer one(0, kBytes);
    const gpu::DeviceBuffer two(1, kBytes);
    const auto shapes = [&](Engine& own, int which) {
        CopyShape shape = small_chunks();
        switch (which) {
            case 0:
                return job(own, Endpoint::device(one.data(), 0), Endpoint::host(from.data(), false),
                           kBytes, shape);
            case 1:
                return job(own, Endpoint::host(back.data(), false), Endpoint::device(one.data(), 0),
                           kBytes, shape);
            case 2:
                return job(own, Endpoint::device(two.data(), 1), Endpoint::device(one.data(), 0),
                           kBytes, shape);
            default:
                shape.relays = {1};
                return job(own, Endpoint::device(one.data(), 0), Endpoint::host(from.data(), false),
                           kBytes, shape);
        }
    };
    std::size_t failures = 0;
    for (const char* fault :
         {"fail=copy", "fail=event", "oom_at=", "fail=alloc", "lost=copy", "sticky=event"}) {
        for (int which = 0; which < 4; ++which) {
            for (const int when : {1, 2, 5, 9}) {
                const std::string text(fault);
                const std::string at = std::to_string(when);
                fake::configure("devices=2;" + text + (text.ends_with('=') ? "" : "@") + at);
                auto own = engine();
                try {
                    const auto made = shapes(*own, which);
                    try {
                        own->run(made, Engine::Until::done);
                        EXPECT_EQ(made->moved(), kBytes);
                    } catch (const gpu::Error&) {
                        ++failures;
                        EXPECT_LT(made->moved(), kBytes) << text << when << " of " << which;
                    }
                    EXPECT_TRUE(made->done());
                } catch (const gpu::Error&) {
                    ++failures;  // peer access, before the start
                }
                own->stop();
                EXPECT_EQ(own->jobs(), 0U);
                own.reset();
                fake::configure("devices=2");
            }
        }
    }
    EXPECT_GT(failures, 40U);
}

// --- chunks of several threads ---------------------------------------------------------------

class ThroughSlots : public OnEngine {
protected:
    static constexpr std::size_t kBytes = 24 * kMiB + 4321;

    static void configure(const std::string& more = "") {
        fake::configure("devices=2;h2d=4;d2h=4;peer=40" + more);
    }
    // The first copy takes so long that all other chunks are ready earlier, even if CPUs are busy.
    static void configure_slow_start() {
        fake::configure("devices=2;h2d=4;d2h=4;peer=40;delay=1@1");
    }
    static CopyShape shape(bool relayed, bool own_slots = true) {
        CopyShape made{
            .chunk = kMiB, .least = kMiB / 4, .threads = 4, .slots = 4, .own_slots = own_slots};
        if (relayed) made.relays = {1};
        return made;
    }
    std::shared_ptr<Engine> large_engine() {
        return engine({.threads = 4, .pinned_bytes = 64 * kMiB, .relay_bytes = 64 * kMiB});
    }
    std::shared_ptr<Job> copy(Engine& own, bool to_gpu, bool relayed, bool own_slots = true) {
        const Endpoint host = Endpoint::host(to_gpu ? from_.data() : back_.data(), false);
        const Endpoint gpu = Endpoint::device(device_->data(), 0);
        return job(own, to_gpu ? gpu : host, to_gpu ? host : gpu, kBytes,
                   shape(relayed, own_slots));
    }
    void SetUp() override {
        OnEngine::SetUp();
        configure();
        device_ = std::make_unique<gpu::DeviceBuffer>(0, kBytes);
    }
    void TearDown() override {
        device_.reset();
        OnEngine::TearDown();
    }

    std::vector<std::byte> from_ = sequence(kBytes, 23);
    std::vector<std::byte> back_ = std::vector<std::byte>(kBytes);
    std::unique_ptr<gpu::DeviceBuffer> device_;
};

TEST_F(ThroughSlots, MovesEveryByteBehindASlowCopy) {
    for (const int which : {0, 1, 2, 3}) {
        const bool relayed = which % 2 == 1;
        auto own = large_engine();
        for (const bool to_gpu : {true, false}) {
            configure_slow_start();
            if (to_gpu) {
                test::fill_bytes(device_->data(), 0, kBytes);
            } else {
                test::fill_bytes(back_.data(), 0, kBytes);
            }
            own->run(copy(*own, to_gpu, relayed, which < 2), Engine::Until::done);
            const std::byte* const arrived = to_gpu ? device_->data() : back_.data();
            EXPECT_TRUE(same(arrived, from_.data(), kBytes)) << relayed << to_gpu;
        }
    }
}

// A stream that is ordered after the transfer sees all of it, including the last submission.
TEST_F(ThroughSlots, IsOrderedBeforeWhatComesAfterIt) {
    auto own = large_engine();
    const gpu::DeviceBuffer copied(0, kBytes);
    const gpu::Stream stream(0);
    for (const bool relayed : {false, true}) {
        test::fill_bytes(device_->data(), 0, kBytes);
        const auto made = copy(*own, true, relayed);
        own->run(made, Engine::Until::submitted);
        made->order(stream);
        gpu::copy_async(copied.data(), device_->data(), kBytes, stream);
        stream.synchronize();
        EXPECT_TRUE(same(copied.data(), from_.data(), kBytes));
        made->wait();
    }
}

TEST_F(ThroughSlots, EndsWithAnErrorWhateverFails) {
    std::size_t failures = 0;
    std::size_t number = 0;
    for (const char* fault :
         {"fail=copy", "fail=event", "lost=copy", "sticky=query", "fail=call", "sticky=call"}) {
        for (int which = 0; which < 4; ++which) {
            for (const int when : {1, 2, 3, 4, 6, 9, 14}) {
                if (number++ % test::case_stride() != 0) continue;
                const bool relayed = which >= 2;
                const std::string text = std::string(";") + fault + "@" + std::to_string(when);
                configure(text);
                std::shared_ptr<Engine> own;
                try {
                    own = large_engine();
                    const auto made = copy(*own, which % 2 == 0, relayed);
                    try {
                        own->run(made, Engine::Until::done);
                        EXPECT_EQ(made->moved(), kBytes) << text << which;
                    } catch (const gpu::Error&) {
                        ++failures;
                        EXPECT_LT(made->moved(), kBytes) << text << which;
                    }
                    EXPECT_TRUE(made->done());
                } catch (const gpu::Error&) {
                    ++failures;  // discovery of the machine, or peer access
                }
                if (own) {
                    own->stop();
                    EXPECT_EQ(own->jobs(), 0U);
                }
                own.reset();
                configure();
            }
        }
    }
    EXPECT_GT(failures, 100 / test::case_stride());
}

TEST_F(ThroughSlots, CompletesWhatTheCallerLeavesAndWhatIsStopped) {
    auto own = large_engine();
    const auto made = copy(*own, true, false);
    own->run(made, Engine::Until::submitted);
    own->stop();
    made->rethrow();
    EXPECT_TRUE(made->done());
    EXPECT_TRUE(same(device_->data(), from_.data(), kBytes));
}

TEST_F(OnEngine, CopiesThroughOrdinaryMemoryWhereNothingCanBePinned) {
    fake::configure("fail=alloc@1+");
    auto own = engine();
    auto from = sequence(512 * kKiB, 13);
    fake::configure("");
    const gpu::DeviceBuffer device(0, from.size());
    fake::configure("fail=alloc@1+");
    own->run(job(*own, Endpoint::device(device.data(), 0), Endpoint::host(from.data(), false),
                 from.size()),
             Engine::Until::done);
    EXPECT_TRUE(same(device.data(), from.data(), from.size()));
    ASSERT_EQ(own->warnings().size(), 1U);
    EXPECT_NE(own->warnings().front().find("ulimit -l"), std::string::npos);
    own.reset();
    fake::configure("");
}

TEST_F(OnEngine, ManyCallersShareItsThreads) {
    auto own = engine();
    constexpr std::size_t kBytes = 400 * kKiB;
    const auto from = sequence(kBytes, 15);
    const gpu::DeviceBuffer device(0, 8 * kBytes);
    std::vector<std::thread> callers;
    for (std::size_t i = 0; i < 8; ++i) {
        callers.emplace_back([&, i] {
            for (int round = 0; round < 5; ++round) {
                std::vector<std::byte> mine = from;
                std::vector<std::byte> back(kBytes);
                std::byte* const there = device.data() + i * kBytes;
                own->run(job(*own, Endpoint::device(there, 0), Endpoint::host(mine.data(), false),
                             kBytes),
                         Engine::Until::done);
                own->run(job(*own, Endpoint::host(back.data(), false), Endpoint::device(there, 0),
                             kBytes),
                         Engine::Until::done);
                EXPECT_TRUE(test::same_bytes(back, from));
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_LE(own->threads(), own->options().threads);
}

TEST_F(OnEngine, ATransferIsOrderedBeforeWhatComesAfterIt) {
    fake::configure("h2d=1");
    auto own = engine();
    auto from = sequence(kMiB, 17);
    const gpu::DeviceBuffer device(0, from.size());
    const gpu::DeviceBuffer copy(0, from.size());
    const gpu::Stream stream(0);
    const auto made = job(*own, Endpoint::device(device.data(), 0),
                          Endpoint::host(from.data(), false), from.size());
    own->start(made);
    made->order(stream);
    gpu::copy_async(copy.data(), device.data(), from.size(), stream);
    stream.synchronize();
    EXPECT_TRUE(same(copy.data(), from.data(), from.size()));
    made->wait();
}

TEST_F(OnEngine, AChildProcessGetsAnError) {
    auto own = engine();
    auto from = sequence(64 * kKiB, 19);
    const gpu::DeviceBuffer device(0, from.size());
    own->run(job(*own, Endpoint::device(device.data(), 0), Endpoint::host(from.data(), false),
                 from.size()),
             Engine::Until::done);
    const pid_t child = fork();
    if (child == 0) {
        int status = 1;
        try {
            own->check_process();
        } catch (const ForkedProcess&) {
            own->stop();  // does nothing
            status = 0;
        }
        _exit(status);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(OnEngine, TouchesNoGpuThatIsNoOperand) {
    fake::configure("devices=4");
    auto own = engine();
    auto from = sequence(256 * kKiB, 21);
    const gpu::DeviceBuffer device(2, from.size());
    own->run(job(*own, Endpoint::device(device.data(), 2), Endpoint::host(from.data(), false),
                 from.size()),
             Engine::Until::done);
    EXPECT_EQ(fake::contexts(), std::set<int>{2});
}

// A limit on the copy engine's queue is kept, and all transfers complete.
TEST_F(OnEngine, PoliteTransfersComplete) {
    auto own = engine({.max_queued_bytes = 64 * kKiB});
    auto from = sequence(kMiB, 23);
    std::vector<std::byte> back(from.size());
    const gpu::DeviceBuffer device(0, from.size());
    own->run(job(*own, Endpoint::device(device.data(), 0), Endpoint::host(from.data(), false),
                 from.size()),
             Engine::Until::done);
    own->run(job(*own, Endpoint::host(back.data(), false), Endpoint::device(device.data(), 0),
                 from.size()),
             Engine::Until::done);
    EXPECT_TRUE(test::same_bytes(back, from));
}

// Random chunked copies between all kinds of ends, some of which fail.
TEST_F(OnEngine, MovesEveryByteOfRandomCopiesOrFails) {
    constexpr int kCases = 10000;
    constexpr std::size_t kBufferBytes = 96 * kKiB;
    const std::string quick =
        "devices=3;latency=0;event=0;h2d=500;d2h=500;d2d=500;peer=500;staged=500";
    fake::configure(quick);
    std::mt19937 random(7);
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
    const gpu::DeviceBuffer devices[2] = {gpu::DeviceBuffer(0, kBufferBytes),
                                          gpu::DeviceBuffer(1, kBufferBytes)};
    const gpu::HostBuffer pinned(kBufferBytes, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(kBufferBytes);
    const int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, kBufferBytes), 0);
    auto* const mapped = static_cast<std::byte*>(
        mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ASSERT_NE(static_cast<void*>(mapped), MAP_FAILED);
    std::byte* const bytes_of[] = {devices[0].data(), devices[1].data(), pinned.data(),
                                   pageable.data(), mapped};
    const auto end = [&](std::size_t kind, std::size_t at) {
        if (kind < 2) return Endpoint::device(bytes_of[kind] + at, static_cast<int>(kind));
        if (kind == 4) return Endpoint::of_file(file, at);
        return Endpoint::host(bytes_of[kind] + at, kind == 2);
    };
    const auto content = sequence(kBufferBytes, 1);
    std::size_t arrived = 0;
    std::size_t failed = 0;
    for (int block = 0; block < kCases / 200; ++block) {
        auto own = engine({.threads = 1 + pick(3),
                           .pinned_bytes = pick(2) == 0 ? 64 * kKiB : kMiB,
                           .relay_bytes = 128 * kKiB,
                           .max_queued_bytes = block % 3 == 0 ? 8 * kKiB : 0});
        for (int i = 0; i < 200; ++i) {
            const std::size_t a = pick(5);
            const std::size_t b = (a + 1 + pick(4)) % 5;
            const std::size_t bytes = pick(8) == 0 ? 1 + pick(80 * kKiB) : 1 + pick(9000);
            const std::size_t to_at = pick(5000);
            const std::size_t from_at = pick(5000);
            test::copy_bytes(bytes_of[b] + from_at, content.data(), bytes);
            test::fill_bytes(bytes_of[a] + to_at, 0, bytes);
            bytes_of[a][to_at + bytes] = std::byte{0x5A};
            CopyShape shape{.chunk = std::size_t{4096} << pick(3),
                            .threads = pick(3),
                            .slots = 1 + pick(3),
                            .streaming = pick(2) == 0,
                            .direct_io = pick(2) == 0};
            if (pick(3) == 0) shape.relays = {2, 1, 0};
            if (pick(12) == 0) {
                static const char* const kFaults[] = {"fail=copy@", "fail=event@", "oom_at="};
                fake::configure(quick + ";" + kFaults[pick(3)] + std::to_string(1 + pick(4)));
            }
            try {
                const auto made = job(*own, end(a, to_at), end(b, from_at), bytes, shape);
                own->run(made, Engine::Until::done);
                ASSERT_EQ(made->moved(), bytes);
                ASSERT_TRUE(same(bytes_of[a] + to_at, content.data(), bytes))
                    << bytes << " bytes from " << b << " to " << a << ", case " << i << " of "
                    << block;
                ++arrived;
            } catch (const gpu::Error&) {
                ++failed;
            }
            ASSERT_EQ(bytes_of[a][to_at + bytes], std::byte{0x5A});
            fake::configure(quick);
        }
        own->stop();
        EXPECT_EQ(own->jobs(), 0U);
    }
    munmap(mapped, kBufferBytes);
    close(file);
    EXPECT_GT(arrived, 9000U);
    EXPECT_GT(failed, 50U);
}

}  // namespace
}  // namespace waywiser::transfer
