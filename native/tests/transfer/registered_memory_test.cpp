// Memory that the program owns and registers: copies of it are pinned copies, and what cannot be
// registered or unregistered stays as it was.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

using test::AsyncCall;

class RegisteredMemory : public test::OnFake {
protected:
    std::vector<std::byte> memory = std::vector<std::byte>(kMiB, std::byte{3});

    // Configures the fake and creates a context on GPU 0.
    static void configure(const char* text) {
        fake::configure(text);
        gpu::free_bytes(0);
    }
    static waywiser_memory_kind kind_of(const void* data, std::size_t bytes) {
        return describe(data, bytes).kind;
    }
    // Whether the call fails so, with one line that has the text.
    static ::testing::AssertionResult fails(waywiser_status status, waywiser_status expected,
                                            const std::string& text) {
        const std::string message = waywiser_last_error();
        if (status != expected) {
            return ::testing::AssertionFailure() << waywiser_status_name(status) << ": " << message;
        }
        if (test::one_line(message) && message.find(text) != std::string::npos) {
            return ::testing::AssertionSuccess();
        }
        return ::testing::AssertionFailure() << message;
    }
};

TEST_F(RegisteredMemory, IsPinnedUntilItIsUnregistered) {
    Context context({.threads = 2, .pinned_bytes = kMiB});
    gpu::DeviceBuffer device(0, kMiB);
    EXPECT_EQ(kind_of(memory.data(), kMiB), WAYWISER_PAGEABLE);
    {
        const PinnedRegistration registration{std::span{memory}.subspan(100, kMiB - 200)};
        EXPECT_EQ(registration.data(), memory.data() + 100);
        EXPECT_EQ(registration.bytes(), kMiB - 200);
        const waywiser_description found = describe(memory.data() + 200, kKiB);
        EXPECT_EQ(found.kind, WAYWISER_PINNED);
        EXPECT_EQ(found.allocation, memory.data() + 100);
        EXPECT_EQ(found.allocation_bytes, kMiB - 200);
        EXPECT_EQ(found.registrations, 1U);
        context.copy(device.data(), memory.data() + 100, kKiB);
        std::vector<std::byte> back(kKiB);
        EXPECT_FALSE(context.copy_and_wait(back.data(), device.data(), kKiB));
        EXPECT_EQ(back, std::vector<std::byte>(kKiB, std::byte{3}));
    }
    EXPECT_EQ(kind_of(memory.data(), kMiB), WAYWISER_PAGEABLE);
    EXPECT_EQ(fake::live().registrations, 0U);
}

TEST_F(RegisteredMemory, IsCopiedWithoutStaging) {
    constexpr std::size_t kBytes = 16 * kMiB;
    Context context({.threads = 2, .pinned_bytes = 4 * kMiB});
    gpu::DeviceBuffer device(0, kBytes);
    memory.resize(kBytes, std::byte{4});
    EXPECT_EQ(context.copy_method(device.data(), memory.data(), kBytes), WAYWISER_METHOD_CHUNKED);
    const PinnedRegistration registration(memory.data(), kBytes);
    EXPECT_EQ(context.copy_method(device.data(), memory.data(), kBytes), WAYWISER_METHOD_PLAIN);
    context.copy(device.data(), memory.data(), kBytes);
    EXPECT_EQ(context.usage().pinned_bytes, 0U);
}

TEST_F(RegisteredMemory, OverlapsNoOther) {
    ASSERT_EQ(waywiser_register(memory.data() + kKiB, kKiB), WAYWISER_OK);
    for (const std::size_t at : {std::size_t{1}, kKiB, kKiB + 1, 2 * kKiB - 1}) {
        EXPECT_TRUE(fails(waywiser_register(memory.data() + at, kKiB), WAYWISER_INVALID,
                          "overlap the 1024 bytes at 0x"))
            << at;
    }
    EXPECT_EQ(waywiser_register(memory.data(), kKiB), WAYWISER_OK) << "it ends where one begins";
    EXPECT_EQ(waywiser_register(memory.data() + 2 * kKiB, kKiB), WAYWISER_OK);
    for (const std::size_t at : {std::size_t{0}, kKiB, 2 * kKiB}) {
        EXPECT_EQ(waywiser_unregister(memory.data() + at), WAYWISER_OK);
    }
}

