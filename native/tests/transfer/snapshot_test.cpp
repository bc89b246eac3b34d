// Snapshots over the fake GPU: the sources may change when their reads are ordered, never before.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "transfer/engine.hpp"
#include "transfer/job.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

using test::sequence;

// Two sources on a GPU, and host memory for both.
class Snapshots : public test::OnFake {
protected:
    static constexpr std::size_t kFirst = 5 * kMiB + 24;
    static constexpr std::size_t kSecond = 3 * kMiB + 8;
    static constexpr std::size_t kBytes = kFirst + kSecond;

    Snapshots() {
        set(before_);
        test::copy_bytes(queued_.data(), after_.data(), kBytes);
    }

    void set(const std::vector<std::byte>& content) const {
        test::copy_bytes(first_.data(), content.data(), kFirst);
        test::copy_bytes(second_.data(), content.data() + kFirst, kSecond);
    }
    TransferHandle start(Context& context, std::byte* to) {
        void* const into[] = {to, to + kFirst};
        const void* const from[] = {first_.data(), second_.data()};
        const std::size_t sizes[] = {kFirst, kSecond};
        return context.snapshot(into, from, sizes, stream_.handle());
    }
    // What a training step does to the sources.
    void change() const {
        gpu::copy_async(first_.data(), queued_.data(), kFirst, stream_);
        gpu::copy_async(second_.data(), queued_.data() + kFirst, kSecond, stream_);
    }
    void expect_before(const std::byte* host) const {
        EXPECT_TRUE(test::same_bytes(host, before_.data(), kBytes));
    }
    void expect_changed() const {
        stream_.synchronize();
        EXPECT_TRUE(test::same_bytes(first_.data(), after_.data(), kFirst));
        EXPECT_TRUE(test::same_bytes(second_.data(), after_.data() + kFirst, kSecond));
    }
    // A ring of two chunks, far smaller than the sources.
    static ContextOptions two_chunks() { return {.threads = 2, .pinned_bytes = kMiB}; }

    const std::vector<std::byte> before_ = sequence(kBytes, 1);
    const std::vector<std::byte> after_ = sequence(kBytes, 2);
    gpu::Stream stream_{0};
    gpu::DeviceBuffer first_{0, kFirst};
    gpu::DeviceBuffer second_{0, kSecond};
    std::vector<std::byte> pageable_ = std::vector<std::byte>(kBytes);
    gpu::HostBuffer pinned_{kBytes, gpu::HostUse::portable, 0};
    // The bytes of `after_`: a copy of pageable memory would wait for the stream.
    gpu::HostBuffer queued_{kBytes, gpu::HostUse::portable, 0};
};

TEST_F(Snapshots, HaveTheBytesBeforeAChangeThatIsQueuedAtOnce) {
    for (const char* speed : {"", "d2h=0.5", "h2d=50;d2h=0.2", "delay=0.05@/2"}) {
        fake::configure(speed);
        Context context(two_chunks());
        for (std::byte* to : {pageable_.data(), pinned_.data()}) {
            set(before_);
            test::fill_bytes(to, 0, kBytes);
            const TransferHandle handle = start(context, to);
            handle.wait_source_read(stream_.handle());
            EXPECT_FALSE(handle.source_read_pending());
            change();
            EXPECT_EQ(handle.result(), kBytes);
            expect_before(to);
            expect_changed();
        }
    }
}

// The reads are not submitted while the stream is held back: to wait for them on the GPU would be
// to wait for nothing.
TEST_F(Snapshots, BlockTheHostWhileAReadIsNotSubmitted) {
    Context context(two_chunks());
    gpu::Gate gate(0);
    gate.close(stream_);
    const TransferHandle handle = start(context, pageable_.data());
    EXPECT_TRUE(handle.source_read_pending());
    try {
        handle.wait_source_read(stream_.handle(), 0.01);
        ADD_FAILURE() << "the stream is behind a gate";
    } catch (const TransferError& error) {
        EXPECT_EQ(error.status(), WAYWISER_TIMEOUT) << error.what();
    }
    test::AsyncCall call([&] {
        handle.wait_source_read(stream_.handle());
        EXPECT_FALSE(handle.source_read_pending());
        change();
    });
    EXPECT_TRUE(call.blocks());
    gate.open();
    ASSERT_TRUE(call.returns());
    call.get();
    EXPECT_EQ(handle.result(), kBytes);
    expect_before(pageable_.data());
    expect_changed();
}

