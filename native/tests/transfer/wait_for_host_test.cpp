// Calls that return when the host's side is free, through the public C++ interface over the fake
// GPU.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

constexpr std::size_t kBytes = 12 * kMiB;
constexpr double kShort = 0.01;  // seconds in which nothing comes through a closed gate
constexpr double kLong = 600;

// One range, copied by one of the calls.
struct Form {
    const char* name;
    const char* fault;  // what makes it fail
    std::function<TransferHandle(Context&, std::byte*, const std::byte*, std::size_t, StreamRef,
                                 double, bool*)>
        call;
    TransferHandle copy(Context& context, std::byte* to, const std::byte* from, std::size_t bytes,
                        StreamRef stream, double timeout, bool* ended = nullptr) const {
        return call(context, to, from, bytes, stream, timeout, ended);
    }
};

TransferHandle copy_halves(Context& context, std::byte* to, const std::byte* from,
                           std::size_t bytes, StreamRef stream, double timeout, bool* ended) {
    const std::size_t half = bytes / 2;
    void* const into[] = {to + half, to};
    const void* const out[] = {from + half, from};
    const std::size_t sizes[] = {bytes - half, half};
    return context.copy_batch_and_wait(into, out, sizes, stream, timeout, ended);
}

TransferHandle copy_as_blocks(Context& context, std::byte* to, const std::byte* from,
                              std::size_t bytes, StreamRef stream, double timeout, bool* ended) {
    constexpr std::size_t kBlock = 4 * kKiB;
    std::vector<std::int64_t> index(bytes / kBlock);
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<std::int64_t>(i);
    std::ranges::reverse(index);
    return context.copy_blocks_and_wait({to, kBlock, index.size()}, {from, kBlock, index.size()},
                                        kBlock, index, index, stream, timeout, ended);
}

const std::vector<Form>& forms() {
    static const std::vector<Form> all = {
        {"copy", "fail=copy@1+",
         [](Context& context, std::byte* to, const std::byte* from, std::size_t bytes,
            StreamRef stream, double timeout, bool* ended) {
             return context.copy_and_wait(to, from, bytes, stream, timeout, ended);
         }},
        {"copy_batch", "fail=copy@1+", copy_halves},
        {"copy_blocks", "fail=launch@1+", copy_as_blocks}};
    return all;
}

class WaitForHost : public test::OnFake {
protected:
    WaitForHost() { fake::set_current_device(0); }

    Context context{{.threads = 2, .pinned_bytes = 8 * kMiB}};
    gpu::Stream stream{0};
    gpu::Gate gate{0};
    gpu::DeviceBuffer device{0, kBytes};
    gpu::HostBuffer pinned{kBytes, gpu::HostUse::portable, 0};
    std::vector<std::byte> pageable = std::vector<std::byte>(kBytes);

    std::vector<std::byte*> hosts() { return {pinned.data(), pageable.data()}; }
    template <class Call>
    static waywiser_status status_of(const Call& call) {
        try {
            call();
        } catch (const TransferError& error) {
            EXPECT_STRNE(error.what(), "");
            return error.status();
        }
        return WAYWISER_OK;
    }
};

TEST_F(WaitForHost, FillsTheDestination) {
    fake::configure("d2h=2");
    test::fill_bytes(device.data(), 5, kBytes);
    for (const Form& form : forms()) {
        for (std::byte* const host : hosts()) {
            test::fill_bytes(host, 0, kBytes);
            EXPECT_FALSE(form.copy(context, host, device.data(), kBytes, stream.handle(), -1));
            EXPECT_TRUE(test::same_bytes(host, device.data(), kBytes)) << form.name;
        }
    }
}

TEST_F(WaitForHost, LetsTheSourceBeReused) {
    fake::configure("h2d=2");
    const std::vector<std::byte> sent(kBytes, std::byte{6});
    for (const Form& form : forms()) {
        for (std::byte* const host : hosts()) {
            test::fill_bytes(host, 6, kBytes);
            test::fill_bytes(device.data(), 0, kBytes);
            EXPECT_FALSE(form.copy(context, device.data(), host, kBytes, stream.handle(), kLong));
            test::fill_bytes(host, 1, kBytes);
            stream.synchronize();
            EXPECT_TRUE(test::same_bytes(device.data(), sent.data(), kBytes)) << form.name;
        }
    }
}