TEST_F(RegisteredMemory, IsNoneThatIsPinnedOtherwise) {
    const PinnedBuffer pinned(kMiB);
    const gpu::DeviceBuffer device(0, kKiB);
    const gpu::ManagedBuffer managed(kKiB, 0);
    EXPECT_TRUE(fails(waywiser_register(pinned.data() + 5, 10), WAYWISER_INVALID, "are pinned"));
    EXPECT_TRUE(fails(waywiser_register(device.data(), 10), WAYWISER_INVALID, "memory of a GPU"));
    EXPECT_TRUE(fails(waywiser_register(managed.data(), 10), WAYWISER_INVALID, "managed memory"));
    gpu::Registration other(memory.data() + kMiB / 2, kKiB, 0);
    EXPECT_TRUE(fails(waywiser_register(memory.data(), kMiB), WAYWISER_INVALID, " already"));
    EXPECT_TRUE(fails(waywiser_unregister(memory.data() + kMiB / 2), WAYWISER_INVALID,
                      "no registration begins"));
}

TEST_F(RegisteredMemory, IsAnyMappedMemory) {
    EXPECT_TRUE(fails(waywiser_register(nullptr, 1), WAYWISER_INVALID, "null"));
    EXPECT_TRUE(fails(waywiser_register(memory.data(), 0), WAYWISER_INVALID, "0 bytes"));
    EXPECT_TRUE(
        fails(waywiser_register(memory.data(), SIZE_MAX), WAYWISER_INVALID, "address space"));
    void* const pages =
        mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(munmap(static_cast<std::byte*>(pages) + kMiB / 2, kMiB / 2), 0);
    EXPECT_TRUE(fails(waywiser_register(pages, kMiB), WAYWISER_INVALID, "not mapped"));
    EXPECT_EQ(waywiser_register(pages, kMiB / 2), WAYWISER_OK) << waywiser_last_error();
    EXPECT_EQ(waywiser_unregister(pages), WAYWISER_OK);
    munmap(pages, kMiB / 2);
}

TEST_F(RegisteredMemory, IsUnregisteredOnceByItsAddress) {
    EXPECT_TRUE(fails(waywiser_unregister(nullptr), WAYWISER_INVALID, "null"));
    EXPECT_TRUE(fails(waywiser_unregister(memory.data()), WAYWISER_INVALID, "no registration"));
    ASSERT_EQ(waywiser_register(memory.data(), kMiB), WAYWISER_OK);
    EXPECT_TRUE(fails(waywiser_unregister(memory.data() + 1), WAYWISER_INVALID,
                      "inside of the 1048576 bytes at 0x"));
    EXPECT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK);
    EXPECT_TRUE(fails(waywiser_unregister(memory.data()), WAYWISER_INVALID, "no registration"));
    EXPECT_TRUE(fails(waywiser_unregister(memory.data()), WAYWISER_INVALID, "0 are known"));
}

TEST_F(RegisteredMemory, NeedsAGpu) {
    fake::configure("unavailable=no driver here");
    EXPECT_TRUE(
        fails(waywiser_register(memory.data(), kMiB), WAYWISER_UNSUPPORTED, "no driver here"));
    EXPECT_THROW(PinnedRegistration(memory.data(), kMiB), TransferError);
}

TEST_F(RegisteredMemory, IsNoMoreThanCanBePinned) {
    configure("oom_at=1+");
    EXPECT_TRUE(fails(waywiser_register(memory.data(), kMiB), WAYWISER_OUT_OF_MEMORY, "ulimit -l"));
    EXPECT_NE(std::string(waywiser_last_error()).find("1048576 bytes"), std::string::npos);
    configure("");
    EXPECT_EQ(waywiser_register(memory.data(), kMiB), WAYWISER_OK) << "nothing of it is left";
    EXPECT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK);
    // Pages that do not exist would have to be made.
    constexpr std::size_t kHuge = std::size_t{1} << 44;
    void* const pages = mmap(nullptr, kHuge, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) GTEST_SKIP() << "the address space is limited";
    EXPECT_TRUE(fails(waywiser_register(pages, kHuge), WAYWISER_OUT_OF_MEMORY, "no pages yet"));
    munmap(pages, kHuge);
}

