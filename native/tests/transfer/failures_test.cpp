// Every runtime call that a function of the C interface makes fails, one after the other: the
// function reports it or works without, nothing leaks, and the next call works.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "async_call.hpp"
#include "case_stride.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "support/sanitizer.hpp"
#include "units.hpp"
#include "waywiser/transfer.h"

namespace waywiser {
namespace {

constexpr auto kPoll = std::chrono::microseconds(100);
const std::string kFastFake =
    "devices=2;latency=0;event=0;h2d=500;d2h=500;d2d=500;peer=500;staged=500;";

// A joined thread may still be listed for a moment.
bool copying_threads_end() {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(test::kHangSeconds);
    while (std::chrono::steady_clock::now() < end) {
        bool some = false;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::ifstream file(task.path() / "comm");
            std::string name;
            some = (std::getline(file, name) && name == "waywiser-copy") || some;
        }
        if (!some) return true;
        std::this_thread::sleep_for(kPoll);
    }
    return false;
}

struct Options {
    std::vector<int> relays;
    bool peer_access = true;
    bool awake = false;
};

class CContext {
public:
    explicit CContext(const Options& options = {}) {
        waywiser_options given{};
        given.size = sizeof given;
        given.threads = 2;
        given.pinned_bytes = (options.awake ? 4 : 2) * kMiB;
        given.spin_seconds = options.awake ? 1e-3 : 0;
        given.relays = options.relays.data();
        given.relay_count = options.relays.size();
        given.relay_bytes = 2 * kMiB;
        given.no_peer_access = options.peer_access ? 0 : 1;
        status = waywiser_context_create(&given, &context);
    }
    ~CContext() { waywiser_context_release(context); }
    CContext(const CContext&) = delete;
    CContext& operator=(const CContext&) = delete;

    // Transfers that are queued or run, after all had time to end.
    [[nodiscard]] std::size_t left() const {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::duration<double>(test::kHangSeconds);
        waywiser_usage usage{};
        do {
            usage.size = sizeof usage;
            EXPECT_EQ(waywiser_context_usage(context, &usage), WAYWISER_OK);
            EXPECT_LE(usage.threads, usage.most_threads);
            EXPECT_LE(usage.pinned_bytes, usage.most_pinned_bytes);
            if (usage.transfers == 0) return 0;
            std::this_thread::sleep_for(kPoll);
        } while (std::chrono::steady_clock::now() < end);
        return usage.transfers;
    }

    waywiser_context* context = nullptr;
    waywiser_status status = WAYWISER_OK;
};

// Waits for a transfer that was started, and uses every function of its handle.
waywiser_status completed(waywiser_status started, waywiser_transfer* transfer, void* stream,
                          std::size_t bytes) {
    if (started != WAYWISER_OK || transfer == nullptr) return started;
    const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const waywiser_status notified = waywiser_transfer_notify(transfer, descriptor);
    const waywiser_status ordered = waywiser_transfer_wait(transfer, stream, test::kHangSeconds);
    std::size_t moved = 0;
    const waywiser_status status = waywiser_transfer_result(transfer, test::kHangSeconds, &moved);
    EXPECT_NE(status, WAYWISER_TIMEOUT);
    EXPECT_EQ(waywiser_transfer_done(transfer), 1);
    if (status == WAYWISER_OK) {
        EXPECT_EQ(moved, bytes);
    }
    if (notified == WAYWISER_OK) {
        std::uint64_t count = 0;
        EXPECT_EQ(::read(descriptor, &count, sizeof count), static_cast<ssize_t>(sizeof count));
        EXPECT_EQ(count, 1U);
    }
    waywiser_transfer_release(transfer);
    close(descriptor);
    if (status != WAYWISER_OK) return status;
    return notified != WAYWISER_OK ? notified : ordered;
}

struct Operation {
    std::string name;
    std::function<waywiser_status(waywiser_context*)> call;
    std::function<bool()> arrived = [] { return true; };  // after the streams have completed
    std::function<void()> clear = [] {};
    Options options = {};
    // The destination: after a failure no copy to it is in flight.
    std::byte* to = nullptr;
    std::size_t bytes = 0;
};

class EveryCallFails : public test::OnFake {
protected:
    static constexpr std::size_t kSmall = 700 * kKiB + 3;
    static constexpr std::size_t kStaged = 8 * kMiB + 5;
    static constexpr std::size_t kAwake = kMiB + 5;
    // Copies in chunks make very many similar calls. Without a sanitizer each of them fails.
    static constexpr std::size_t kAll = 400;
    static std::size_t of_many() { return test::sanitizer() == test::Sanitizer::none ? kAll : 2; }
    static constexpr std::size_t kRelayed = 16 * kMiB + 9;

