// A GPU that does not answer: every call with a time limit returns, a context can be released and a
// process can exit, and what the GPU may still use is never taken for free.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "support/sanitizer.hpp"
#include "threads_left.hpp"
#include "transfer/chunked_copy.hpp"
#include "transfer/discover.hpp"
#include "transfer/engine.hpp"
#include "units.hpp"
#include "waywiser/transfer.h"

namespace waywiser {
namespace {

constexpr double kHungLimit = 0.1;
constexpr std::size_t kHungBytes = 16 * kMiB;
constexpr std::size_t kHungAwakeBytes = 4 * kMiB;
constexpr std::size_t kHungBlock = 64 * kKiB;

// Keeps an object until the process ends: the GPU that hangs may use it.
template <class Object>
Object* never_freed(Object* object) {
    static auto& all = *new std::vector<std::shared_ptr<void>>();
    all.emplace_back(object);
    return object;
}

// What a case needs.
struct HungWorld {
    std::byte* device = never_freed(new gpu::DeviceBuffer(0, kHungBytes))->data();
    std::byte* other = never_freed(new gpu::DeviceBuffer(1, kHungBytes))->data();
    std::byte* pinned =
        never_freed(new gpu::HostBuffer(kHungBytes, gpu::HostUse::portable, 0))->data();
    std::byte* pageable = never_freed(new std::vector<std::byte>(kHungBytes, std::byte{1}))->data();
    void* stream = never_freed(new gpu::Stream(0))->handle();
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    waywiser_context* context = nullptr;

