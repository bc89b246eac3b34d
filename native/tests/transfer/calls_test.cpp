// The public C++ interface over the fake GPU: the contract of copies, reads and writes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser {
namespace {

using test::sequence;

// An open file without a name.
class File {
public:
    File() : number_(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {}
    ~File() { close(number_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] int number() const { return number_; }
    void put(const std::vector<std::byte>& bytes) const {
        ASSERT_EQ(pwrite(number_, bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
    }

private:
    int number_;
};

class Calls : public test::OnFake {
protected:
    static ContextOptions small() { return {.pinned_bytes = 8 * kMiB}; }
    // WAYWISER_OK if the call throws nothing.
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

TEST_F(Calls, CopyAsTheRuntimeDoes) {
    Context context(small());
    const gpu::Stream stream(0);
    for (const std::size_t bytes : {std::size_t{1}, 4 * kKiB, kMiB, 17 * kMiB + 3}) {
        const auto from = sequence(bytes, 1);
        std::vector<std::byte> back(bytes);
        const gpu::DeviceBuffer device(0, bytes);
        context.copy(device.data(), from.data(), bytes, stream.handle());
        context.copy(back.data(), device.data(), bytes, stream.handle());
        EXPECT_TRUE(test::same_bytes(back, from)) << bytes;
    }
}

TEST_F(Calls, AreOrderedInTheStream) {
    fake::configure("h2d=2;d2d=2");
    Context context(small());
    const gpu::Stream stream(0);
    const std::size_t bytes = 12 * kMiB;
    auto first = sequence(bytes, 1);
    const auto second = sequence(bytes, 2);
    const gpu::DeviceBuffer a(0, bytes);
    const gpu::DeviceBuffer b(0, bytes);
    context.copy(a.data(), first.data(), bytes, stream.handle());
    test::fill_bytes(first.data(), 0, bytes);  // the source can be reused
    context.copy(b.data(), a.data(), bytes, stream.handle());
    context.copy(a.data(), second.data(), bytes, stream.handle());
    std::vector<std::byte> back(bytes);
    context.copy(back.data(), b.data(), bytes, stream.handle());
    EXPECT_TRUE(test::same_bytes(back, sequence(bytes, 1)));
    context.copy(back.data(), a.data(), bytes, stream.handle());
    EXPECT_TRUE(test::same_bytes(back, second));
}

TEST_F(Calls, AsyncCopiesStartAfterTheStreamAndSayWhenTheyAreDone) {
    Context context(small());
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    gate.close(stream);
    const auto from = sequence(9 * kMiB, 3);
    const gpu::DeviceBuffer device(0, from.size());
    const auto transfer =
        context.copy_async(device.data(), from.data(), from.size(), stream.handle());
    EXPECT_FALSE(transfer.done());
    try {
        transfer.result(0.01);
        ADD_FAILURE() << "the stream is behind a gate";
    } catch (const TransferError& error) {
        EXPECT_EQ(error.status(), WAYWISER_TIMEOUT);
    }
    const int descriptor = eventfd(0, EFD_CLOEXEC);
    transfer.notify(descriptor);
    gate.open();
    std::uint64_t count = 0;
    ASSERT_EQ(::read(descriptor, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    close(descriptor);
    EXPECT_TRUE(transfer.done());
    EXPECT_EQ(transfer.result(), from.size());
    EXPECT_TRUE(test::same_bytes(device.data(), from.data(), from.size()));
}

TEST_F(Calls, PlainAsyncCopiesNotifyToo) {
    Context context(small());
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    gate.close(stream);
    const gpu::HostBuffer host(kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kMiB);
    const auto transfer = context.copy_async(device.data(), host.data(), kMiB, stream.handle());
    const int descriptor = eventfd(0, EFD_CLOEXEC);
    transfer.notify(descriptor);
    EXPECT_FALSE(transfer.done());
    gate.open();
    std::uint64_t count = 0;
    ASSERT_EQ(::read(descriptor, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    close(descriptor);
    EXPECT_TRUE(transfer.done());
    transfer.result();
}

TEST_F(Calls, AListIsDoneWhenItsBytesAreThere) {
    fake::configure("h2d=1");
    Context context(small());
    const gpu::Stream stream(0);
    const gpu::HostBuffer host(kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kMiB);
    const auto content = sequence(kMiB, 4);
    test::copy_bytes(host.data(), content.data(), kMiB);
    gpu::Gate gate(0);
    gate.close(stream);
    void* to[] = {device.data(), device.data() + kMiB / 2};
    const void* from[] = {host.data() + kMiB / 2, host.data()};
    const std::size_t sizes[] = {kMiB / 2, kMiB / 2};
    const auto transfer = context.copy_batch_async(to, from, sizes, stream.handle());
    EXPECT_FALSE(transfer.done());
    gate.open();
    EXPECT_EQ(transfer.result(), kMiB);
    EXPECT_TRUE(test::same_bytes(device.data(), content.data() + kMiB / 2, kMiB / 2));
    EXPECT_TRUE(test::same_bytes(device.data() + kMiB / 2, content.data(), kMiB / 2));
}

TEST_F(Calls, ReadsAndWritesFiles) {
    Context context(small());
    const gpu::Stream stream(0);
    const auto content = sequence(9 * kMiB + 77, 5);
    const File file;
    file.put(content);
    const gpu::DeviceBuffer device(0, content.size() + 100);
    for (const std::size_t offset :
         {std::size_t{0}, std::size_t{1}, std::size_t{4095}, 3 * kMiB + 5}) {
        const std::size_t left = content.size() - offset;
        EXPECT_EQ(context.read(file.number(), offset, device.data(), left + 50, stream.handle()),
                  left);
        stream.synchronize();
        EXPECT_TRUE(test::same_bytes(device.data(), content.data() + offset, left)) << offset;
        std::vector<std::byte> host(left + 50);
        EXPECT_EQ(context.read(file.number(), offset, host.data(), left + 50), left);
        EXPECT_TRUE(test::same_bytes(host.data(), content.data() + offset, left)) << offset;
    }
    EXPECT_EQ(context.read(file.number(), content.size() + 5, device.data(), 10), 0U);
    const File other;
    context.write(other.number(), 13, device.data(), 5 * kMiB, stream.handle());
    std::vector<std::byte> back(5 * kMiB);
    EXPECT_EQ(context.read(other.number(), 13, back.data(), back.size()), back.size());
    EXPECT_TRUE(test::same_bytes(back.data(), device.data(), back.size()));
}

TEST_F(Calls, SayWhatIsWrongWithAFile) {
    Context context(small());
    std::vector<std::byte> host(kMiB);
    const gpu::DeviceBuffer device(0, host.size());
    for (std::byte* data : {host.data(), device.data()}) {
        try {
            context.read(-1, 0, data, host.size());
            ADD_FAILURE();
        } catch (const TransferError& error) {
            EXPECT_EQ(error.status(), WAYWISER_IO);
            EXPECT_EQ(error.error_number(), EBADF);
        }
    }
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    try {
        context.write(full, 0, device.data(), host.size());
        ADD_FAILURE();
    } catch (const TransferError& error) {
        EXPECT_EQ(error.error_number(), ENOSPC);
    }
    close(full);
}

// Pieces for the GPU are in the stream, a thread copies those of the host: the list ends with both.
TEST_F(Calls, AListOfSeveralPlacesEndsWithTheLastOfThem) {
    Context context(small());
    fake::set_current_device(0);
    const gpu::Stream stream(0, nullptr);
    gpu::Gate gate(0);
    gate.close(stream);
    const gpu::HostBuffer pinned(kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kMiB);
    const auto sent = sequence(16 * kMiB, 4);
    test::copy_bytes(pinned.data(), sent.data(), kMiB);
    std::vector<std::byte> received(sent.size());
    void* to[] = {device.data(), received.data()};
    const void* from[] = {pinned.data(), sent.data()};
    const std::size_t sizes[] = {kMiB, sent.size()};
    const auto transfer = context.copy_batch_async(to, from, sizes);
    EXPECT_EQ(status_of([&] { transfer.result(0.05); }), WAYWISER_TIMEOUT);
    EXPECT_FALSE(transfer.done());
    gate.open();
    EXPECT_EQ(transfer.result(), kMiB + sent.size());
    EXPECT_TRUE(test::same_bytes(device.data(), pinned.data(), kMiB));
    EXPECT_EQ(received, sent);
}

// A default stream also orders copies of host memory of any size, for all calls.
TEST_F(Calls, OfHostMemoryAreOrderedInTheStream) {
    const std::unique_ptr<Context> context = std::make_unique<Context>(small());
    const gpu::Stream stream(0, nullptr);
    const File file;
    for (const int current : {0, -1}) {  // a thread without a context means the first GPU
        for (const std::size_t bytes : {std::size_t{4} * kKiB, 16 * kMiB}) {
            const gpu::HostBuffer pinned(bytes, gpu::HostUse::portable, 0);
            const gpu::DeviceBuffer device(0, bytes);
            std::vector<std::byte> received(bytes);
            test::fill_bytes(device.data(), 7, bytes);
            const auto expect_ordered = [&](const auto& call) {
                test::fill_bytes(pinned.data(), 0, bytes);
                std::ranges::fill(received, std::byte{0});
                gpu::Gate gate(0);
                gate.close(stream);
                gpu::copy_async(pinned.data(), device.data(), bytes, stream);
                test::AsyncCall running([&] {
                    fake::set_current_device(current);
                    call();
                });
                EXPECT_TRUE(running.blocks());
                gate.open();
                ASSERT_TRUE(running.returns());
                running.get();
                stream.synchronize();
            };
            expect_ordered(
                [&] { context->copy_async(received.data(), pinned.data(), bytes).result(); });
            EXPECT_EQ(received.back(), std::byte{7});
            expect_ordered([&] { context->write(file.number(), 0, pinned.data(), bytes); });
            ASSERT_EQ(pread(file.number(), received.data(), bytes, 0), static_cast<ssize_t>(bytes));
            EXPECT_EQ(received.back(), std::byte{7});
            if (bytes < kMiB && current < 0) continue;
            expect_ordered([&] {
                context->copy(received.data(), pinned.data(), bytes);
                stream.synchronize();
            });
            EXPECT_EQ(received.back(), std::byte{7});
        }
    }
}

TEST_F(Calls, OfHostMemoryWaitForNoStreamThatIsNotTheirs) {
    Context context(small());
    const gpu::Stream stream(0, nullptr);
    gpu::Gate gate(0);
    gate.close(stream);
    const auto sent = sequence(9 * kMiB, 6);
    std::vector<std::byte> received(sent.size());
    context.copy(received.data(), sent.data(), sent.size(), StreamRef::none());
    EXPECT_EQ(received, sent);
    const auto transfer =
        context.copy_async(received.data(), sent.data(), sent.size(), StreamRef::none());
    EXPECT_EQ(transfer.result(), sent.size());
    transfer.wait(StreamRef::none());
    EXPECT_FALSE(context.mark(StreamRef::none()));
    const gpu::DeviceBuffer device(0, kMiB);
    EXPECT_EQ(status_of([&] { context.copy(device.data(), sent.data(), kMiB, StreamRef::none()); }),
              WAYWISER_INVALID);
    gate.open();
}

TEST_F(Calls, OfHostMemoryWithAHandleReturnAtOnce) {
    Context context(small());
    const gpu::Stream stream(0);
    constexpr std::size_t kBytes = 64 * kKiB;
    const gpu::HostBuffer pinned(2 * kBytes, gpu::HostUse::portable, 0);
    std::vector<std::byte> pageable(2 * kBytes);
    for (std::byte* const to : {pinned.data(), pageable.data()}) {
        for (std::byte* const first : {pinned.data(), pageable.data()}) {
            std::byte* const from = first + kBytes;
            const std::vector<void*> tos = {to};
            const std::vector<const void*> froms = {from};
            const std::vector<std::size_t> sizes = {kBytes};
            const std::vector<std::int64_t> index = {0};
            const auto expect_at_once = [&](const auto& start) {
                test::fill_bytes(to, 0, kBytes);
                test::fill_bytes(from, 5, kBytes);
                gpu::Gate gate(0);
                gate.close(stream);
                TransferHandle transfer;
                test::AsyncCall starting([&] { transfer = start(); });
                EXPECT_TRUE(starting.returns());
                gate.open();
                starting.get();
                EXPECT_EQ(transfer.result(), kBytes);
                EXPECT_EQ(to[kBytes - 1], std::byte{5});
            };
            expect_at_once([&] { return context.copy_async(to, from, kBytes, stream.handle()); });
            expect_at_once(
                [&] { return context.copy_batch_async(tos, froms, sizes, stream.handle()); });
            expect_at_once([&] {
                return context.copy_blocks_async({to, kBytes, 1}, {from, kBytes, 1}, kBytes, index,
                                                 index, stream.handle());
            });
        }
    }
}

// What enables peer access, or asks for the address of pinned memory, makes other GPUs current.
TEST_F(Calls, EndWithTheDefaultStreamOfTheGpuThatWasCurrent) {
    constexpr std::size_t kBytes = 256 * kKiB;
    const gpu::DeviceBuffer device(0, kBytes);
    const gpu::DeviceBuffer peer(1, kBytes);
    const gpu::HostBuffer pinned(kBytes, gpu::HostUse::portable, 0);
    const std::vector<std::int64_t> index = {3, 2, 1, 0};
    constexpr std::size_t kBlock = kBytes / 4;
    const std::vector<void*> to = {peer.data()};
    const std::vector<std::size_t> sizes = {kBytes};
    fake::set_current_device(0);
    for (void* const handle : {static_cast<void*>(nullptr), WAYWISER_PER_THREAD_STREAM}) {
        for (std::byte* const source : {device.data(), pinned.data()}) {
            const std::vector<const void*> from = {source};
            const auto expect_after_the_stream = [&](const auto& start) {
                Context context(small());
                gpu::Gate gate(0);
                gate.close(gpu::Stream(0, handle));
                const TransferHandle transfer = start(context);
                EXPECT_TRUE(transfer && !transfer.done());
                gate.open();
                transfer.result();
                EXPECT_EQ(fake::current_device(), 0);
            };
            expect_after_the_stream([&](Context& context) {
                return context.copy_async(peer.data(), source, kBytes, handle);
            });
            expect_after_the_stream([&](Context& context) {
                return context.copy_and_wait(peer.data(), source, kBytes, handle, 0.01);
            });
            expect_after_the_stream([&](Context& context) {
                return context.copy_batch_async(to, from, sizes, handle);
            });
            expect_after_the_stream([&](Context& context) {
                return context.copy_blocks_async({peer.data(), kBlock, 4}, {source, kBlock, 4},
                                                 kBlock, index, index, handle);
            });
        }
    }
}

TEST_F(Calls, WaitForTheSubmissionAsLongAsTheyAreAsked) {
    Context context(small());
    const gpu::Stream stream(0);
    const gpu::Stream other(0);
    gpu::Gate gate(0);
    gate.close(stream);
    const auto sent = sequence(9 * kMiB, 6);
    const gpu::DeviceBuffer device(0, sent.size());
    const auto transfer =
        context.copy_async(device.data(), sent.data(), sent.size(), stream.handle());
    EXPECT_EQ(status_of([&] { transfer.wait(other.handle(), 0.01); }), WAYWISER_TIMEOUT);
    gate.open();
    transfer.wait(other.handle(), 60);
    other.synchronize();
    EXPECT_TRUE(test::same_bytes(device.data(), sent.data(), sent.size()));
}

// A copy of the runtime continues when its context is released, and its end is not reported.
TEST_F(Calls, OfTheRuntimeGoOnAfterTheirContext) {
    auto context = std::make_unique<Context>(small());
    const gpu::Stream stream(0);
    gpu::Gate gate(0);
    gate.close(stream);
    const gpu::HostBuffer pinned(kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kMiB);
    const auto transfer = context->copy_async(device.data(), pinned.data(), kMiB, stream.handle());
    const int early = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int late = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transfer.notify(early);
    context.reset();
    transfer.notify(late);
    std::uint64_t written = 0;
    EXPECT_EQ(::read(early, &written, sizeof written), static_cast<ssize_t>(sizeof written));
    EXPECT_EQ(::read(late, &written, sizeof written), static_cast<ssize_t>(sizeof written));
    EXPECT_FALSE(transfer.done());
    gate.open();
    EXPECT_EQ(transfer.result(), kMiB);
    EXPECT_TRUE(transfer.done());
    close(early);
    close(late);
}

TEST_F(Calls, SayWhyNoGpuCanBeUsed) {
    const Context context(small());
    EXPECT_EQ(waywiser_require_gpu(context.get()), WAYWISER_OK);
    fake::configure("devices=0");
    const Context without(small());
    EXPECT_EQ(waywiser_require_gpu(without.get()), WAYWISER_UNSUPPORTED);
    EXPECT_STRNE(waywiser_last_error(), "");
    EXPECT_EQ(waywiser_require_gpu(nullptr), WAYWISER_INVALID);
}

TEST_F(Calls, CheckTheSizesOfStructs) {
    ContextOptions by_two = small();
    by_two.threads = 2;
    const Context context(by_two);
    waywiser_description description{};
    waywiser_usage usage{};
    EXPECT_EQ(waywiser_describe(&usage, 8, &description), WAYWISER_INVALID) << "no size";
    EXPECT_EQ(waywiser_context_usage(context.get(), &usage), WAYWISER_INVALID) << "no size";
    description.size = std::size_t{1} << 60;
    EXPECT_EQ(waywiser_describe(&usage, 8, &description), WAYWISER_INVALID);
    description.size = sizeof description;
    EXPECT_EQ(waywiser_describe(&usage, SIZE_MAX, &description), WAYWISER_INVALID);
    EXPECT_EQ(waywiser_describe(nullptr, 1, &description), WAYWISER_INVALID);

    usage.size = sizeof usage;
    ASSERT_EQ(waywiser_context_usage(context.get(), &usage), WAYWISER_OK);
    // For a program that is compiled with the first header: what it does not have is not written.
    struct First {
        waywiser_usage known{};
        std::size_t behind = 77;
    } first;
    first.known.size = offsetof(waywiser_usage, gpu_bytes);
    first.known.gpu_bytes = 78;
    EXPECT_EQ(waywiser_context_usage(context.get(), &first.known), WAYWISER_OK);
    EXPECT_EQ(first.known.size, offsetof(waywiser_usage, gpu_bytes));
    EXPECT_EQ(first.known.most_threads, usage.most_threads);
    EXPECT_EQ(first.known.gpu_bytes, 78U);
    EXPECT_EQ(first.behind, 77U);
    --first.known.size;
    EXPECT_EQ(waywiser_context_usage(context.get(), &first.known), WAYWISER_INVALID);
    description.size = offsetof(waywiser_description, registrations) + sizeof(std::size_t);
    EXPECT_EQ(waywiser_describe(&usage, 8, &description), WAYWISER_OK);

    // For a program that is compiled with a later header.
    struct Later {
        waywiser_usage known{};
        std::size_t added = 1;
    } later;
    later.known.size = sizeof later;
    EXPECT_EQ(waywiser_context_usage(context.get(), &later.known), WAYWISER_OK);
    EXPECT_EQ(later.known.size, sizeof(waywiser_usage));
    EXPECT_EQ(later.added, 0U);
    struct LaterOptions {
        waywiser_options known{};
        std::size_t added = 0;
    } options;
    waywiser_context* made = nullptr;
    EXPECT_EQ(waywiser_context_create(&options.known, &made), WAYWISER_INVALID) << "no size";
    options.known.size = sizeof options;
    ASSERT_EQ(waywiser_context_create(&options.known, &made), WAYWISER_OK);
    waywiser_context_release(made);
    options.added = 1;
    EXPECT_EQ(waywiser_context_create(&options.known, &made), WAYWISER_UNSUPPORTED);
    EXPECT_EQ(made, nullptr);
}

TEST_F(Calls, ReturnNothingAfterAFailure) {
    Context context(small());
    const auto untouched = reinterpret_cast<waywiser_transfer*>(&context);
    std::byte here{};
    void* to = &here;
    const void* from = &here;
    const std::size_t size = 1;
    const std::int64_t index = 3;
    std::size_t moved = 5;
    const auto fails = [&](const auto& call) {
        waywiser_transfer* transfer = untouched;
        EXPECT_NE(call(&transfer), WAYWISER_OK);
        EXPECT_EQ(transfer, nullptr);
    };
    for (waywiser_context* const one : {context.get(), static_cast<waywiser_context*>(nullptr)}) {
        fails([&](auto** t) { return waywiser_copy_async(one, nullptr, from, 1, nullptr, t); });
        fails([&](auto** t) { return waywiser_copy_batch(one, &to, &from, &size, 1, nullptr, t); });
        fails([&](auto** t) {
            return waywiser_copy_blocks(one, to, 1, 1, from, 1, 1, 1, &index, &index, 1, nullptr,
                                        t);
        });
        fails([&](auto** t) { return waywiser_read(one, 0, 0, nullptr, 1, nullptr, nullptr, t); });
        fails([&](auto** t) {
            return waywiser_write(one, 0, 0, nullptr, 1, 0, nullptr, nullptr, t);
        });
        fails([&](auto** t) {
            return waywiser_copy_and_wait(one, nullptr, from, 1, nullptr, -1, nullptr, t);
        });
        fails([&](auto** t) {
            return waywiser_copy_batch_and_wait(one, nullptr, &from, &size, 1, nullptr, -1, nullptr,
                                                t);
        });
        fails([&](auto** t) {
            return waywiser_copy_blocks_and_wait(one, to, 1, 1, from, 1, 1, 1, &index, &index, 1,
                                                 nullptr, -1, nullptr, t);
        });
        fails([&](auto** t) {
            return waywiser_read_and_wait(one, 0, 0, nullptr, 1, nullptr, -1, nullptr, nullptr, t);
        });
        fails([&](auto** t) {
            return waywiser_write_and_wait(one, 0, 0, nullptr, 1, 0, nullptr, -1, nullptr, nullptr,
                                           t);
        });
        moved = 5;
        EXPECT_NE(waywiser_read(one, -1, 0, &here, 1, nullptr, &moved, nullptr), WAYWISER_OK);
        EXPECT_EQ(moved, 0U);
    }
    void* memory = &here;
    EXPECT_NE(waywiser_pinned_alloc(SIZE_MAX, -1, &memory), WAYWISER_OK);
    EXPECT_EQ(memory, nullptr);
    // A transfer that is NULL has ended.
    const TransferHandle none;
    EXPECT_TRUE(none.done());
    EXPECT_EQ(none.result(), 0U);
    none.wait();
}

TEST_F(Calls, NameTheArgumentThatIsANullPointer) {
    const Context context(small());
    waywiser_context* const one = context.get();
    std::byte here{};
    void* to[] = {nullptr};
    const void* from[] = {&here};
    const std::size_t size[] = {8};
    const std::int64_t index[] = {0};
    const auto says = [](waywiser_status status, const std::string& said) {
        EXPECT_EQ(status, WAYWISER_INVALID);
        EXPECT_NE(std::string(waywiser_last_error()).find(said), std::string::npos)
            << waywiser_last_error() << " has no: " << said;
    };
    says(waywiser_copy(nullptr, &here, &here, 1, nullptr), "context is a null pointer: pass");
    says(waywiser_copy(one, nullptr, &here, 8, nullptr), "copy: the argument to is a null");
    says(waywiser_copy(one, &here, nullptr, 8, nullptr), "copy: the argument from is a null");
    says(waywiser_copy_async(one, &here, &here, 8, nullptr, nullptr), "argument transfer is");
    says(waywiser_copy_batch(one, nullptr, from, size, 1, nullptr, nullptr), "argument to is");
    says(waywiser_copy_batch(one, to, nullptr, size, 1, nullptr, nullptr), "argument from is");
    says(waywiser_copy_batch(one, to, from, nullptr, 1, nullptr, nullptr), "argument sizes is");
    says(waywiser_copy_batch(one, to, from, size, 1, nullptr, nullptr), "to[0] is a null pointer");
    says(
        waywiser_copy_blocks(one, &here, 8, 1, &here, 8, 1, 8, index, nullptr, 1, nullptr, nullptr),
        "argument from_index is");
    says(waywiser_read(one, 0, 0, nullptr, 8, nullptr, nullptr, nullptr), "read: the argument to");
    says(waywiser_write(one, 1, 0, nullptr, 8, 0, nullptr, nullptr, nullptr),
         "write: the argument from");
    says(waywiser_context_usage(one, nullptr), "argument usage is");
    says(waywiser_describe(&here, 1, nullptr), "argument description is");
    says(waywiser_machine(nullptr, 0, nullptr), "argument needed is");
}

TEST_F(Calls, RejectInvalidArguments) {
    Context context(small());
    std::vector<std::byte> host(2 * kMiB);
    const auto status = [](const auto& call) { return status_of(call); };
    EXPECT_EQ(status([&] { context.copy(host.data(), host.data() + 1, kMiB); }), WAYWISER_INVALID);
    EXPECT_EQ(status([&] { context.copy(nullptr, host.data(), kMiB); }), WAYWISER_INVALID);
    EXPECT_EQ(status([&] { context.copy(host.data(), nullptr, 0); }), WAYWISER_OK);
    EXPECT_EQ(status([&] { context.copy(host.data(), host.data() + kMiB, SIZE_MAX - 5); }),
              WAYWISER_INVALID);
    EXPECT_EQ(status([&] { context.read(0, 0, host.data(), SIZE_MAX); }), WAYWISER_INVALID);
    EXPECT_EQ(status([&] { const Context bad({.relays = {7}}); }), WAYWISER_INVALID);
    const std::int64_t out[] = {5};
    const std::int64_t in[] = {0};
    EXPECT_EQ(status([&] {
                  context.copy_blocks({host.data(), kKiB, 4}, {host.data() + kMiB, kKiB, 4}, kKiB,
                                      out, in);
              }),
              WAYWISER_INVALID);
}

TEST_F(Calls, RecordPlainCopiesWhileAStreamIsCaptured) {
    Context context(small());
    const gpu::Stream stream(0);
    const gpu::HostBuffer host(kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kMiB);
    std::vector<std::byte> pageable(kMiB);
    test::fill_bytes(host.data(), 7, kMiB);
    const gpu::Graph graph(stream, [&] {
        context.copy(device.data(), host.data(), kMiB, stream.handle());
        EXPECT_THROW(context.copy(device.data(), pageable.data(), kMiB, stream.handle()),
                     TransferError);
        EXPECT_THROW((void)context.copy_async(device.data(), host.data(), kMiB, stream.handle()),
                     TransferError);
    });
    test::fill_bytes(device.data(), 0, kMiB);
    gpu::ExecutableGraph(graph).launch(stream);
    stream.synchronize();
    EXPECT_TRUE(test::same_bytes(device.data(), host.data(), kMiB));
}

// A copy that is only recorded in a graph has not ended, whatever its size and form.
TEST_F(Calls, SayThatARecordedCopyHasNotEnded) {
    const Context context(small());
    const gpu::Stream stream(0);
    const gpu::HostBuffer host(16 * kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, 16 * kMiB);
    const gpu::Graph graph(stream, [&] {
        for (const bool in : {true, false}) {
            void* const to = in ? device.data() : host.data();
            const void* const from = in ? host.data() : device.data();
            for (const std::size_t bytes : {std::size_t{1}, 64 * kKiB, 2 * kMiB, 16 * kMiB}) {
                waywiser_transfer* left = nullptr;
                int ended = 1;
                EXPECT_EQ(waywiser_copy_and_wait(context.get(), to, from, bytes, stream.handle(), 1,
                                                 &ended, &left),
                          WAYWISER_OK);
                EXPECT_EQ(left, nullptr);
                EXPECT_EQ(ended, 0) << bytes;
                ended = 1;
                EXPECT_EQ(waywiser_copy_batch_and_wait(context.get(), &to, &from, &bytes, 1,
                                                       stream.handle(), 1, &ended, &left),
                          WAYWISER_OK);
                EXPECT_EQ(left, nullptr);
                EXPECT_EQ(ended, 0) << "a list of " << bytes;
            }
        }
    });
}

// A small copy of pageable memory behind other work: the runtime would make the caller wait for it.
TEST_F(Calls, KeepATimeLimitForAnySizeBehindOtherWork) {
    constexpr std::size_t kMost = 4 * kMiB;
    constexpr std::array kSizes{4 * kKiB, kMiB, kMost};
    const Context context(small());
    const gpu::Stream stream(0);
    const gpu::DeviceBuffer device(0, 2 * kSizes.size() * kMost);
    std::vector<std::byte> pageable(2 * kSizes.size() * kMost);
    gpu::Gate gate(0);
    std::vector<waywiser_transfer*> left;
    gate.close(stream);
    for (const std::size_t bytes : kSizes) {
        for (const bool in : {true, false}) {
            const std::size_t at = left.size() * kMost;
            void* const to = in ? device.data() + at : pageable.data() + at;
            const void* const from = in ? pageable.data() + at : device.data() + at;
            left.push_back(nullptr);
            EXPECT_EQ(waywiser_copy_and_wait(context.get(), to, from, bytes, stream.handle(), 0.01,
                                             nullptr, &left.back()),
                      WAYWISER_OK);
            EXPECT_NE(left.back(), nullptr) << bytes;
        }
    }
    gate.open();
    for (waywiser_transfer* const one : left) {
        EXPECT_EQ(waywiser_transfer_result(one, test::kHangSeconds, nullptr), WAYWISER_OK);
        waywiser_transfer_release(one);
    }
}

TEST_F(Calls, SayHowARangeIsCopied) {
    const Context context(small());
    const gpu::DeviceBuffer device(0, 16 * kMiB);
    std::vector<std::byte> pageable(16 * kMiB);
    EXPECT_EQ(context.copy_method(device.data(), pageable.data(), 0), WAYWISER_METHOD_NONE);
    EXPECT_EQ(context.copy_method(device.data(), pageable.data(), kKiB), WAYWISER_METHOD_PLAIN);
    EXPECT_EQ(context.copy_method(device.data(), pageable.data(), 16 * kMiB),
              WAYWISER_METHOD_CHUNKED);
    EXPECT_THROW((void)context.copy_method(device.data(), device.data() + 1, kKiB), TransferError);
}

TEST_F(Calls, KeepTheCurrentDeviceOfTheCaller) {
    fake::configure("devices=3");
    Context context(small());
    const gpu::DeviceBuffer device(1, 9 * kMiB);
    const auto from = sequence(9 * kMiB, 7);
    fake::set_current_device(2);
    context.copy(device.data(), from.data(), from.size(), WAYWISER_LEGACY_STREAM_OF(1));
    EXPECT_EQ(fake::current_device(), 2);
    fake::set_current_device(-1);
    (void)describe(device.data(), 10);
    (void)machine_json();
    EXPECT_EQ(fake::current_device(), -1);
}

// Freeing memory of a GPU makes it current.
TEST_F(Calls, KeepTheCurrentDeviceWhenTheContextEnds) {
    fake::configure("devices=3");
    auto context =
        std::make_unique<Context>(ContextOptions{.pinned_bytes = 8 * kMiB, .relays = {1}});
    const gpu::DeviceBuffer device(0, 17 * kMiB);
    const auto from = sequence(17 * kMiB, 8);
    fake::set_current_device(2);
    context->copy(device.data(), from.data(), from.size(), WAYWISER_LEGACY_STREAM_OF(0));
    EXPECT_GT(fake::live().device_buffers, 1U);
    context.reset();
    EXPECT_EQ(fake::current_device(), 2);
    fake::set_current_device(-1);
}

// The default stream is that of the operand's GPU if the thread has none.
TEST_F(Calls, WaitForACopyOfAThreadWithoutADevice) {
    fake::configure("d2h=0.5");
    Context context(small());
    const auto content = sequence(kMiB, 14);
    const gpu::HostBuffer host(kMiB, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(1, kMiB);
    test::copy_bytes(device.data(), content.data(), kMiB);
    test::fill_bytes(host.data(), 0, kMiB);
    fake::set_current_device(-1);
    EXPECT_FALSE(context.copy_and_wait(host.data(), device.data(), kMiB));
    EXPECT_TRUE(test::same_bytes(host.data(), content.data(), kMiB));
}

TEST_F(Calls, CopyAcrossTheBordersOfRegistrations) {
    Context context(small());
    std::vector<std::byte> host(64 * kKiB * 3 + 4096);
    auto* const base = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(host.data()) + 4095) / 4096 * 4096);
    const auto content = sequence(64 * kKiB * 3, 9);
    test::copy_bytes(base, content.data(), content.size());
    const gpu::DeviceBuffer device(0, content.size());
    const gpu::Registration first(base, 64 * kKiB, 0);
    const gpu::Registration second(base + 64 * kKiB, 64 * kKiB, 0);
    EXPECT_EQ(describe(base, content.size()).kind, WAYWISER_MIXED);
    EXPECT_EQ(describe(base, content.size()).registrations, 2U);
    context.copy(device.data(), base, content.size(), WAYWISER_LEGACY_STREAM_OF(0));
    std::vector<std::byte> back(content.size());
    context.copy(back.data(), device.data(), back.size(), WAYWISER_LEGACY_STREAM_OF(0));
    EXPECT_TRUE(test::same_bytes(back, content));
}

TEST_F(Calls, WorkWithoutAGpu) {
    fake::configure("devices=0");
    Context context(small());
    const auto from = sequence(20 * kMiB, 11);
    std::vector<std::byte> to(from.size());
    context.copy(to.data(), from.data(), from.size());
    EXPECT_TRUE(test::same_bytes(to, from));
    test::fill_bytes(to.data(), 0, to.size());
    EXPECT_EQ(context.copy_async(to.data(), from.data(), from.size()).result(), from.size());
    EXPECT_TRUE(test::same_bytes(to, from));
    const PinnedBuffer pinned(kMiB);
    test::fill_bytes(pinned.data(), 1, kMiB);
}

TEST_F(Calls, PinnedMemoryOutlivesTheContext) {
    const auto from = sequence(kMiB, 13);
    const gpu::DeviceBuffer device(0, from.size());
    const PinnedBuffer pinned(from.size());
    {
        Context context(small());
        test::copy_bytes(pinned.data(), from.data(), from.size());
        context.copy(device.data(), pinned.data(), from.size(), WAYWISER_LEGACY_STREAM_OF(0));
        EXPECT_EQ(describe(pinned.data(), from.size()).kind, WAYWISER_PINNED);
    }
    gpu::synchronize_device(0);
    EXPECT_TRUE(test::same_bytes(device.data(), pinned.data(), from.size()));
}

// Random copies with real bytes: sizes, offsets, kinds of memory, streams, faults. A copy either
// moves every byte and changes no other, or reports that it failed.
TEST_F(Calls, BringEveryByteOrSayThatTheyFailed) {
    constexpr int kCases = 10000;
    constexpr std::size_t kBufferBytes = 320 * kKiB;
    std::mt19937 random(20261122);
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
    fake::configure("devices=2;latency=0;event=0;h2d=200;d2h=200;d2d=500;peer=500;staged=200");
    const gpu::DeviceBuffer devices[2] = {gpu::DeviceBuffer(0, kBufferBytes),
                                          gpu::DeviceBuffer(1, kBufferBytes)};
    const gpu::HostBuffer pinned(kBufferBytes, gpu::HostUse::portable, 0);
    const gpu::ManagedBuffer managed(kBufferBytes, 0);
    std::vector<std::byte> pageable(kBufferBytes);
    const gpu::Stream streams[2] = {gpu::Stream(0), gpu::Stream(1)};
    std::byte* const places[] = {devices[0].data(), devices[1].data(), pinned.data(),
                                 managed.data(), pageable.data()};
    const auto content = sequence(kBufferBytes, 1);
    // Its thresholds are low, so that small copies use every method.
    std::size_t failed = 0;
    std::size_t copied = 0;
    for (int block = 0; block < kCases / 250; ++block) {
        const bool faulty = block % 4 == 3;
        Context context({.threads = 2,
                         .pinned_bytes = 256 * kKiB,
                         .relays = block % 2 == 1 ? std::vector{0, 1} : std::vector<int>{},
                         .relay_bytes = 128 * kKiB,
                         .max_queued_bytes = block % 3 == 2 ? 64 * kKiB : 0});
        for (int i = 0; i < 250; ++i) {
            const std::size_t a = pick(5);
            const std::size_t b = pick(5);
            const std::size_t bytes = 1 + pick(pick(4) == 0 ? 150 * kKiB : 300);
            const std::size_t to_at = pick(64);
            const std::size_t from_at = a == b ? kBufferBytes / 2 + pick(64) : pick(64);
            if (a == b && to_at + bytes > kBufferBytes / 2) continue;
            std::byte* const to = places[a] + to_at;
            std::byte* const from = places[b] + from_at;
            test::copy_bytes(from, content.data(), bytes);
            test::fill_bytes(to, 0, bytes);
            const std::byte guard{0x5A};
            to[bytes] = guard;
            const gpu::Stream& stream = streams[pick(2)];
            if (faulty && pick(8) == 0) {
                fake::configure("devices=2;latency=0;event=0;fail=copy@" +
                                std::to_string(1 + pick(3)));
            }
            bool arrived = true;
            try {
                if (pick(2) == 0) {
                    context.copy(to, from, bytes, stream.handle());
                } else {
                    context.copy_async(to, from, bytes, stream.handle()).result();
                }
                stream.synchronize();
            } catch (const TransferError& error) {
                arrived = false;
                ++failed;
                EXPECT_EQ(error.status(), WAYWISER_GPU) << error.what();
            }
            if (faulty) {
                stream.synchronize();
                fake::configure("devices=2;latency=0;event=0");
            }
            ASSERT_EQ(to[bytes], guard) << "case " << i << " of block " << block;
            if (arrived) {
                ++copied;
                ASSERT_TRUE(test::same_bytes(to, content.data(), bytes))
                    << "case " << i << " of block " << block << ": " << bytes << " bytes from " << b
                    << " to " << a;
            }
        }
    }
    EXPECT_GT(copied, 9000U);
    EXPECT_GT(failed, 10U);
}

}  // namespace
}  // namespace waywiser