    explicit EveryCallFails(gpu::Stream callers = gpu::Stream(0)) : stream(std::move(callers)) {
        fake::configure(kFastFake);
        for (std::size_t i = 0; i < content.size(); ++i) {
            content[i] = static_cast<std::byte>(i * 2654435761U >> 13);
        }
    }
    ~EveryCallFails() override { close(file); }

    std::vector<std::byte> content = std::vector<std::byte>(kRelayed);
    std::vector<std::byte> pageable = std::vector<std::byte>(kRelayed);
    gpu::HostBuffer pinned{kRelayed, gpu::HostUse::portable, 0};
    gpu::DeviceBuffer one{0, kRelayed};
    gpu::DeviceBuffer again{0, kRelayed};
    gpu::DeviceBuffer two{1, kRelayed};
    gpu::ManagedBuffer managed{kSmall, 0};
    gpu::Stream stream;  // of the caller
    void* caller = stream.handle();
    std::string also;  // additional settings of the fake
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    enum class Variant { copy, wait, async };

    Operation copy(std::string name, Variant variant, std::byte* to, std::byte* from,
                   std::size_t bytes, Options options = {}) {
        const auto call = [=, this](waywiser_context* context) {
            waywiser_transfer* transfer = nullptr;
            waywiser_status status = WAYWISER_OK;
            switch (variant) {
                case Variant::copy: return waywiser_copy(context, to, from, bytes, caller);
                case Variant::wait:
                    status = waywiser_copy_and_wait(context, to, from, bytes, caller,
                                                    test::kHangSeconds, nullptr, &transfer);
                    EXPECT_EQ(transfer, nullptr);
                    return status;
                case Variant::async: break;
            }
            status = waywiser_copy_async(context, to, from, bytes, caller, &transfer);
            return completed(status, transfer, caller, bytes);
        };
        return {.name = std::move(name),
                .call = call,
                .arrived = [=, this] { return test::same_bytes(to, content.data(), bytes); },
                .clear =
                    [=, this] {
                        test::copy_bytes(from, content.data(), bytes);
                        test::fill_bytes(to, 0, bytes);
                    },
                .options = std::move(options),
                .to = to,
                .bytes = bytes};
    }

    // The same for a copy that threads make in chunks.
    Operation chunked(std::string name, Variant variant, std::byte* to, std::byte* from,
                      std::size_t bytes, const Options& options = {}) {
        const CContext own(options);
        std::array<char, 256> method{};
        EXPECT_EQ(waywiser_explain(own.context, to, from, bytes, method.data(), method.size()),
                  WAYWISER_OK);
        EXPECT_TRUE(std::string(method.data()).starts_with("chunked copy")) << method.data();
        return copy(std::move(name), variant, to, from, bytes, options);
    }

    void expect_success(const Operation& operation, const CContext& own) {
        operation.clear();
        EXPECT_EQ(operation.call(own.context), WAYWISER_OK) << waywiser_last_error();
        stream.synchronize();
        EXPECT_TRUE(operation.arrived());
    }