    explicit HungWorld(double spin_seconds = 0, bool relays = false) {
        static const int relay = 1;
        waywiser_options options{};
        options.size = sizeof options;
        options.threads = 3;
        options.pinned_bytes = 32 * kMiB;
        options.policy = "off";
        options.quiet = 1;
        options.spin_seconds = spin_seconds;
        options.relays = &relay;
        options.relay_count = relays ? 1 : 0;
        options.no_peer_access = relays ? 0 : 1;
        if (waywiser_context_create(&options, &context) != WAYWISER_OK) std::_Exit(90);
        if (ftruncate(file, kHungBytes) != 0) std::_Exit(91);
    }
};

// A case in a process of its own, so that a hang ends with it.
class ChildProcess {
public:
    // `exits`: by exit(), which ends the contexts.
    explicit ChildProcess(const std::function<int()>& run, bool exits = false) : child_(fork()) {
        if (child_ != 0) return;
        fake::configure("latency=0;event=0;h2d=200;d2h=200;peer=200;staged=200");
        const int status = run();
        if (exits) std::exit(status);
        std::_Exit(status);
    }
    // Its exit status; -1 if it does not end.
    [[nodiscard]] int status() const {
        int status = 0;
        while (waitpid(child_, &status, WNOHANG) != child_) {
            if (std::chrono::steady_clock::now() > end_) {
                kill(child_, SIGKILL);
                waitpid(child_, &status, 0);
                return -1;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    }

private:
    const pid_t child_;
    const std::chrono::steady_clock::time_point end_ =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(test::kHangSeconds));
};

class HungGpu : public ::testing::Test {
protected:
    void SetUp() override {
        if (test::sanitizer() == test::Sanitizer::thread) {
            GTEST_SKIP() << "the thread sanitizer ends children of a process with threads";
        }
    }
};

// A call that waits, and leaves the handle of a transfer that goes on.
struct LimitedCall {
    std::string name;
    std::function<waywiser_status(HungWorld&, int*, waywiser_transfer**)> make;
    double spin_seconds = 0;
    bool relays = false;
    // Pageable memory, or a file: it is free as soon as the library has read it. The call may end
    // then, and the rest is in the stream.
    bool reads_ahead = false;
};

std::vector<LimitedCall> limited_calls() {
    std::vector<LimitedCall> all;
    const auto copy = [&](const std::string& name, std::byte* HungWorld::* to,
                          std::byte* HungWorld::* from, std::size_t bytes, double awake = 0,
                          bool relays = false) {
        all.push_back({.name = name,
                       .make =
                           [=](HungWorld& w, int* ended, waywiser_transfer** left) {
                               return waywiser_copy_and_wait(w.context, w.*to, w.*from, bytes,
                                                             w.stream, kHungLimit, ended, left);
                           },
                       .spin_seconds = awake,
                       .relays = relays,
                       .reads_ahead = from == &HungWorld::pageable});
    };
    copy("pinned to GPU", &HungWorld::device, &HungWorld::pinned, kHungBytes);
    copy("GPU to pinned", &HungWorld::pinned, &HungWorld::device, kHungBytes);
    copy("pageable to GPU", &HungWorld::device, &HungWorld::pageable, kHungBytes);
    copy("GPU to pageable", &HungWorld::pageable, &HungWorld::device, kHungBytes);
    copy("awake to GPU", &HungWorld::device, &HungWorld::pageable, kHungAwakeBytes, 1e-3);
    copy("awake from GPU", &HungWorld::pageable, &HungWorld::device, kHungAwakeBytes, 1e-3);
    copy("relayed to GPU", &HungWorld::device, &HungWorld::pinned, kHungBytes, 0, true);
    copy("relayed from GPU", &HungWorld::pageable, &HungWorld::device, kHungBytes, 0, true);
    for (const bool in : {true, false}) {
        all.push_back({.name = in ? "blocks to GPU" : "blocks from GPU",
                       .make =
                           [in](HungWorld& w, int* ended, waywiser_transfer** left) {
                               constexpr std::size_t kCount = kHungBytes / kHungBlock;
                               std::vector<std::int64_t> index(kCount);
                               std::iota(index.begin(), index.end(), std::int64_t{0});
                               std::byte* const to = in ? w.device : w.pageable;
                               std::byte* const from = in ? w.pageable : w.device;
                               return waywiser_copy_blocks_and_wait(
                                   w.context, to, kHungBlock, kCount, from, kHungBlock, kCount,
                                   kHungBlock, index.data(), index.data(), kCount, w.stream,
                                   kHungLimit, ended, left);
                           },
                       .reads_ahead = in});
        // Pieces of three kinds: some are started when the time is over already.
        all.push_back(
            {.name = in ? "mixed batch to GPU" : "mixed batch from GPU",
             .make =
                 [in](HungWorld& w, int* ended, waywiser_transfer** left) {
                     constexpr std::size_t kPart = 2 * kMiB;
                     const std::array<std::byte*, 6> gpu{
                         w.device, w.device + kPart, w.device + 2 * kPart, w.device + 3 * kPart,
                         w.other,  w.other + kPart,
                     };
                     const std::array<std::byte*, 6> host{
                         w.pageable,           w.pageable + 2 * kPart, w.pinned,
                         w.pinned + 2 * kPart, w.pageable + 4 * kPart, w.pageable + 6 * kPart};
                     std::array<void*, 6> to{};
                     std::array<const void*, 6> from{};
                     std::array<std::size_t, 6> sizes{};
                     for (std::size_t i = 0; i < sizes.size(); ++i) {
                         to[i] = in ? gpu[i] : host[i];
                         from[i] = in ? host[i] : gpu[i];
                         sizes[i] = kPart;
                     }
                     return waywiser_copy_batch_and_wait(w.context, to.data(), from.data(),
                                                         sizes.data(), sizes.size(), w.stream,
                                                         kHungLimit, ended, left);
                 },
             .reads_ahead = in});
    }
    all.push_back({.name = "read",
                   .make =
                       [](HungWorld& w, int* ended, waywiser_transfer** left) {
                           return waywiser_read_and_wait(w.context, w.file, 0, w.device, kHungBytes,
                                                         w.stream, kHungLimit, ended, nullptr,
                                                         left);
                       },
                   .reads_ahead = true});
    all.push_back({.name = "write", .make = [](HungWorld& w, int* ended, waywiser_transfer** left) {
                       return waywiser_write_and_wait(w.context, w.file, 0, w.device, kHungBytes, 0,
                                                      w.stream, kHungLimit, ended, nullptr, left);
                   }});
    return all;
}

// The first, second, third or last copy of the call hangs, so that threads meet it in different
// places.
TEST_F(HungGpu, EveryTimeLimitHolds) {
    const auto run = [](const LimitedCall& call, int copy) {
        HungWorld world(call.spin_seconds, call.relays);
        fake::configure("latency=0;event=0;h2d=200;d2h=200;hang=copy@" + std::to_string(copy));
        waywiser_transfer* left = nullptr;
        int ended = 0;
        if (call.make(world, &ended, &left) != WAYWISER_OK) return 1;
        // A call of fewer copies ends. On a busy machine this, and the copy that hangs, may take
        // longer than the limit.
        const auto is_hung = [copy] { return std::cmp_greater_equal(fake::counts().copies, copy); };
        if (left == nullptr) {
            if (!is_hung()) return 0;
            if (!call.reads_ahead || ended != 0) return 2;
            // The caller learns of the hang from its stream.
            if (waywiser_mark(world.context, world.stream, &left) != WAYWISER_OK) return 6;
        }
        for (;;) {
            const bool was_hung = is_hung();
            const waywiser_status status = waywiser_transfer_result(left, kHungLimit, nullptr);
            if (status == WAYWISER_OK) return is_hung() ? 3 : 0;
            if (status != WAYWISER_TIMEOUT) return 4;
            if (was_hung) return waywiser_transfer_done(left) == 0 ? 0 : 5;
        }
    };
    for (const LimitedCall& call : limited_calls()) {
        std::vector<std::unique_ptr<ChildProcess>> cases;
        for (const int copy : {1, 2, 3, 32}) {
            cases.push_back(std::make_unique<ChildProcess>([&] { return run(call, copy); }));
        }
        for (const auto& one : cases) EXPECT_EQ(one->status(), 0) << call.name;
    }
}

// A transfer that was given up has ended, but not its use of memory. The same for a list in the
// program's stream, and at the end of a process.
TEST_F(HungGpu, AContextCanBeReleasedAndAProcessCanExit) {
    const auto release = [](double awake) {
        HungWorld world(awake);
        fake::configure("hang=copy@1");
        waywiser_transfer* left = nullptr;
        if (waywiser_copy_async(world.context, world.pageable, world.device, 2 * kHungAwakeBytes,
                                world.stream, &left) != WAYWISER_OK) {
            return 1;
        }
        if (waywiser_transfer_result(left, kHungLimit, nullptr) != WAYWISER_TIMEOUT) return 2;
        waywiser_context_release(world.context);
        if (waywiser_transfer_done(left) == 0) return 3;
        if (waywiser_transfer_result(left, -1, nullptr) != WAYWISER_IN_USE) return 4;
        const std::string why = waywiser_last_error();
        if (why.find("do not free") == std::string::npos) return 5;
        waywiser_transfer_release(left);
        return 0;
    };
    const auto release_after_list = [] {
        HungWorld world;
        fake::configure("hang=launch@1");
        constexpr std::size_t kCount = 512;
        constexpr std::size_t kPiece = 8 * kKiB;
        std::vector<std::int64_t> index(kCount);
        std::vector<std::int64_t> shuffled(kCount);
        std::iota(index.begin(), index.end(), std::int64_t{0});
        for (const std::int64_t i : index) {
            shuffled[static_cast<std::size_t>(i)] = i * 7 % static_cast<std::int64_t>(kCount);
        }
        const waywiser_status status = waywiser_copy_blocks(
            world.context, world.device, kPiece, kCount, world.pinned, kPiece, kCount, kPiece,
            shuffled.data(), index.data(), kCount, world.stream, nullptr);
        waywiser_context_release(world.context);
        return status == WAYWISER_OK ? 0 : 1;
    };
    const auto exit_beside = [](double awake) {
        const HungWorld& world = *never_freed(new HungWorld(awake));
        fake::configure("hang=copy@1");
        static waywiser_transfer* left = nullptr;
        waywiser_copy_and_wait(world.context, world.pageable, world.device, 2 * kHungAwakeBytes,
                               world.stream, kHungLimit, nullptr, &left);
        return left == nullptr ? 1 : 0;
    };
    const ChildProcess released([&] { return release(0); });
    const ChildProcess released_awake([&] { return release(1e-3); });
    const ChildProcess list(release_after_list);
    const ChildProcess exits([&] { return exit_beside(0); }, true);
    const ChildProcess exits_awake([&] { return exit_beside(1e-3); }, true);
    EXPECT_EQ(released.status(), 0);
    EXPECT_EQ(released_awake.status(), 0);
    EXPECT_EQ(list.status(), 0);
    EXPECT_EQ(exits.status(), 0);
    EXPECT_EQ(exits_awake.status(), 0);
}

// Takes a GPU that completes nothing for 50 ms for one that does not answer.
std::shared_ptr<transfer::Engine> impatient_engine() {
    return transfer::Engine::make(
        transfer::discover_machine(),
        {.threads = 2, .pinned_bytes = 4 * kMiB, .unresponsive_seconds = 0.05});
}

std::shared_ptr<transfer::Job> copy_to_gpu(transfer::Engine& engine, const HungWorld& world) {
    using transfer::Endpoint;
    return std::make_shared<transfer::ChunkedCopy>(
        engine, Endpoint::device(world.device, 0), Endpoint::host(world.pageable, false), 2 * kMiB,
        transfer::CopyShape{.chunk = 64 * kKiB, .slots = 2});
}

// An engine that could not be stopped stays as it is, also without an owner.
TEST_F(HungGpu, KeepsStagingMemoryThatAGpuMayUse) {
    const ChildProcess engine([] {
        const HungWorld world;
        std::shared_ptr<transfer::Engine> own = impatient_engine();
        fake::configure("hang=copy@1");
        const auto job = copy_to_gpu(*own, world);
        own->start(job);
        while (fake::counts().copies == 0) std::this_thread::yield();
        if (own->stop() || own->stop()) return 1;  // the second time too
        if (!job->done()) return 2;
        EXPECT_THROW(job->rethrow(), transfer::MemoryInUse);
        if (own->warnings().size() != 1) return 3;
        own.reset();
        if (testing::Test::HasFailure()) return 4;
        return fake::live().registrations > 0 ? 0 : 5;
    });
    EXPECT_EQ(engine.status(), 0);
}

// Without a thread that would go on, the call itself gives the transfer up.
TEST_F(HungGpu, KeepsStagingMemoryIfTheSystemStartsNoThread) {
    const ChildProcess engine([] {
        const HungWorld world;
        std::shared_ptr<transfer::Engine> own = impatient_engine();
        fake::configure("hang=copy@1");
        const test::ThreadsLeft none(0);
        const auto waited = copy_to_gpu(*own, world);
        EXPECT_THROW(
            own->run(waited, transfer::Engine::Until::submitted, nullptr, transfer::Deadline(0.01)),
            transfer::MemoryInUse);
        const auto started = copy_to_gpu(*own, world);
        own->start(started);
        if (!waited->done() || !started->done()) return 1;
        if (!own->stop() || own->jobs() != 0) return 2;
        EXPECT_THROW(started->rethrow(), transfer::MemoryInUse);
        own.reset();
        if (testing::Test::HasFailure()) return 4;
        return fake::live().registrations > 0 ? 0 : 5;
    });
    EXPECT_EQ(engine.status(), 0);
}

// A copy fails after a part of it was submitted to a GPU that does not answer. The context has no
// transfer left when it is released.
TEST_F(HungGpu, KeepsStagingMemoryOfAFailedCopy) {
    const ChildProcess failed([] {
        const HungWorld world(1e-3);
        fake::configure("hang=copy@1;fail=event@1");
        waywiser_transfer* left = nullptr;
        const waywiser_status status =
            waywiser_copy_and_wait(world.context, world.device, world.pageable, 2 * kHungAwakeBytes,
                                   world.stream, -1, nullptr, &left);
        if (status != WAYWISER_IN_USE) return 1;
        waywiser_context_release(world.context);
        return fake::live().registrations > 0 ? 0 : 2;
    });
    EXPECT_EQ(failed.status(), 0);
}

TEST_F(HungGpu, DoesNotHoldUpAnotherContext) {
    const ChildProcess both([] {
        HungWorld hung;
        fake::configure("latency=0;event=0;hang=copy@1");
        waywiser_transfer* left = nullptr;
        waywiser_copy_and_wait(hung.context, hung.pageable, hung.device, kHungBytes, hung.stream,
                               kHungLimit, nullptr, &left);
        HungWorld other;
        waywiser_transfer* rest = nullptr;
        const waywiser_status status =
            waywiser_copy_and_wait(other.context, other.pageable, other.device, kHungBytes,
                                   other.stream, test::kHangSeconds, nullptr, &rest);
        return left != nullptr && status == WAYWISER_OK && rest == nullptr ? 0 : 1;
    });
    EXPECT_EQ(both.status(), 0);
}

}  // namespace
}  // namespace waywiser