TEST_F(WaitForHost, ReturnsAHandleWhenTheTimeIsTooShort) {
    for (const Form& form : forms()) {
        for (const bool to_host : {false, true}) {
            for (std::byte* const host : hosts()) {
                std::byte* const to = to_host ? host : device.data();
                std::byte* const from = to_host ? device.data() : host;
                test::fill_bytes(from, 4, kBytes);
                test::fill_bytes(to, 0, kBytes);
                gate.close(stream);
                const TransferHandle left =
                    form.copy(context, to, from, kBytes, stream.handle(), kShort);
                ASSERT_TRUE(left) << form.name;
                EXPECT_FALSE(left.done());
                EXPECT_EQ(status_of([&] { left.result(0); }), WAYWISER_TIMEOUT);
                gate.open();
                EXPECT_EQ(left.result(), kBytes) << form.name;
                EXPECT_TRUE(test::same_bytes(to, from, kBytes)) << form.name;
                stream.synchronize();
            }
        }
    }
}

// Of copies that are too small for chunks otherwise.
TEST_F(WaitForHost, HasALimitForCopiesByAwakeThreads) {
    constexpr std::size_t kFew = 2 * kMiB;
    Context awake{{.threads = 2, .pinned_bytes = 8 * kMiB, .policy = "off", .spin_seconds = 1e-3}};
    for (const bool to_host : {false, true}) {
        std::byte* const to = to_host ? pageable.data() : device.data();
        std::byte* const from = to_host ? device.data() : pageable.data();
        test::fill_bytes(from, to_host ? 7 : 6, kFew);
        gate.close(stream);
        const TransferHandle left = awake.copy_and_wait(to, from, kFew, stream.handle(), kShort);
        ASSERT_TRUE(left);
        EXPECT_FALSE(left.done());
        gate.open();
        EXPECT_EQ(left.result(), kFew);
        EXPECT_TRUE(test::same_bytes(to, from, kFew));
        EXPECT_FALSE(awake.copy_and_wait(to, from, kFew, stream.handle(), kLong));
        stream.synchronize();
    }
}

TEST_F(WaitForHost, WaitsForTheStreamBeforeTheCallingThreadCopies) {
    for (const Form& form : forms()) {
        for (std::byte* const host : hosts()) {
            gate.close(stream);
            gpu::fill_async(device.data(), 9, kBytes, stream);
            test::AsyncCall running([&] {
                EXPECT_FALSE(
                    form.copy(context, host, device.data(), kBytes, stream.handle(), kLong));
            });
            EXPECT_TRUE(running.blocks()) << form.name;
            gate.open();
            ASSERT_TRUE(running.returns()) << form.name;
            running.get();
            EXPECT_EQ(host[0], std::byte{9}) << form.name;
            EXPECT_EQ(host[kBytes - 1], std::byte{9}) << form.name;
        }
    }
}

TEST_F(WaitForHost, DoesNotWaitWithoutAHostSide) {
    const gpu::DeviceBuffer other(0, kBytes);
    test::fill_bytes(device.data(), 3, kBytes);
    for (const Form& form : forms()) {
        test::fill_bytes(other.data(), 0, kBytes);
        gate.close(stream);
        EXPECT_FALSE(form.copy(context, other.data(), device.data(), kBytes, stream.handle(), -1));
        EXPECT_FALSE(stream.done());
        gate.open();
        stream.synchronize();
        EXPECT_TRUE(test::same_bytes(other.data(), device.data(), kBytes)) << form.name;
    }
}

TEST_F(WaitForHost, DoesNotWaitForALongCopyBetweenGpus) {
    const gpu::DeviceBuffer other(1, kBytes);
    test::fill_bytes(device.data(), 3, kBytes);
    gate.close(stream);
    EXPECT_FALSE(context.copy_and_wait(other.data(), device.data(), kBytes, stream.handle()));
    EXPECT_FALSE(stream.done());
    gate.open();
    stream.synchronize();
    EXPECT_TRUE(test::same_bytes(other.data(), device.data(), kBytes));
}