TEST_F(Snapshots, IntoPinnedMemoryNeverBlockTheHost) {
    Context context(two_chunks());
    const gpu::Stream other(0);
    gpu::Gate gate(0);
    gate.close(stream_);
    const TransferHandle handle = start(context, pinned_.data());
    EXPECT_FALSE(handle.source_read_pending());
    handle.wait_source_read(stream_.handle());
    change();
    handle.wait(other.handle());  // orders on the GPU alone
    EXPECT_FALSE(handle.done());
    const gpu::DeviceBuffer seen(0, kBytes);
    gpu::copy_async(seen.data(), pinned_.data(), kBytes, other);
    gate.open();
    other.synchronize();
    expect_before(seen.data());
    EXPECT_EQ(handle.result(), kBytes);
    expect_changed();
}

// A copy that hangs holds back neither the stream nor other snapshots and copies.
TEST_F(Snapshots, LetTheStreamGoOn) {
    Context context(two_chunks());
    for (std::byte* to : {pageable_.data(), pinned_.data()}) {
        fake::configure("hang=copy@1");
        const TransferHandle handle = start(context, to);
        if (to == pageable_.data()) {
            while (fake::counts().copies == 0) std::this_thread::yield();
        }
        const gpu::DeviceBuffer elsewhere(0, kMiB);
        gpu::fill_async(elsewhere.data(), 7, kMiB, stream_);
        stream_.synchronize();
        EXPECT_EQ(elsewhere.data()[kMiB - 1], std::byte{7});
        EXPECT_FALSE(handle.done());
        fake::configure("");
        EXPECT_EQ(handle.result(), kBytes);
        expect_before(to);
    }
}

// What holds back the stream of one snapshot must not hold back that of another one.
TEST_F(Snapshots, OfTwoStreamsAreIndependent) {
    Context context(two_chunks());
    const gpu::Stream other(0);
    const gpu::DeviceBuffer source(0, kMiB);
    const gpu::HostBuffer target(kMiB, gpu::HostUse::portable, 0);
    gpu::fill_async(source.data(), 5, kMiB, other);
    gpu::Gate gate(0);
    gate.close(stream_);
    const TransferHandle held = start(context, pinned_.data());
    void* const to[] = {target.data()};
    const void* const from[] = {source.data()};
    const std::size_t sizes[] = {kMiB};
    const TransferHandle handle = context.snapshot(to, from, sizes, other.handle());
    EXPECT_EQ(handle.result(test::kHangSeconds), kMiB);
    EXPECT_EQ(target.data()[kMiB - 1], std::byte{5});
    EXPECT_FALSE(held.done());
    gate.open();
    EXPECT_EQ(held.result(), kBytes);
}

TEST_F(Snapshots, ReportACopyThatFails) {
    for (std::byte* to : {pageable_.data(), pinned_.data()}) {
        Context context(two_chunks());
        fake::configure("fail=copy@2");
        try {
            const TransferHandle handle = start(context, to);
            EXPECT_EQ(to, pageable_.data());
            EXPECT_THROW(handle.wait_source_read(stream_.handle()), TransferError);
            EXPECT_FALSE(handle.source_read_pending());
            handle.result();
            ADD_FAILURE();
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_GPU) << error.what();
        }
        fake::configure("");
        stream_.synchronize();
    }
}

TEST_F(Snapshots, WorkIfNoMemoryCanBePinned) {
    fake::configure("oom_at=1+");
    Context context({.threads = 2, .pinned_bytes = kMiB, .quiet = true});
    const TransferHandle handle = start(context, pageable_.data());
    handle.wait_source_read(stream_.handle());
    change();
    EXPECT_EQ(handle.result(), kBytes);
    expect_before(pageable_.data());
    expect_changed();
}

