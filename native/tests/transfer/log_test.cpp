// The function of a program that receives the warnings of a context.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "scratch_folder.hpp"
#include "support/sanitizer.hpp"
#include "transfer/log_thread.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

// The lines that a function has received.
class Lines {
public:
    void add(std::string_view line) {
        const std::lock_guard lock(mutex_);
        lines_.emplace_back(line);
        changed_.notify_all();
    }
    [[nodiscard]] std::vector<std::string> all() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }
    [[nodiscard]] bool await(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, test::kLong, [&] { return lines_.size() >= count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
};

class LogOfAContext : public test::OnFake {
protected:
    test::ScratchFolder folder;
    Lines lines;

    // A policy that is not used: a warning of the context's creation.
    [[nodiscard]] std::string damaged_policy() const {
        const std::string file = folder.path() + "/damaged.json";
        std::ofstream(file) << "{";
        return file;
    }
    ContextOptions options(bool quiet = false) {
        return {.threads = 2,
                .pinned_bytes = 4 * kMiB,
                .policy = damaged_policy(),
                .quiet = quiet,
                .log = [this](std::string_view line) { lines.add(line); }};
    }
};

TEST_F(LogOfAContext, HasTheWarningsOfItsCreation) {
    for (const bool quiet : {false, true}) {
        ::testing::internal::CaptureStderr();
        const Context context(options(quiet));
        EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
        ASSERT_EQ(lines.all().size(), quiet ? 2U : 1U) << "each context has its own";
        EXPECT_NE(lines.all().back().find("damaged.json is not used"), std::string::npos);
        EXPECT_EQ(lines.all().back() + '\n', context.warnings());
    }
}

TEST_F(LogOfAContext, HasTheWarningsOfCopies) {
    fake::configure("fail=alloc@1+");
    gpu::free_bytes(0);
    ContextOptions chosen = options();
    chosen.policy = "off";
    Context context(chosen);
    std::vector<std::byte> from(16 * kMiB), to(16 * kMiB);
    fake::configure("");
    gpu::DeviceBuffer device(0, from.size());
    fake::configure("oom_at=1+");
    context.copy(device.data(), from.data(), from.size());
    ASSERT_TRUE(lines.await(1));
    EXPECT_NE(lines.all().front().find("could not be pinned"), std::string::npos);
    fake::configure("");
}

// The pool that grows has a lock then; no lock may be held in the function.
TEST_F(LogOfAContext, CallsTheLibrary) {
    Context* own = nullptr;
    std::atomic<bool> copied{false};
    ContextOptions chosen = options();
    chosen.policy = "off";
    std::vector<std::byte> from(16 * kMiB, std::byte{1}), to(16 * kMiB);
    gpu::DeviceBuffer device(0, from.size()), second(0, from.size());
    chosen.log = [&](std::string_view) {
        own->copy(second.data(), from.data(), from.size(), StreamRef::per_thread_of(0));
        EXPECT_NE(own->warnings(), "");
        const Context another({.threads = 1, .pinned_bytes = kMiB});
        copied = true;
    };
    Context context(chosen);
    own = &context;
    fake::configure("oom_at=1+");
    gpu::free_bytes(0);
    context.copy(device.data(), from.data(), from.size());
    test::AsyncCall called([&] {
        while (!copied) std::this_thread::yield();
    });
    EXPECT_TRUE(called.returns());
    fake::configure("");
}

TEST_F(LogOfAContext, StaysWithTheContextThatIsMoved) {
    ContextOptions chosen = options();
    auto first = std::make_unique<Context>(chosen);
    Context second(std::move(*first));
    first.reset();
    chosen = {};
    EXPECT_EQ(lines.all().size(), 1U);
    EXPECT_NE(second.warnings(), "");
}

// The function waits for what never comes.
TEST_F(LogOfAContext, HoldsUpNoExit) {
    if (test::sanitizer() == test::Sanitizer::thread) {
        GTEST_SKIP() << "the thread sanitizer ends children of a process with threads";
    }
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        fake::configure("");
        ContextOptions chosen{
            .threads = 2, .pinned_bytes = 4 * kMiB, .policy = "off", .quiet = true};
        static std::atomic<bool> called{false};
        chosen.log = [](std::string_view) {
            called = true;
            for (;;) pause();
        };
        auto* const context = new Context(chosen);  // lives until exit()
        const gpu::Stream stream(0);  // the threads of the fake's default streams are the parent's
        const std::vector<std::byte> from(16 * kMiB);
        const gpu::DeviceBuffer device(0, from.size());
        fake::configure("oom_at=1+");
        gpu::free_bytes(0);
        context->copy(device.data(), from.data(), from.size(), stream.handle());
        while (!called) std::this_thread::yield();
        std::exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(LogOfAContext, MayThrow) {
    ContextOptions chosen = options();
    chosen.log = [this](std::string_view line) {
        lines.add(line);
        throw std::runtime_error("no log");
    };
    const Context context(chosen);
    EXPECT_EQ(lines.all().size(), 1U);
}

TEST(LogThread, CallsForOneLineAtATimeInOrder) {
    Lines lines;
    transfer::LogThread log(
        {.call = [](void* data, const char* line) { static_cast<Lines*>(data)->add(line); },
         .data = &lines},
        {});
    std::vector<std::string> expected;
    for (int i = 0; i < 100; ++i) {
        expected.push_back(std::to_string(i));
        EXPECT_TRUE(log.add(expected.back()));
    }
    log.wait();
    EXPECT_EQ(lines.all(), expected);
    log.end();
    EXPECT_FALSE(log.add("late"));
    EXPECT_EQ(lines.all(), expected);
}

TEST(LogThread, IsLeftWhileItsFunctionIsCalled) {
    struct Held {
        Lines lines;
        std::mutex mutex;
    } held;
    transfer::LogThread log({.call =
                                 [](void* data, const char* line) {
                                     auto& own = *static_cast<Held*>(data);
                                     own.lines.add(line);
                                     const std::lock_guard lock(own.mutex);
                                 },
                             .data = &held},
                            {});
    std::unique_lock lock(held.mutex);
    EXPECT_TRUE(log.add("first"));
    EXPECT_TRUE(held.lines.await(1));
    EXPECT_TRUE(log.add("second"));
    log.leave();  // returns
    EXPECT_FALSE(log.add("third"));
    lock.unlock();
    log.end();
    EXPECT_EQ(held.lines.all(), std::vector<std::string>{"first"});
}

TEST(LogThread, TakesNothingWithoutAFunction) {
    transfer::LogThread log({}, {});
    EXPECT_FALSE(log.add("line"));
    log.wait();
}

}  // namespace
}  // namespace waywiser
