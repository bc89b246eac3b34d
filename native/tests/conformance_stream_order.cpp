// What CUDA orders before a call, over any implementation of the seam: while the legacy default
// stream is held back, no copy in a stream that follows it may begin. Every call, in every kind of
// stream, with every kind of context and memory.
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "conformance_seam.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

constexpr std::byte kOldByte{5};   // in the GPU's memory at first
constexpr std::byte kNewByte{7};   // what the legacy stream writes there
constexpr std::byte kHostByte{9};  // in host memory and files
constexpr std::size_t kOrderBlock = 4 * kKiB;
// Longer than a copy that does not wait takes to begin.
constexpr auto kHeldBack = std::chrono::milliseconds(4);

bool all_are(const std::byte* bytes, std::size_t count, std::byte value) {
    return bytes[0] == value && bytes[count / 2] == value && bytes[count - 1] == value;
}

class StreamOrder : public Seam {
protected:
    static constexpr std::size_t kMost = 9 * kMiB;

    void SetUp() override {
        Seam::SetUp();
        if (IsSkipped()) return;
        device_.emplace_back(0, kMost);
        pinned_.emplace_back(kMost, gpu::HostUse::portable, 0);
        pageable_.resize(kMost);
        std::string path = ::testing::TempDir() + "waywiser-order-XXXXXX";
        file_ = mkstemp(path.data());
        unlink(path.c_str());
    }
    void TearDown() override {
        if (file_ >= 0) close(file_);
    }

    // A call of the library between GPU memory and the host, in a stream.
    struct Call {
        const char* name;
        bool to_gpu;
        bool of_file;
        std::function<void(Context&, void* stream, std::byte* host, std::size_t bytes)> make;
    };

    [[nodiscard]] std::byte* device() { return device_.front().data(); }