TEST_F(RegisteredMemory, IsWaitedForByUnregister) {
    const gpu::Stream stream(0);
    ASSERT_EQ(waywiser_register(memory.data(), kMiB), WAYWISER_OK);
    gpu::Gate gate(0);
    gate.close(stream);
    AsyncCall unregister([&] { ASSERT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK); });
    EXPECT_TRUE(unregister.blocks());
    EXPECT_TRUE(fails(waywiser_unregister(memory.data()), WAYWISER_INVALID, "another thread"));
    EXPECT_TRUE(fails(waywiser_register(memory.data(), 1), WAYWISER_INVALID, "overlap"));
    gate.open();
    EXPECT_TRUE(unregister.returns());
    unregister.get();
    EXPECT_EQ(fake::live().registrations, 0U);
}

TEST_F(RegisteredMemory, StaysWhileItIsUnknownWhetherAGpuUsesIt) {
    ASSERT_EQ(waywiser_register(memory.data(), kMiB), WAYWISER_OK);
    configure("fail=sync@1+");
    EXPECT_TRUE(fails(waywiser_unregister(memory.data()), WAYWISER_GPU, "stay registered"));
    EXPECT_EQ(kind_of(memory.data(), kMiB), WAYWISER_PINNED);
    configure("");
    EXPECT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK);
}

TEST_F(RegisteredMemory, IsUnregisteredFromALostContext) {
    ASSERT_EQ(waywiser_register(memory.data(), kMiB), WAYWISER_OK);
    configure("sticky=sync@1+");
    EXPECT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK);
}

TEST_F(RegisteredMemory, BelongsToTheParentOfAForkedChild) {
    ASSERT_EQ(waywiser_register(memory.data(), kMiB), WAYWISER_OK);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const bool nothing =
            waywiser_unregister(memory.data()) == WAYWISER_OK && fake::live().registrations == 1;
        const bool none = waywiser_register(memory.data(), 1) == WAYWISER_UNSUPPORTED;
        fake::configure("");  // a process of its own, with GPUs
        const bool own = waywiser_register(memory.data() + kMiB - 1, 1) != WAYWISER_UNSUPPORTED;
        _exit(nothing && none && own ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK);
}

TEST_F(RegisteredMemory, IsRegisteredBySeveralThreadsAtOnce) {
    constexpr std::size_t kThreads = 4;
    constexpr int kRounds = 50;
    std::atomic<int> made{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < kRounds; ++round) {
                std::byte* const own = memory.data() + kKiB + i * kKiB;
                EXPECT_EQ(waywiser_register(own, kKiB), WAYWISER_OK) << waywiser_last_error();
                EXPECT_EQ(waywiser_unregister(own), WAYWISER_OK);
                // Only one thread at a time gets what all want.
                if (waywiser_register(memory.data(), kKiB) != WAYWISER_OK) continue;
                EXPECT_EQ(made.fetch_add(1), 0);
                made.fetch_sub(1);
                EXPECT_EQ(waywiser_unregister(memory.data()), WAYWISER_OK);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fake::live().registrations, 0U);
}

TEST_F(RegisteredMemory, IsUnregisteredByTheLastOwnerOfItsRegistration) {
    PinnedRegistration first(memory.data(), kKiB);
    PinnedRegistration second(std::move(first));
    EXPECT_EQ(second.data(), memory.data());
    EXPECT_EQ(fake::live().registrations, 1U);
    PinnedRegistration other(memory.data() + kKiB, kKiB);
    other = std::move(second);
    EXPECT_EQ(kind_of(memory.data() + kKiB, kKiB), WAYWISER_PAGEABLE);
    PinnedRegistration& same = other;
    other = std::move(same);
    EXPECT_EQ(kind_of(memory.data(), kKiB), WAYWISER_PINNED);
    configure("fail=sync@1+");
    EXPECT_THROW(other.release(), TransferError);
    EXPECT_EQ(other.bytes(), kKiB);
    configure("");
    other.release();
    other.release();
    EXPECT_EQ(other.data(), nullptr);
    EXPECT_EQ(fake::live().registrations, 0U);
}

}  // namespace
}  // namespace waywiser