TEST_F(Snapshots, RejectOtherMemory) {
    Context context(two_chunks());
    const gpu::DeviceBuffer on_other(1, kMiB);
    const auto says = [&](const char* said, void* to, const void* from) {
        void* const into[] = {pageable_.data(), to};
        const void* const sources[] = {first_.data(), from};
        const std::size_t sizes[] = {64, 64};
        try {
            static_cast<void>(context.snapshot(into, sources, sizes, stream_.handle()));
            ADD_FAILURE() << said;
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_INVALID);
            EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
        }
    };
    says("not memory of a GPU", pageable_.data() + 64, after_.data());
    says("not host memory", second_.data(), first_.data() + 64);
    says("on several GPUs", pageable_.data() + 64, on_other.data());
    const gpu::Graph graph(stream_, [&] {
        try {
            static_cast<void>(start(context, pageable_.data()));
            ADD_FAILURE() << "the stream is captured";
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_UNSUPPORTED);
        }
    });
    EXPECT_EQ(context.snapshot({}, {}, {}, stream_.handle()).result(), 0U);
}

TEST_F(Snapshots, OfOneStreamFollowEachOther) {
    Context context(two_chunks());
    std::vector<std::byte> second(kBytes);
    const TransferHandle one = start(context, pageable_.data());
    one.wait_source_read(stream_.handle());
    change();
    const TransferHandle two = start(context, second.data());
    two.wait_source_read(stream_.handle());
    gpu::fill_async(first_.data(), 0, kFirst, stream_);
    gpu::fill_async(second_.data(), 0, kSecond, stream_);
    EXPECT_EQ(two.result(), kBytes);
    EXPECT_EQ(one.result(), kBytes);
    expect_before(pageable_.data());
    EXPECT_TRUE(test::same_bytes(second.data(), after_.data(), kBytes));
    stream_.synchronize();
}

TEST_F(Snapshots, ACopyIntoPinnedMemoryIsOrderedOnTheGpuAlone) {
    Context context;
    const gpu::Stream other(0);
    for (const std::size_t bytes : {kSecond, kFirst + kSecond}) {
        const gpu::DeviceBuffer source(0, bytes);
        test::copy_bytes(source.data(), before_.data(), bytes);
        test::fill_bytes(pinned_.data(), 0, bytes);
        gpu::Gate gate(0);
        gate.close(stream_);
        const TransferHandle handle =
            context.copy_async(pinned_.data(), source.data(), bytes, stream_.handle());
        EXPECT_FALSE(handle.source_read_pending());
        handle.wait(other.handle());
        const gpu::DeviceBuffer seen(0, bytes);
        gpu::copy_async(seen.data(), pinned_.data(), bytes, other);
        EXPECT_FALSE(handle.done());
        gate.open();
        other.synchronize();
        EXPECT_TRUE(test::same_bytes(seen.data(), before_.data(), bytes));
        EXPECT_EQ(handle.result(), bytes);
    }
}

// A host source is read until the transfer has ended, and not after that.
TEST_F(Snapshots, AHostSourceOfACopyMayBeWrittenWhenTheTransferHasEnded) {
    Context context(two_chunks());
    for (const bool pinned : {false, true}) {
        std::byte* const source = pinned ? pinned_.data() : pageable_.data();
        test::copy_bytes(source, before_.data(), kFirst);
        gpu::Gate gate(0);
        gate.close(stream_);
        const TransferHandle handle =
            context.copy_async(first_.data(), source, kFirst, stream_.handle());
        EXPECT_FALSE(handle.done());
        test::copy_bytes(source, after_.data(), kFirst);  // too early: this is copied
        gate.open();
        EXPECT_EQ(handle.result(), kFirst);
        test::fill_bytes(source, 0, kFirst);
        EXPECT_TRUE(test::same_bytes(first_.data(), after_.data(), kFirst));
    }
}

}  // namespace
}  // namespace waywiser