    // `usable`: the GPU can be used after the fault.
    void check(const Operation& operation, const std::string& fault, bool usable, std::size_t n) {
        operation.clear();
        const fake::Live before = fake::live();
        {
            const CContext own(operation.options);
            ASSERT_EQ(own.status, WAYWISER_OK);
            fake::configure(kFastFake + also + ";" + fault + std::to_string(n));
            const waywiser_status status = operation.call(own.context);
            if (status != WAYWISER_OK) {
                EXPECT_STRNE(waywiser_last_error(), "");
                EXPECT_NE(status, WAYWISER_INTERNAL) << waywiser_last_error();
            }
            if (usable) {
                const bool failed = status != WAYWISER_OK && operation.to != nullptr;
                std::vector<std::byte> seen(failed ? operation.bytes : 0);
                if (failed) test::copy_bytes(seen.data(), operation.to, seen.size());
                fake::configure(kFastFake);
                stream.synchronize();
                EXPECT_TRUE(seen.empty() ||
                            test::same_bytes(seen.data(), operation.to, seen.size()))
                    << "it was in flight after the failure";
                EXPECT_TRUE(status != WAYWISER_OK || operation.arrived());
                EXPECT_EQ(own.left(), 0U);
                expect_success(operation, own);  // the same context continues
            } else {
                EXPECT_EQ(own.left(), 0U);
                try {
                    stream.synchronize();  // a pending loss of the context happens here
                } catch (const gpu::Error&) {
                }
            }
        }
        fake::configure(kFastFake);
        for (const int gpu : {0, 1}) gpu::synchronize_device(gpu);  // in the fake they continue
        expect_success(operation, CContext(operation.options));
        // At the end: pinned memory is freed by a later call if its use by GPUs was unknown.
        EXPECT_EQ(fake::live(), before);
        EXPECT_TRUE(copying_threads_end());
    }

    std::vector<Operation> plain_copies() {
        std::vector<Operation> all;
        for (const Variant variant : {Variant::copy, Variant::wait, Variant::async}) {
            const std::string by = variant == Variant::copy   ? "copy "
                                   : variant == Variant::wait ? "wait "
                                                              : "async ";
            all.push_back(copy(by + "pinned to GPU", variant, one.data(), pinned.data(), kSmall));
            all.push_back(copy(by + "GPU to pinned", variant, pinned.data(), one.data(), kSmall));
            all.push_back(
                copy(by + "pageable to GPU", variant, one.data(), pageable.data(), kSmall));
            all.push_back(
                copy(by + "GPU to pageable", variant, pageable.data(), one.data(), kSmall));
            all.push_back(copy(by + "within a GPU", variant, again.data(), one.data(), kSmall));
            all.push_back(copy(by + "between GPUs", variant, two.data(), one.data(), kSmall));
            all.push_back(copy(by + "managed to GPU", variant, one.data(), managed.data(), kSmall));
        }
        return all;
    }

    std::vector<Operation> lists() {
        constexpr std::size_t kPieces = 4;
        constexpr std::size_t kPiece = 20 * kKiB;
        constexpr std::size_t kStride = 32 * kKiB;
        const auto pieces_arrived = [](std::byte* to, const std::byte* from) {
            bool same = true;
            for (std::size_t i = 0; i < kPieces; ++i) {
                same = same && test::same_bytes(to + i * kStride, from + i * kStride, kPiece);
            }
            return same;
        };
        std::vector<Operation> all;
        for (const bool in : {true, false}) {
            std::byte* const to = in ? one.data() : pinned.data();
            std::byte* const from = in ? pinned.data() : one.data();
            for (const bool async : {false, true}) {
                for (const bool blocks : {false, true}) {
                    const auto call = [=, this](waywiser_context* context) {
                        std::array<void*, kPieces> targets{};
                        std::array<const void*, kPieces> sources{};
                        std::array<std::size_t, kPieces> sizes{};
                        std::array<std::int64_t, kPieces> index{};
                        for (std::size_t i = 0; i < kPieces; ++i) {
                            targets[i] = to + i * kStride;
                            sources[i] = from + i * kStride;
                            sizes[i] = kPiece;
                            index[i] = static_cast<std::int64_t>(i);
                        }
                        waywiser_transfer* transfer = nullptr;
                        waywiser_transfer** const handle = async ? &transfer : nullptr;
                        const waywiser_status status =
                            blocks ? waywiser_copy_blocks(context, to, kStride, kPieces, from,
                                                          kStride, kPieces, kPiece, index.data(),
                                                          index.data(), kPieces, caller, handle)
                                   : waywiser_copy_batch(context, targets.data(), sources.data(),
                                                         sizes.data(), kPieces, caller, handle);
                        return completed(status, transfer, caller, kPieces * kPiece);
                    };
                    all.push_back({.name = std::string(blocks ? "blocks " : "batch ") +
                                           (in ? "to " : "from ") + (async ? "later" : "now"),
                                   .call = call,
                                   .arrived = [=] { return pieces_arrived(to, from); },
                                   .clear =
                                       [=, this] {
                                           test::copy_bytes(from, content.data(),
                                                            kPieces * kStride);
                                           std::memset(to, 0, kPieces * kStride);
                                       },
                                   .to = to,
                                   .bytes = kPieces * kStride});
                }
            }
        }
        return all;
    }