TEST_F(WaitForHost, OrdersHostMemoryInTheStreamUnlessThereIsNone) {
    const std::vector<std::byte> sent(kBytes, std::byte{2});
    for (const Form& form : forms()) {
        for (std::byte* const host : hosts()) {
            test::fill_bytes(host, 0, kBytes);
            gate.close(stream);
            const TransferHandle left =
                form.copy(context, host, sent.data(), kBytes, stream.handle(), kShort);
            EXPECT_TRUE(left) << form.name;
            EXPECT_FALSE(left.done()) << form.name;
            std::vector<std::byte> other(kBytes);
            EXPECT_FALSE(
                form.copy(context, other.data(), sent.data(), kBytes, StreamRef::none(), -1));
            EXPECT_TRUE(test::same_bytes(other, sent)) << form.name;
            gate.open();
            EXPECT_EQ(left.result(), kBytes);
            EXPECT_TRUE(test::same_bytes(host, sent.data(), kBytes)) << form.name;
            EXPECT_FALSE(form.copy(context, host, other.data(), kBytes, stream.handle(), -1));
            stream.synchronize();
        }
    }
}

TEST_F(WaitForHost, StatesWhetherTheGpuHasEnded) {
    fake::configure("h2d=1");
    const gpu::DeviceBuffer other(1, kBytes);
    for (const Form& form : forms()) {
        const auto ended = [&](std::byte* to, const std::byte* from) {
            bool has_ended = false;
            form.copy(context, to, from, kBytes, stream.handle(), -1, &has_ended);
            return has_ended ? 1 : 0;
        };
        test::fill_bytes(pinned.data(), 6, kBytes);
        test::fill_bytes(device.data(), 0, kBytes);
        EXPECT_EQ(ended(device.data(), pinned.data()), 1) << form.name;
        EXPECT_TRUE(test::same_bytes(device.data(), pinned.data(), kBytes)) << form.name;
        EXPECT_EQ(ended(device.data(), pageable.data()), 0) << form.name;
        EXPECT_EQ(ended(pinned.data(), device.data()), 1) << form.name;
        EXPECT_EQ(ended(pageable.data(), device.data()), 1) << form.name;
        EXPECT_EQ(ended(other.data(), device.data()), 0) << form.name;
        stream.synchronize();
        gate.close(stream);
        bool has_ended = true;
        const TransferHandle left = form.copy(context, device.data(), pinned.data(), kBytes,
                                              stream.handle(), kShort, &has_ended);
        EXPECT_FALSE(has_ended) << form.name;
        gate.open();
        left.result();
    }
    bool has_ended = false;
    EXPECT_FALSE(context.copy_and_wait(device.data(), pageable.data(), kMiB, stream.handle(), -1,
                                       &has_ended));
    EXPECT_TRUE(has_ended);
    int flag = 1;
    waywiser_transfer* left = nullptr;
    EXPECT_EQ(waywiser_copy_and_wait(context.get(), nullptr, pageable.data(), kBytes,
                                     stream.handle(), -1, &flag, &left),
              WAYWISER_INVALID);
    EXPECT_EQ(flag, 0);
}

// CPUs move the pieces of the one host memory, a GPU those of the other.
TEST_F(WaitForHost, FreesAllPiecesOfAListOfSeveralKinds) {
    fake::configure("h2d=1;d2h=1");
    constexpr std::size_t kHalf = kBytes / 2;
    std::byte* const first = device.data();
    std::byte* const second = first + kHalf;
    const std::size_t sizes[] = {kHalf, kHalf};
    const std::vector<std::byte> sent(kBytes, std::byte{8});
    for (std::byte* const host : hosts()) test::fill_bytes(host, 8, kBytes);
    void* const up[] = {first, second};
    const void* const from[] = {pinned.data(), pageable.data()};
    EXPECT_FALSE(context.copy_batch_and_wait(up, from, sizes, stream.handle()));
    for (std::byte* const host : hosts()) test::fill_bytes(host, 1, kBytes);
    stream.synchronize();
    EXPECT_TRUE(test::same_bytes(first, sent.data(), kBytes));
    void* const to[] = {pinned.data(), pageable.data()};
    const void* const down[] = {first, second};
    EXPECT_FALSE(context.copy_batch_and_wait(to, down, sizes, stream.handle()));
    for (std::byte* const host : hosts()) {
        EXPECT_TRUE(test::same_bytes(host, sent.data(), kHalf));
    }
}