namespace waywiser::transfer {
namespace {

// Copies device memory to the host by slots, behind a gate if there is one, and drains them when it
// may.
class StalledDrain final : public Job {
public:
    StalledDrain(std::byte* to, const std::byte* from, std::size_t bytes, std::size_t chunk,
                 gpu::Gate* gate = nullptr)
        : Job(bytes, {.slot = chunk, .piece = chunk, .slots = 8}, CpuWork::drains),
          to_(to),
          from_(from),
          gate_(gate) {
        routes_.push_back({.device = 0, .direction = Direction::out, .through_host = true});
    }
    void submit(std::span<const Submission> made) override {
        for (const Submission& one : made) {
            if (gate_ != nullptr) gate_->close(*one.stream);
            gpu::copy_async(one.slot, from_ + one.part.at, one.part.bytes, *one.stream);
        }
    }
    void drain(const Part& part, const std::byte* slot) override {
        stalled_ = true;
        stalled_.notify_all();
        may_.wait(false);
        test::copy_bytes(to_ + part.at, slot, part.bytes);
    }
    void wait_for_stall() const { stalled_.wait(false); }
    void go_on() {
        may_ = true;
        may_.notify_all();
    }

private:
    std::byte* to_;
    const std::byte* from_;
    gpu::Gate* gate_;
    std::atomic<bool> may_{false};
    std::atomic<bool> stalled_{false};
};

class StalledDrains : public test::OnFake {
protected:
    static constexpr std::size_t kChunk = 64 * kKiB;  // the smallest slot
    static constexpr std::size_t kBytes = 16 * kChunk;

    const std::vector<std::byte> content_ = sequence_of(kBytes);
    gpu::DeviceBuffer device_{0, kBytes};
    gpu::Stream stream_{0};
    std::vector<std::byte> host_ = std::vector<std::byte>(kBytes);

    static std::vector<std::byte> sequence_of(std::size_t bytes) {
        std::vector<std::byte> data(bytes);
        for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 + i / 999);
        return data;
    }
    void change() const { gpu::fill_async(device_.data(), 0, kBytes, stream_); }
    void expect_content() {
        stream_.synchronize();
        EXPECT_TRUE(test::same_bytes(host_.data(), content_.data(), kBytes));
        EXPECT_EQ(device_.data()[kBytes - 1], std::byte{0});
    }
};

// With two slots, which stay full, the last reads cannot be submitted.
TEST_F(StalledDrains, BlockAChangeIfTheRingIsFull) {
    test::copy_bytes(device_.data(), content_.data(), kBytes);
    const auto engine_owner =
        Engine::make(test::this_machine(), {.threads = 2, .pinned_bytes = 2 * kChunk});
    Engine& engine = *engine_owner;
    const auto job = std::make_shared<StalledDrain>(host_.data(), device_.data(), kBytes, kChunk);
    engine.start(job);
    job->wait_for_stall();
    EXPECT_TRUE(job->reads_pending());
    EXPECT_FALSE(job->order_reads(stream_, Deadline(0.05)));
    test::AsyncCall call([&] {
        EXPECT_TRUE(job->order_reads(stream_));
        change();
    });
    EXPECT_TRUE(call.blocks());
    job->go_on();
    ASSERT_TRUE(call.returns());
    call.get();
    EXPECT_TRUE(job->wait());
    EXPECT_FALSE(job->reads_pending());
    expect_content();
}

// With a slot for each chunk all reads are submitted, however long the drains take.
TEST_F(StalledDrains, DoNotBlockAChangeIfAllReadsAreSubmitted) {
    test::copy_bytes(device_.data(), content_.data(), kBytes);
    gpu::Gate gate(0);  // else a thread may drain the first chunk before it submits the second
    const Machine machine = test::this_machine();
    // Each node has a part of the memory.
    const auto engine_owner =
        Engine::make(machine, {.threads = 3, .pinned_bytes = 4 * kBytes * machine.numa.size()});
    Engine& engine = *engine_owner;
    const auto job =
        std::make_shared<StalledDrain>(host_.data(), device_.data(), kBytes, kBytes / 2, &gate);
    engine.start(job);
    EXPECT_TRUE(job->order_reads(stream_, Deadline(test::kHangSeconds)));
    gate.open();
    job->wait_for_stall();
    EXPECT_FALSE(job->reads_pending());
    EXPECT_FALSE(job->done());
    change();
    EXPECT_FALSE(job->order(stream_, Deadline(0.01))) << "the destination is not filled";
    job->go_on();
    EXPECT_TRUE(job->wait());
    expect_content();
}

}  // namespace
}  // namespace waywiser::transfer