    // A range from pinned memory, blocks of it and a range of pageable memory, in one call.
    std::vector<Operation> submitted() {
        constexpr std::size_t kPart = 128 * kKiB;
        constexpr std::size_t kBlocks = 4;
        const auto call = [=, this](std::uint32_t flags, waywiser_context* context) {
            std::array<std::int64_t, kBlocks> index{};
            std::iota(index.begin(), index.end(), 0);
            std::array<waywiser_operation, 3> all{};
            for (std::size_t i = 0; i < all.size(); ++i) {
                waywiser_operation& one = all.at(i);
                one.size = sizeof one;
                one.to = this->one.data() + i * kPart;
                one.from = (i == 2 ? pageable.data() : pinned.data()) + i * kPart;
                one.bytes = kPart;
            }
            all[1].kind = WAYWISER_BLOCKS;
            all[1].count = all[1].to_blocks = all[1].from_blocks = kBlocks;
            all[1].bytes = all[1].to_stride = all[1].from_stride = kPart / kBlocks;
            all[1].to_index = all[1].from_index = index.data();
            waywiser_transfer* transfer = nullptr;
            const waywiser_status status =
                waywiser_submit(context, all.data(), all.size(), caller, flags, &transfer);
            return completed(status, transfer, caller, 3 * kPart);
        };
        std::vector<Operation> made;
        for (const std::uint32_t flags : {0U, WAYWISER_IN_STREAM}) {
            made.push_back(
                {.name = flags == 0 ? "submitted" : "submitted in the stream",
                 .call = [=](waywiser_context* context) { return call(flags, context); },
                 .arrived =
                     [this] { return test::same_bytes(one.data(), content.data(), 3 * kPart); },
                 .clear =
                     [this] {
                         test::copy_bytes(pinned.data(), content.data(), 3 * kPart);
                         test::copy_bytes(pageable.data(), content.data(), 3 * kPart);
                         test::fill_bytes(one.data(), 0, 3 * kPart);
                     },
                 .to = one.data(),
                 .bytes = 3 * kPart});
        }
        return made;
    }

    // Number of times that the operation passes the point in its own context.
    std::size_t times(const Operation& operation, std::size_t fake::Counts::* point) {
        operation.clear();
        const CContext own(operation.options);
        fake::configure(kFastFake);
        EXPECT_EQ(operation.call(own.context), WAYWISER_OK) << waywiser_last_error();
        const std::size_t found = fake::counts().*point;
        stream.synchronize();
        return found;
    }