TEST_F(WaitForHost, RecordsCopiesOfPinnedMemoryWhileTheStreamIsCaptured) {
    for (const Form& form : forms()) {
        test::fill_bytes(pinned.data(), 7, kBytes);
        test::fill_bytes(device.data(), 0, kBytes);
        const gpu::Graph graph(stream, [&] {
            EXPECT_FALSE(
                form.copy(context, device.data(), pinned.data(), kBytes, stream.handle(), -1));
            for (const bool to_host : {false, true}) {
                EXPECT_EQ(status_of([&] {
                              form.copy(context, to_host ? pageable.data() : device.data(),
                                        to_host ? device.data() : pageable.data(), kBytes,
                                        stream.handle(), -1);
                          }),
                          WAYWISER_UNSUPPORTED)
                    << form.name;
            }
        });
        EXPECT_EQ(*device.data(), std::byte{0});
        gpu::ExecutableGraph(graph).launch(stream);
        stream.synchronize();
        EXPECT_TRUE(test::same_bytes(device.data(), pinned.data(), kBytes)) << form.name;
    }
}

TEST_F(WaitForHost, ReportsAFailureInsteadOfAHandle) {
    for (const Form& form : forms()) {
        for (std::byte* const host : hosts()) {
            fake::configure(form.fault);
            EXPECT_EQ(status_of([&] {
                          form.copy(context, host, device.data(), kBytes, stream.handle(), kLong);
                      }),
                      WAYWISER_GPU)
                << form.name;
            fake::configure("");
            stream.synchronize();
        }
    }
}

TEST_F(WaitForHost, RejectsATimeoutThatIsNotANumber) {
    for (const Form& form : forms()) {
        EXPECT_EQ(status_of([&] {
                      form.copy(context, device.data(), pinned.data(), kBytes, stream.handle(),
                                std::nan(""));
                  }),
                  WAYWISER_INVALID)
            << form.name;
    }
}

TEST_F(WaitForHost, ReadsAndWritesFiles) {
    const int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    std::vector<std::byte*> memories = hosts();
    memories.push_back(device.data());
    for (std::byte* const memory : memories) {
        test::fill_bytes(memory, 5, kBytes);
        std::size_t moved = 0;
        EXPECT_FALSE(
            context.write_and_wait(file, 3, memory, kBytes, moved, stream.handle(), kLong));
        EXPECT_EQ(moved, kBytes);
        test::fill_bytes(memory, 0, kBytes);
        bool ended = false;
        EXPECT_FALSE(
            context.read_and_wait(file, 3, memory, kBytes, moved, stream.handle(), -1, &ended));
        EXPECT_EQ(moved, kBytes);
        EXPECT_EQ(ended, memory != device.data());
        stream.synchronize();
        EXPECT_EQ(memory[0], std::byte{5});
        EXPECT_EQ(memory[kBytes - 1], std::byte{5});
        EXPECT_FALSE(context.read_and_wait(file, kBytes, memory, 10, moved, stream.handle()));
        EXPECT_EQ(moved, 3U) << "the end of the file";

        gate.close(stream);
        const TransferHandle reading =
            context.read_and_wait(file, 0, memory, 10, moved, stream.handle(), kShort);
        EXPECT_TRUE(reading);
        EXPECT_EQ(moved, 0U);
        const TransferHandle writing =
            context.write_and_wait(file, kBytes + 3, memory, 10, moved, stream.handle(), kShort);
        EXPECT_TRUE(writing);
        EXPECT_FALSE(reading.done() || writing.done());
        gate.open();
        EXPECT_EQ(reading.result(), 10U);
        EXPECT_EQ(writing.result(), 10U);
        EXPECT_EQ(ftruncate(file, 0), 0);
    }
    close(file);
}

TEST_F(WaitForHost, ReadsNoFileWhileTheStreamIsCaptured) {
    const gpu::Graph graph(stream, [&] {
        std::size_t moved = 5;
        EXPECT_EQ(status_of([&] {
                      (void)context.read_and_wait(0, 0, device.data(), 1, moved, stream.handle());
                  }),
                  WAYWISER_UNSUPPORTED);
        EXPECT_EQ(moved, 0U);
    });
}

}  // namespace
}  // namespace waywiser