    std::vector<Call> calls() {
        const auto pieces = [](std::byte* base, std::size_t bytes) {
            return std::array<std::byte*, 2>{base, base + bytes / 2};
        };
        const auto batch = [=](Context& context, void* stream, std::byte* to, std::byte* from,
                               std::size_t bytes) {
            const auto out = pieces(to, bytes);
            const auto in = pieces(from, bytes);
            const std::array<void*, 2> targets{out[0], out[1]};
            const std::array<const void*, 2> sources{in[0], in[1]};
            const std::array<std::size_t, 2> sizes{bytes / 2, bytes - bytes / 2};
            context.copy_batch(targets, sources, sizes, stream);
        };
        const auto blocks = [](Context& context, void* stream, std::byte* to, std::byte* from,
                               std::size_t bytes) {
            const std::size_t count = bytes / kOrderBlock;
            std::vector<std::int64_t> index(count);
            std::iota(index.begin(), index.end(), std::int64_t{0});
            context.copy_blocks({to, kOrderBlock, count}, {from, kOrderBlock, count}, kOrderBlock,
                                index, index, stream);
        };
        return {
            {"copy D2H", false, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 c.copy(host, device(), n, s);
             }},
            {"copy H2D", true, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 c.copy(device(), host, n, s);
             }},
            {"copy_and_wait D2H", false, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 EXPECT_FALSE(c.copy_and_wait(host, device(), n, s));
             }},
            {"copy_and_wait H2D", true, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 EXPECT_FALSE(c.copy_and_wait(device(), host, n, s));
             }},
            {"copy_async D2H", false, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 EXPECT_EQ(c.copy_async(host, device(), n, s).result(), n);
             }},
            {"copy_async H2D", true, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 EXPECT_EQ(c.copy_async(device(), host, n, s).result(), n);
             }},
            {"copy_batch D2H", false, false,
             [=, this](Context& c, void* s, std::byte* host, std::size_t n) {
                 batch(c, s, host, device(), n);
             }},
            {"copy_batch H2D", true, false,
             [=, this](Context& c, void* s, std::byte* host, std::size_t n) {
                 batch(c, s, device(), host, n);
             }},
            {"copy_blocks D2H", false, false,
             [=, this](Context& c, void* s, std::byte* host, std::size_t n) {
                 blocks(c, s, host, device(), n);
             }},
            {"copy_blocks H2D", true, false,
             [=, this](Context& c, void* s, std::byte* host, std::size_t n) {
                 blocks(c, s, device(), host, n);
             }},
            {"snapshot", false, false,
             [this](Context& c, void* s, std::byte* host, std::size_t n) {
                 void* const to = host;
                 const void* const from = device();
                 EXPECT_EQ(c.snapshot({&to, 1}, {&from, 1}, {&n, 1}, s).result(), n);
             }},
            {"write", false, true,
             [this](Context& c, void* s, std::byte*, std::size_t n) {
                 EXPECT_EQ(c.write(file_, 0, device(), n, s), n);
             }},
            {"read", true, true,
             [this](Context& c, void* s, std::byte*, std::size_t n) {
                 EXPECT_EQ(c.read(file_, 0, device(), n, s), n);
             }},
        };
    }

    // Makes the call while the legacy stream is held back before it writes the GPU's memory.
    // Returns whether the call came after that.
    bool follows(const Call& call, Context& context, void* stream, std::byte* host,
                 std::size_t bytes) {
        const gpu::Stream legacy(0, nullptr);
        const gpu::Stream own(0);
        gpu::fill_async(device(), static_cast<unsigned char>(kOldByte), bytes, own);
        own.synchronize();
        if (call.of_file) {
            test::fill_bytes(host, static_cast<int>(kHostByte), bytes);
            EXPECT_EQ(pwrite(file_, host, bytes, 0), static_cast<ssize_t>(bytes));
        } else {
            test::fill_bytes(host, static_cast<int>(kHostByte), bytes);
        }
        gpu::Gate gate(0);
        gate.close(legacy);
        gpu::fill_async(device(), static_cast<unsigned char>(kNewByte), bytes, legacy);
        std::jthread opener([&gate] {
            std::this_thread::sleep_for(kHeldBack);
            gate.open();
        });
        call.make(context, stream, host, bytes);
        opener.join();
        gpu::Stream(0, stream).synchronize();
        legacy.synchronize();
        if (!call.to_gpu) {
            if (call.of_file) {
                EXPECT_EQ(pread(file_, host, bytes, 0), static_cast<ssize_t>(bytes));
            }
            return all_are(host, bytes, kNewByte);
        }
        gpu::copy_async(pinned_.front().data(), device(), bytes, own);
        own.synchronize();
        return all_are(pinned_.front().data(), bytes, kHostByte);
    }

    // With every call, size and kind of host memory.
    void expect_order(const ContextOptions& options, const char* kind) {
        Context context(options);
        const gpu::Stream blocking(0, gpu::StreamUse::blocking);
        struct Named {
            const char* name;
            void* stream;
        };
        const std::array streams{Named{"blocking", blocking.handle()},
                                 Named{"legacy", WAYWISER_LEGACY_STREAM},
                                 Named{"per-thread", WAYWISER_PER_THREAD_STREAM}};
        for (const Call& call : calls()) {
            for (const bool pinned : {false, true}) {
                if (call.of_file && pinned) continue;
                std::byte* const host = pinned ? pinned_.front().data() : pageable_.data();
                for (const std::size_t bytes : {kOrderBlock, 2 * kMiB, kMost}) {
                    for (const Named& one : streams) {
                        EXPECT_TRUE(follows(call, context, one.stream, host, bytes))
                            << call.name << ", " << kind << " context, " << one.name << " stream, "
                            << (pinned ? "pinned, " : "pageable, ") << bytes << " bytes";
                    }
                }
            }
        }
    }

private:
    std::vector<gpu::DeviceBuffer> device_;
    std::vector<gpu::HostBuffer> pinned_;
    std::vector<std::byte> pageable_;
    int file_ = -1;
};

TEST_F(StreamOrder, HoldsInAPlainContext) {
    expect_order({.threads = 2, .pinned_bytes = 16 * kMiB, .policy = "off"}, "plain");
}

TEST_F(StreamOrder, HoldsForAwakeThreads) {
    expect_order({.threads = 4, .pinned_bytes = 64 * kMiB, .policy = "off", .spin_seconds = 0.5},
                 "awake");
}

TEST_F(StreamOrder, HoldsInAPoliteContext) {
    expect_order(
        {.threads = 2, .pinned_bytes = 16 * kMiB, .max_queued_bytes = kMiB, .policy = "off"},
        "polite");
}

TEST_F(StreamOrder, HoldsForRelays) {
    if (gpu::device_count() < 2) GTEST_SKIP() << "relays need two GPUs";
    expect_order({.threads = 2, .pinned_bytes = 16 * kMiB, .relays = {1}, .policy = "off"},
                 "relay");
}

// A stream that does not follow the legacy stream need not wait for it.
TEST_F(StreamOrder, DoesNotHoldBackANonBlockingStream) {
    Context context({.threads = 2, .pinned_bytes = 16 * kMiB, .policy = "off"});
    const gpu::Stream own(0);
    gpu::Gate gate(0);
    gate.close(gpu::Stream(0, nullptr));
    std::vector<std::byte> host(kMost, kHostByte);
    context.copy(device(), host.data(), kMost, own.handle());  // else it would wait for ever
    own.synchronize();
    gate.open();
}

}  // namespace
}  // namespace waywiser