    // Of very many similar calls, the first `dense` ones and some of the others.
    void fail_each(const std::vector<Operation>& operations, std::size_t dense = 60) {
        struct Fault {
            const char* text;
            std::size_t fake::Counts::* point;
            bool usable;  // afterwards
        };
        constexpr std::array kFaults{Fault{"fail=call@", &fake::Counts::calls, true},
                                     Fault{"sticky=call@", &fake::Counts::calls, false},
                                     Fault{"oom_at=", &fake::Counts::allocations, true},
                                     Fault{"lost=copy@", &fake::Counts::copies, false},
                                     Fault{"lost=event@", &fake::Counts::events, false}};
        const std::size_t kFewer = test::many_sizes() ? 1 : 5;
        const std::size_t kStep = test::many_sizes() ? test::case_stride() : 17;
        for (const Operation& operation : operations) {
            for (const Fault& fault : kFaults) {
                const std::size_t most = times(operation, fault.point);
                for (std::size_t n = 1; n <= most + 1; n += n < dense ? kStep : 47 * kFewer) {
                    SCOPED_TRACE(operation.name + ", " + fault.text + std::to_string(n) + " of " +
                                 std::to_string(most));
                    ASSERT_NO_FATAL_FAILURE(check(operation, fault.text, fault.usable, n));
                }
            }
            // The number of queries depends on the time.
            for (const char* fault : {"fail=query@", "sticky=query@"}) {
                for (std::size_t n = 1; n <= 25; n += n < dense ? 2 * kStep : 12 * kFewer) {
                    SCOPED_TRACE(operation.name + ", " + fault + std::to_string(n));
                    ASSERT_NO_FATAL_FAILURE(check(operation, fault, fault[0] == 'f', n));
                }
            }
        }
    }
};

TEST_F(EveryCallFails, OfPlainCopies) { fail_each(plain_copies()); }

// Slow copies: a failure after one is submitted waits for it.
TEST_F(EveryCallFails, AndCopiesInFlightAreWaitedFor) {
    also = "delay=0.01@1+";
    fail_each({copy("async", Variant::async, one.data(), pinned.data(), kSmall),
               copy("wait", Variant::wait, pinned.data(), one.data(), kSmall)});
    const Options awake{.relays = {}, .awake = true};
    fail_each(
        {chunked("awake", Variant::async, one.data(), pageable.data(), kAwake, awake),
         chunked("awake, from GPU", Variant::async, pageable.data(), one.data(), kAwake, awake)},
        of_many());
}

TEST_F(EveryCallFails, OfStagedCopies) {
    fail_each({chunked("to GPU", Variant::copy, one.data(), pageable.data(), kStaged),
               chunked("from GPU", Variant::async, pageable.data(), one.data(), kStaged),
               chunked("between GPUs", Variant::copy, two.data(), one.data(), kStaged,
                       {.peer_access = false})},
              of_many());
}

TEST_F(EveryCallFails, OfCopiesByAwakeThreads) {
    const Options awake{.relays = {}, .awake = true};
    fail_each(
        {chunked("to GPU", Variant::copy, one.data(), pageable.data(), kAwake, awake),
         chunked("to GPU, waits", Variant::wait, one.data(), pageable.data(), kAwake, awake),
         chunked("from GPU", Variant::wait, pageable.data(), one.data(), kAwake, awake),
         chunked("from GPU", Variant::async, pageable.data(), one.data(), kAwake, awake),
         chunked("from GPU, copy", Variant::copy, pageable.data(), one.data(), kAwake, awake)},
        of_many());
}

TEST_F(EveryCallFails, OfRelayedCopies) {
    fail_each({chunked("pinned to GPU", Variant::copy, one.data(), pinned.data(), kRelayed,
                       {.relays = {1}}),
               chunked("GPU to pageable", Variant::async, pageable.data(), one.data(), kRelayed,
                       {.relays = {1}})},
              of_many());
}

// A copy across two registrations is cut at their border.
TEST_F(EveryCallFails, OfCopiesAcrossRegistrations) {
    constexpr std::size_t kPage = 4096;
    auto* const base = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(pageable.data()) + kPage - 1) / kPage * kPage);
    const gpu::Registration first(base, 128 * kKiB, 0);
    const gpu::Registration second(base + 128 * kKiB, 128 * kKiB, 0);
    std::vector<Operation> all;
    for (const Variant variant : {Variant::copy, Variant::wait, Variant::async}) {
        all.push_back(copy("to GPU", variant, one.data(), base, 384 * kKiB));
        all.push_back(copy("from GPU", variant, base, one.data(), 384 * kKiB));
    }
    fail_each(all);
}

TEST_F(EveryCallFails, OfLists) { fail_each(lists()); }

TEST_F(EveryCallFails, OfSubmittedOperations) {
    also = "delay=0.002@1+";
    fail_each(submitted());
}

// Copies of the legacy stream that need another one, and slow: nothing is in flight after a
// failure.
class EveryCallFailsOnTheLegacyStream : public EveryCallFails {
protected:
    EveryCallFailsOnTheLegacyStream() : EveryCallFails(gpu::Stream(0, nullptr)) {
        caller = WAYWISER_LEGACY_STREAM_OF(0);
        also = "delay=0.002@1+";
    }
};

TEST_F(EveryCallFailsOnTheLegacyStream, OfPlainCopies) { fail_each(plain_copies()); }

TEST_F(EveryCallFailsOnTheLegacyStream, OfLists) { fail_each(lists()); }

TEST_F(EveryCallFailsOnTheLegacyStream, OfSubmittedOperations) { fail_each(submitted()); }

// Lists of other kinds than that: gathered by CPUs, through staging memory of a GPU, by a kernel
// with a table, in several groups of which one is in two registrations; and snapshots.
TEST_F(EveryCallFails, OfOtherLists) {
    enum class Call { now, wait, later, snapshot };
    struct List {
        std::string name;
        std::vector<void*> to;
        std::vector<const void*> from;
        std::vector<std::size_t> sizes;
        std::byte* lowest = nullptr;  // of the destination, and the bytes to its end
        std::size_t span = 0;
    };
    const gpu::Registration first(pageable.data() + 8 * kMiB, 64 * kKiB, 0);
    const gpu::Registration second(pageable.data() + 8 * kMiB + 64 * kKiB, 64 * kKiB, 0);
    std::vector<List> lists;
    // `count` pieces; those on the GPU lie apart, in another order.
    const auto add = [&](const char* name, bool in, std::byte* host, std::size_t count,
                         std::size_t bytes) {
        List list{.name = std::string(name) + (in ? " to GPU" : " to host"),
                  .to = {},
                  .from = {},
                  .sizes = {},
                  .lowest = in ? one.data() : host,
                  .span = count * (bytes + (in ? 4 * kKiB : 0))};
        for (std::size_t i = 0; i < count; ++i) {
            std::byte* const gpu = one.data() + (i * 7 % count) * (bytes + 4 * kKiB);
            std::byte* const here = host + i * bytes;
            list.to.push_back(in ? gpu : here);
            list.from.push_back(in ? here : gpu);
            list.sizes.push_back(bytes);
        }
        lists.push_back(std::move(list));
    };
    for (const bool in : {true, false}) {
        add("pageable", in, pageable.data(), 20, 20 * kKiB);
        add("pinned", in, pinned.data(), 40, 4 * kKiB);
        add("contiguous", in, pinned.data(), 64, 64 * kKiB);
        // Pieces of each kind in turn.
        add("mixed", in, pageable.data(), 18, 20 * kKiB);
        List& mixed = lists.back();
        for (std::size_t i = 0; i < mixed.sizes.size(); i += 3) {
            std::byte* const here =
                i == 0 ? pageable.data() + 8 * kMiB + 60 * kKiB : pinned.data() + i * 20 * kKiB;
            if (in) {
                mixed.from[i] = here;
            } else {
                mixed.to[i] = here;
            }
        }
    }
    std::vector<Operation> all;
    for (const List& list : lists) {
        const std::size_t bytes =
            std::accumulate(list.sizes.begin(), list.sizes.end(), std::size_t{0});
        const bool to_gpu = list.name.ends_with("GPU");
        for (const Call call : {Call::now, Call::wait, Call::later, Call::snapshot}) {
            if (call == Call::snapshot && (to_gpu || list.name.starts_with("mixed"))) continue;
            const auto make = [=, this](waywiser_context* context) {
                waywiser_transfer* transfer = nullptr;
                waywiser_status status = WAYWISER_OK;
                const std::size_t count = list.sizes.size();
                if (call == Call::wait) {
                    status = waywiser_copy_batch_and_wait(context, list.to.data(), list.from.data(),
                                                          list.sizes.data(), count, caller,
                                                          test::kHangSeconds, nullptr, &transfer);
                    EXPECT_EQ(transfer, nullptr);
                    return status;
                }
                if (call == Call::snapshot) {
                    status = waywiser_snapshot(context, list.to.data(), list.from.data(),
                                               list.sizes.data(), count, caller, &transfer);
                } else {
                    status = waywiser_copy_batch(context, list.to.data(), list.from.data(),
                                                 list.sizes.data(), count, caller,
                                                 call == Call::later ? &transfer : nullptr);
                }
                return completed(status, transfer, caller, bytes);
            };
            constexpr std::array kNames{" now", " waits", " later", " snapshot"};
            all.push_back({.name = list.name + kNames.at(static_cast<std::size_t>(call)),
                           .call = make,
                           .arrived =
                               [=] {
                                   bool same = true;
                                   for (std::size_t i = 0; i < list.sizes.size(); ++i) {
                                       same =
                                           same && test::same_bytes(
                                                       static_cast<const std::byte*>(list.to[i]),
                                                       static_cast<const std::byte*>(list.from[i]),
                                                       list.sizes[i]);
                                   }
                                   return same;
                               },
                           .clear =
                               [=, this] {
                                   for (std::size_t i = 0; i < list.sizes.size(); ++i) {
                                       test::copy_bytes(
                                           static_cast<std::byte*>(const_cast<void*>(list.from[i])),
                                           content.data() + i, list.sizes[i]);
                                       std::memset(list.to[i], 0, list.sizes[i]);
                                   }
                               },
                           .to = list.lowest,
                           .bytes = list.span});
        }
    }
    fail_each(all, of_many());
}

TEST_F(EveryCallFails, OfFiles) {
    std::vector<Operation> all;
    for (std::byte* const memory : {one.data(), pageable.data(), pinned.data()}) {
        for (const bool async : {false, true}) {
            const auto read = [=, this](waywiser_context* context) {
                std::size_t moved = kSmall;
                waywiser_transfer* transfer = nullptr;
                const waywiser_status status = waywiser_read(
                    context, file, 0, memory, kSmall, caller, &moved, async ? &transfer : nullptr);
                if (status == WAYWISER_OK) {
                    EXPECT_EQ(moved, kSmall);
                }
                return completed(status, transfer, caller, kSmall);
            };
            const auto write = [=, this](waywiser_context* context) {
                waywiser_transfer* transfer = nullptr;
                const waywiser_status status =
                    waywiser_write(context, file, 0, memory, kSmall, 0, caller, nullptr,
                                   async ? &transfer : nullptr);
                return completed(status, transfer, caller, kSmall);
            };
            const auto put = [this](const std::byte* bytes) {
                ASSERT_EQ(pwrite(file, bytes, kSmall, 0), static_cast<ssize_t>(kSmall));
            };
            all.push_back(
                {.name = async ? "read later" : "read",
                 .call = read,
                 .arrived = [=, this] { return test::same_bytes(memory, content.data(), kSmall); },
                 .clear =
                     [=, this] {
                         put(content.data());
                         test::fill_bytes(memory, 0, kSmall);
                     },
                 .to = memory,
                 .bytes = kSmall});
            all.push_back({.name = async ? "write later" : "write",
                           .call = write,
                           .arrived =
                               [=, this] {
                                   std::vector<std::byte> back(kSmall);
                                   return pread(file, back.data(), kSmall, 0) ==
                                              static_cast<ssize_t>(kSmall) &&
                                          test::same_bytes(back.data(), content.data(), kSmall);
                               },
                           .clear =
                               [=, this] {
                                   ASSERT_EQ(ftruncate(file, 0), 0);
                                   test::copy_bytes(memory, content.data(), kSmall);
                               }});
        }
    }
    fail_each(all);
}

TEST_F(EveryCallFails, OfCallsThatCopyNothing) {
    const auto describe = [this](waywiser_context*) {
        waywiser_description description{};
        description.size = sizeof description;
        return waywiser_describe(pinned.data(), kSmall, &description);
    };
    const auto explain = [this](waywiser_context* context) {
        std::array<char, 256> text{};
        return waywiser_explain(context, one.data(), pageable.data(), kStaged, text.data(),
                                text.size());
    };
    const auto explain_batch = [this](waywiser_context* context) {
        void* const to = one.data();
        const void* const from = pinned.data();
        const std::size_t bytes = kSmall;
        std::size_t needed = 0;
        const waywiser_status status =
            waywiser_explain_batch(context, &to, &from, &bytes, 1, nullptr, 0, &needed);
        EXPECT_EQ(needed > 1, status == WAYWISER_OK);
        return status;
    };
    const auto machine = [](waywiser_context*) {
        std::size_t needed = 0;
        return waywiser_machine(nullptr, 0, &needed);
    };
    const auto mark = [this](waywiser_context* context) {
        waywiser_transfer* transfer = nullptr;
        const waywiser_status status = waywiser_mark(context, caller, &transfer);
        return completed(status, transfer, caller, 0);
    };
    const auto create = [](waywiser_context*) { return CContext({.relays = {1}}).status; };
    const auto pin = [](waywiser_context*) {
        void* memory = nullptr;
        const waywiser_status status = waywiser_pinned_alloc(kMiB, -1, &memory);
        EXPECT_EQ(memory != nullptr, status == WAYWISER_OK);
        if (memory != nullptr) std::memset(memory, 1, kMiB);
        waywiser_pinned_free(memory);
        return status;
    };
    fail_each({{.name = "describe", .call = describe},
               {.name = "explain", .call = explain},
               {.name = "explain_batch", .call = explain_batch},
               {.name = "machine", .call = machine},
               {.name = "mark", .call = mark},
               {.name = "create", .call = create},
               {.name = "pin", .call = pin}});
}

}  // namespace
}  // namespace waywiser
