// Lists of pieces: their checks, the method that moves them, and that every byte arrives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "case_stride.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "transfer/copy.hpp"
#include "transfer/discover.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/list_method.hpp"
#include "transfer/piece_list.hpp"
#include "transfer/staged_list.hpp"
#include "units.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

CopyList list_of_pieces(const std::vector<Piece>& pieces) {
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> sizes;
    for (const Piece& piece : pieces) {
        to.push_back(piece.to);
        from.push_back(piece.from);
        sizes.push_back(piece.bytes);
    }
    return list_of(to, from, sizes);
}

TEST(CopyLists, SkipEmptyPiecesAndMergeNeighbours) {
    const CopyList list = list_of_pieces({{at(0x1000), at(0x9000), 16},
                                          {nullptr, nullptr, 0},
                                          {at(0x1010), at(0x9010), 16},
                                          {at(0x1020), at(0x9030), 16}});
    ASSERT_EQ(list.pieces.size(), 3U);
    const auto joined = merged(list.pieces);
    ASSERT_EQ(joined.size(), 2U);
    EXPECT_EQ(joined[0].bytes, 32U);
    EXPECT_EQ(merged_count(list.pieces), 2U);
    EXPECT_EQ(merged_count({}), 0U);
    EXPECT_EQ(bytes_of(list.pieces), 48U);
    EXPECT_EQ(common_run(list.pieces), 16U);
}

TEST(CopyLists, RejectOverlaps) {
    // Destinations that overlap, a source in a destination, a destination in a source, and one that
    // overlaps only an earlier source, which is longer.
    EXPECT_THROW(list_of_pieces({{at(0x1000), at(0x9000), 32}, {at(0x101f), at(0xa000), 16}}),
                 InvalidCopy);
    EXPECT_THROW(list_of_pieces({{at(0x1000), at(0x100f), 16}}), InvalidCopy);
    EXPECT_THROW(list_of_pieces({{at(0x1000), at(0x8000), 16}, {at(0x8008), at(0xa000), 4}}),
                 InvalidCopy);
    EXPECT_THROW(list_of_pieces({{at(0x100000), at(0x8000), 0x1000},
                                 {at(0x200000), at(0x8010), 16},
                                 {at(0x8f00), at(0xa000), 16}}),
                 InvalidCopy);
    EXPECT_NO_THROW(list_of_pieces({{at(0x1000), at(0x1010), 16}, {at(0x1020), at(0x1010), 16}}));
    EXPECT_THROW(list_of_pieces({{nullptr, at(0x10), 16}}), InvalidCopy);
    EXPECT_THROW(list_of_pieces({{at(0x10), at(0x1000), ~std::size_t{0}}}), InvalidCopy);
}

// The same check by comparing every pair.
bool overlap_by_pairs(const std::vector<Piece>& pieces) {
    const auto meet = [](const std::byte* a, std::size_t a_bytes, const std::byte* b,
                         std::size_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        for (std::size_t j = 0; j < pieces.size(); ++j) {
            const Piece& one = pieces[i];
            const Piece& other = pieces[j];
            if (meet(one.to, one.bytes, other.from, other.bytes)) return true;
            if (i != j && meet(one.to, one.bytes, other.to, other.bytes)) return true;
        }
    }
    return false;
}

TEST(CopyLists, FindEveryOverlap) {
    std::minstd_rand random(3);
    std::size_t rejected = 0;
    constexpr std::size_t kCases = 20000;
    for (std::size_t i = 0; i < kCases; ++i) {
        std::vector<Piece> pieces(1 + random() % 5);
        for (Piece& piece : pieces) {
            piece = {at(0x1000 + random() % 80), at(0x1000 + random() % 80), 1 + random() % 8};
        }
        bool said = false;
        try {
            list_of_pieces(pieces);
        } catch (const InvalidCopy&) {
            said = true;
        }
        ASSERT_EQ(said, overlap_by_pairs(pieces)) << "case " << i;
        rejected += said ? 1 : 0;
    }
    EXPECT_GT(rejected, kCases / 10);
    EXPECT_LT(rejected, kCases * 9 / 10);
}

TEST(CopyLists, CheckBlocks) {
    const std::vector<std::int64_t> good{2, 0};
    const auto side = [](std::uintptr_t address, std::size_t blocks,
                         std::span<const std::int64_t> index) {
        return Blocks{.data = at(address), .stride = 64, .blocks = blocks, .index = index};
    };
    CopyList list = list_of(side(0x1000, 3, good), side(0x9000, 3, good), 48);
    EXPECT_TRUE(list.pieces.empty()) << "made although the arrays are apart";
    EXPECT_EQ(list.count(), 2U);
    EXPECT_EQ(list.bytes(), 96U);
    std::vector<Piece> capacity;
    EXPECT_EQ(list.part(0, 1, capacity).size(), 1U);
    const std::span<const Piece> second = list.part(1, 5, capacity);
    ASSERT_EQ(second.size(), 1U);
    EXPECT_EQ(second[0].from, at(0x9000));
    list.make_pieces();
    ASSERT_EQ(list.pieces.size(), 2U);
    EXPECT_EQ(list.count(), 2U);
    EXPECT_EQ(list.pieces[0].to, at(0x1080));
    EXPECT_EQ(list.pieces[1].bytes, 48U);
    EXPECT_EQ(list.to.bytes, 176U);
    const std::vector<std::int64_t> outside{3, 0};
    const std::vector<std::int64_t> negative{-1, 0};
    const std::vector<std::int64_t> twice{1, 1};
    for (const auto& wrong : {outside, negative}) {
        EXPECT_THROW(list_of(side(0x1000, 3, wrong), side(0x9000, 3, good), 48), InvalidCopy);
        EXPECT_THROW(list_of(side(0x1000, 3, good), side(0x9000, 3, wrong), 48), InvalidCopy);
    }
    EXPECT_THROW(list_of(side(0x1000, 3, twice), side(0x9000, 3, good), 48), InvalidCopy);
    EXPECT_NO_THROW(list_of(side(0x1000, 3, good), side(0x9000, 3, twice), 48));
    EXPECT_THROW(list_of(side(0x1000, 3, good), side(0x9000, 3, good), 65), InvalidCopy);
    EXPECT_THROW(list_of(side(~std::uintptr_t{0} - 100, 3, good), side(0x9000, 3, good), 48),
                 InvalidCopy);
    // Blocks of one array: disjoint, and overlapping.
    const std::vector<std::int64_t> other{1, 3};
    EXPECT_NO_THROW(list_of(side(0x1000, 4, good), side(0x1000, 4, other), 64));
    EXPECT_THROW(list_of(side(0x1000, 4, good), side(0x1000, 4, twice), 65), InvalidCopy);
    EXPECT_THROW(list_of(side(0x1000, 4, good), side(0x1020, 4, other), 64), InvalidCopy);
}

TEST(CopyLists, FindEveryWrongIndex) {
    std::mt19937_64 random(26);
    constexpr std::size_t kBlocks = 3000;
    constexpr std::size_t kStride = 64;
    const auto side = [](std::uintptr_t address, std::span<const std::int64_t> index) {
        return Blocks{.data = at(address), .stride = kStride, .blocks = kBlocks, .index = index};
    };
    const std::vector<std::int64_t> wrong{-1, static_cast<std::int64_t>(kBlocks),
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
    for (std::size_t number = 0; number < 40; ++number) {
        std::vector<std::int64_t> good(kBlocks);
        std::iota(good.begin(), good.end(), std::int64_t{0});
        std::vector<std::int64_t> index = good;
        if (number % 2 == 0) std::ranges::shuffle(index, random);
        const std::size_t where = number < 4 ? number * (kBlocks - 1) / 3 : random() % kBlocks;
        // All at once, or some of both sides, of the source alone, and the rest.
        const auto checked = [&](std::span<const std::int64_t> to,
                                 std::span<const std::int64_t> from) {
            CopyList list = blocks_of(side(0x100000, to), side(0x900000, from), kStride);
            if (number % 3 > 0) {
                std::size_t first = 1 + random() % kBlocks;
                list.check_first(first);
                first += random() % (kBlocks - first + 1);
                list.check_source(first);
                if (number % 3 > 1) list.check_first(first);
            }
            list.check();
            return list;
        };
        const auto lists = [&](std::span<const std::int64_t> one) { return checked(one, good); };
        EXPECT_EQ(lists(index).to_blocks.step, number % 2 == 0 ? 0U : 1U);
        EXPECT_EQ(checked(good, index).from_blocks.step, number % 2 == 0 ? 0U : 1U);
        std::vector<std::int64_t> bad = index;
        bad[where] = wrong[number % wrong.size()];
        EXPECT_THROW(lists(bad), InvalidCopy);
        EXPECT_NO_THROW(blocks_of(side(0x100000, bad), side(0x900000, bad), kStride))
            << "the indexes are checked later";
        EXPECT_THROW(checked(good, bad), InvalidCopy);
        CopyList ahead = blocks_of(side(0x100000, good), side(0x900000, bad), kStride);
        EXPECT_NO_THROW(ahead.check_first(where));
        EXPECT_THROW(ahead.check_first(where + 1), InvalidCopy);
        bad = index;
        bad[where] = bad[where == 0 ? 1 : where - 1];
        EXPECT_THROW(lists(bad), InvalidCopy) << "twice";
    }
    // A regular index whose last entries are out of range, or whose numbers overflow.
    const std::vector<std::int64_t> beyond{1, 1001, 2001, 3001};
    EXPECT_THROW(list_of(side(0x100000, beyond), side(0x900000, beyond), 64), InvalidCopy);
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::vector<std::int64_t> around{-kMost, 0, kMost};
    EXPECT_EQ(step_of(around), static_cast<std::size_t>(kMost));
    EXPECT_THROW(list_of(side(0x100000, around), side(0x900000, around), 64), InvalidCopy);
    EXPECT_EQ(step_of(std::vector<std::int64_t>{5, 4}), 0U);
    EXPECT_EQ(step_of(std::vector<std::int64_t>{5}), 0U);
}

ListTraits traits(ListPath path, std::size_t piece, std::size_t count, std::size_t access = 16) {
    return {.path = path, .bytes = piece * count, .merged = count, .run = piece, .access = access};
}

TEST(ListMethods, FollowTheCosts) {
    const auto method = [](const ListTraits& list, bool spare = false) {
        return choose_list_method(list, {.multiprocessors = 132, .spare_engine = spare}).method;
    };
    for (const ListPath path : {ListPath::from_host, ListPath::to_host}) {
        EXPECT_EQ(method(traits(path, kKiB, 4096)), ListMethod::kernel);
        EXPECT_EQ(method(traits(path, 28 * kKiB, 4096)), ListMethod::kernel);
        EXPECT_EQ(method(traits(path, 64 * kKiB, 4096)), ListMethod::batch);
        EXPECT_EQ(method(traits(path, kMiB, 512)), ListMethod::batch);
        EXPECT_EQ(method(traits(path, kKiB, 3)), ListMethod::copies);
        // Pieces that threads can only move byte by byte are left to the copy engine.
        EXPECT_EQ(method(traits(path, 28 * kKiB, 4096, 1)), ListMethod::batch);
        EXPECT_EQ(method(traits(path, kMiB, 512), true), ListMethod::kernel);
        EXPECT_EQ(method(traits(path, 8, 4096, 8)), ListMethod::batch);
        ListTraits regular = traits(path, 8, 4096, 8);
        regular.to_pitch = regular.from_pitch = 64;
        EXPECT_EQ(method(regular), ListMethod::kernel);
        // As many as fill the link.
        EXPECT_EQ(choose_list_method(traits(path, kKiB, 1 << 20), {.multiprocessors = 132}).blocks,
                  2U);
        EXPECT_EQ(choose_list_method(traits(path, kKiB, 1 << 20), {.multiprocessors = 1}).blocks,
                  1U);
        // And one that disturbs other kernels less.
        EXPECT_EQ(choose_list_method(traits(path, kKiB, 1 << 20),
                                     {.multiprocessors = 132, .most_over_link = 1})
                      .blocks,
                  1U);
        ListTraits contiguous = traits(path, kKiB, 1 << 20);
        contiguous.host_contiguous = true;
        EXPECT_EQ(choose_list_method(contiguous, {.multiprocessors = 132}).blocks, 1U);
    }
    EXPECT_EQ(method(traits(ListPath::between_gpus, kKiB, 4096)), ListMethod::batch);
    EXPECT_EQ(method(traits(ListPath::within_gpu, kKiB, 4096)), ListMethod::kernel);
    EXPECT_EQ(
        choose_list_method(traits(ListPath::within_gpu, kKiB, 1 << 20), {.multiprocessors = 132})
            .blocks,
        132U);
    // The costs decide: if the copy engine's pieces cost nothing, no kernel is used.
    EXPECT_EQ(choose_list_method(traits(ListPath::from_host, kKiB, 4096), {.multiprocessors = 132},
                                 {.engine_seconds_per_piece = 0, .engine_seconds_before = 0})
                  .method,
              ListMethod::batch);
}

TEST(ListMethods, ReadTheTraitsOfPieces) {
    const std::vector<Piece> pieces{{at(0x1000), at(0x9000), 48}, {at(0x1108), at(0x9800), 32}};
    const ListTraits found = traits_of(pieces, ListPath::from_host);
    EXPECT_EQ(found.bytes, 80U);
    EXPECT_EQ(found.run, 16U);
    EXPECT_EQ(found.access, 8U);
    const std::vector<Piece> odd{{at(0x1002), at(0x9000), 48}};
    EXPECT_EQ(traits_of(odd, ListPath::from_host).access, 1U);
}

// An allocation of the GPU may begin at any piece of a list that is contiguous in host memory.
TEST(ListMethods, SeeRegistrationsOfTheHostAlone) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < 8; ++i) {
        pieces.push_back({at(0x10000 + i * kKiB), at(0x90000 + (i * 5 + 5) % 8 * 2 * kKiB), kKiB});
    }
    EXPECT_TRUE(traits_of(pieces, ListPath::to_host).host_contiguous);
    pieces[3].from_begins = true;
    EXPECT_TRUE(traits_of(pieces, ListPath::to_host).host_contiguous);
    pieces[4].to_begins = true;
    EXPECT_FALSE(traits_of(pieces, ListPath::to_host).host_contiguous);
}

TEST(ListMethods, DetectEquallySpacedPieces) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < 5; ++i)
        pieces.push_back({at(0x1000 + 64 * i), at(0x9000 - 32 * i), 8});
    EXPECT_EQ(pitch_of(pieces, ListSide::to), 64U);
    EXPECT_EQ(pitch_of(pieces, ListSide::from), 0U);
    EXPECT_EQ(traits_of(pieces, ListPath::to_host).table_entries(), 5U);
    pieces[3].to += 8;
    EXPECT_EQ(pitch_of(pieces, ListSide::to), 0U);
    pieces[3].to -= 8;
    pieces[4].bytes = 16;
    EXPECT_EQ(pitch_of(pieces, ListSide::to), 0U);
    EXPECT_EQ(lowest(pieces, ListSide::from), at(0x9000 - 128));
}

// A kernel moves blocks without making pieces: the traits of both must be equal.
TEST(ListMethods, ReadOfBlocksWhatTheirPiecesShow) {
    std::mt19937_64 random(7);
    std::size_t regular = 0;
    std::size_t with_merged = 0;
    for (int i = 0; i < 2000; ++i) {
        const std::size_t block = 16 * (1 + random() % 4);
        const std::size_t count = 1 + random() % 40;
        const auto make = [&] {
            std::vector<std::int64_t> index(3 * count);
            std::iota(index.begin(), index.end(), std::int64_t{0});
            if (random() % 2 == 0) std::shuffle(index.begin(), index.end(), random);
            if (random() % 4 == 0) std::ranges::for_each(index, [](auto& one) { one *= 2; });
            index.resize(count);
            return index;
        };
        const std::vector<std::int64_t> to = make();
        const std::vector<std::int64_t> from = make();
        const std::size_t gap = random() % 2 * 16;
        const CopyList list = list_of(
            {.data = at(0x10000), .stride = block + gap, .blocks = 6 * count, .index = to},
            {.data = at(0x900000), .stride = block, .blocks = 6 * count, .index = from}, block);
        ASSERT_EQ(list.block, block);
        std::vector<Piece> capacity;
        const ListPart part(list, random() % count, 1 + random() % count, capacity);
        const ListTraits found = part.traits(ListPath::from_host);
        const std::vector<Piece> pieces(part.pieces().begin(), part.pieces().end());
        const ListTraits expected = traits_of(pieces, ListPath::from_host);
        EXPECT_EQ(found.bytes, expected.bytes);
        EXPECT_EQ(found.merged, expected.merged);
        EXPECT_EQ(found.run, expected.run);
        EXPECT_EQ(expected.access % found.access, 0U);
        EXPECT_EQ(found.to_pitch, expected.to_pitch);
        EXPECT_EQ(found.from_pitch, expected.from_pitch);
        regular += found.to_pitch != 0 ? 1U : 0U;
        with_merged += found.merged < pieces.size() ? 1U : 0U;
        for (const ListSide side : {ListSide::to, ListSide::from}) {
            std::vector<std::size_t> offsets(part.count());
            std::byte* const base = part.base(side, 0);
            part.write_offsets(found.run, side, base, offsets.data());
            const std::size_t pitch = side == ListSide::to ? found.to_pitch : found.from_pitch;
            for (std::size_t n = 0; n < pieces.size(); ++n) {
                const std::byte* const piece = side == ListSide::to ? pieces[n].to : pieces[n].from;
                ASSERT_EQ(base + offsets[n], piece);
                if (pitch != 0) {
                    ASSERT_EQ(part.base(side, pitch) + n * pitch, piece);
                }
            }
        }
    }
    EXPECT_GT(regular, 100U);
    EXPECT_GT(with_merged, 100U);
}

// Memory of every kind, for pieces of lists.
class Arena {
public:
    static constexpr std::size_t kKinds = 6;
    static constexpr const char* kNames[kKinds] = {"gpu:0",   "gpu:1",    "pinned",
                                                   "managed", "pageable", "two registrations"};
    explicit Arena(std::size_t bytes)
        : devices_{gpu::DeviceBuffer(0, bytes), gpu::DeviceBuffer(1, bytes)},
          pinned_(bytes, gpu::HostUse::portable, 0),
          managed_(bytes, 0),
          pageable_(bytes),
          two_(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes))),
          first_(two_.get(), bytes / 2, 0),
          second_(two_.get() + bytes / 2, bytes / 2, 0) {}
    [[nodiscard]] std::byte* of(std::size_t kind) {
        switch (kind) {
            case 0:
            case 1: return devices_[kind].data();
            case 2: return pinned_.data();
            case 3: return managed_.data();
            case 4: return pageable_.data();
            default: return two_.get();
        }
    }

private:
    static constexpr std::size_t kPage = 4096;
    struct Free {
        void operator()(std::byte* data) const noexcept { std::free(data); }
    };
    gpu::DeviceBuffer devices_[2];
    gpu::HostBuffer pinned_;
    gpu::ManagedBuffer managed_;
    std::vector<std::byte> pageable_;
    // The runtime rejects a copy across both, as it does across two allocations.
    std::unique_ptr<std::byte, Free> two_;
    gpu::Registration first_;
    gpu::Registration second_;
};

class Lists : public test::OnFake {};

// Random lists with real bytes over all kinds of memory, with and without peer access, in the
// stream and asynchronously: every byte arrives, and none between the pieces is changed.
TEST_F(Lists, BringEveryByteAndTouchNoOther) {
    constexpr int kCases = 900;
    constexpr std::size_t kBufferBytes = 512 * kKiB;
    std::mt19937 random(20261122);
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
    for (const char* lacks : {"", ";no_peers=all", ";without=batch"}) {
        fake::configure(std::string("devices=2;latency=0;event=0;piece=0;h2d=200;d2h=200;d2d=500;"
                                    "peer=500;staged=200") +
                        lacks);
        Arena arena(kBufferBytes);
        const gpu::Stream streams[2] = {gpu::Stream(0), gpu::Stream(1)};
        for (int number = 0; number < static_cast<int>(kCases / 3 / test::case_stride());
             ++number) {
            static const std::vector<std::byte> source = [] {
                std::vector<std::byte> made(kBufferBytes);
                std::minstd_rand bytes(5);
                for (std::byte& byte : made) byte = static_cast<std::byte>(bytes() >> 7);
                return made;
            }();
            waywiser::Context context({.threads = 2,
                                       .pinned_bytes = pick(2) == 0 ? 0U : std::size_t{2} * kMiB,
                                       .max_queued_bytes = pick(4) == 0 ? 64 * kKiB : 0});
            const std::size_t a = pick(Arena::kKinds);
            const std::size_t b = pick(Arena::kKinds);
            const bool same = a == b;
            // Pieces of one array are copied to its second half.
            const std::size_t capacity = same ? kBufferBytes / 2 : kBufferBytes;
            const std::size_t unit = std::size_t{1} << pick(14);
            const std::size_t slots = capacity / unit;
            const std::size_t count = std::min(1 + pick(pick(3) == 0 ? 4 : 400), slots);
            const std::size_t shift = same || unit < 32 ? 0 : pick(3) * 8;
            std::vector<std::size_t> to_slots(slots);
            std::iota(to_slots.begin(), to_slots.end(), std::size_t{0});
            const bool in_order = pick(2) == 0;
            if (pick(3) != 0) std::ranges::shuffle(to_slots, random);
            std::byte* const to = arena.of(a) + (same ? kBufferBytes / 2 : 0);
            std::byte* const from = arena.of(b);
            test::copy_bytes(from, source.data(), capacity);
            std::vector<std::byte> expected(capacity, std::byte{0x5A});
            test::copy_bytes(to, expected.data(), capacity);
            std::vector<void*> tos;
            std::vector<const void*> froms;
            std::vector<std::size_t> sizes;
            const bool equal = pick(3) != 0;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t out = to_slots[i] * unit + shift;
                const std::size_t in = (in_order ? i : pick(slots)) * unit;
                const std::size_t bytes = equal ? unit - shift : pick(unit - shift + 1);
                tos.push_back(to + out);
                froms.push_back(from + in);
                sizes.push_back(bytes);
                test::copy_bytes(expected.data() + out, source.data() + in, bytes);
            }
            const gpu::Stream& stream = streams[pick(2)];
            const bool legacy = pick(4) == 0;
            void* const handle = legacy ? WAYWISER_LEGACY_STREAM_OF(0) : stream.handle();
            if (pick(2) == 0) {
                context.copy_batch(tos, froms, sizes, handle);
            } else {
                const auto transfer = context.copy_batch_async(tos, froms, sizes, handle);
                EXPECT_EQ(transfer.result(), list_of(tos, froms, sizes).bytes());
            }
            for (const int device : {0, 1}) gpu::synchronize_device(device);
            const auto differs = std::ranges::mismatch(expected, std::span(to, capacity)).in1;
            ASSERT_EQ(differs, expected.end())
                << "case " << number << lacks << ": byte " << differs - expected.begin() << " from "
                << Arena::kNames[b] << " to " << Arena::kNames[a] << ", " << count << " pieces of "
                << unit << (legacy ? ", legacy stream" : "");
        }
    }
}

// What explain_batch() says of every kind of memory is what copy_batch() does, and it does nothing.
TEST_F(Lists, AreExplainedAsTheyAreCopied) {
    constexpr std::size_t kUnit = 2 * kKiB;
    constexpr std::size_t kCount = 40;
    const auto numbers_before = [](const std::string& text, const std::string& word) {
        const std::size_t at = text.find(word);
        if (at == std::string::npos) return std::size_t{0};
        const std::size_t start = text.find_last_not_of("0123456789", at - 1) + 1;
        return static_cast<std::size_t>(std::stoul(text.substr(start, at - start)));
    };
    for (const char* lacks : {"", ";no_peers=all", ";without=batch"}) {
        fake::configure(std::string("devices=2;latency=0;event=0;piece=0") + lacks);
        Arena arena(2 * kCount * kUnit);
        Arena other(2 * kCount * kUnit);
        for (std::size_t a = 0; a < Arena::kKinds; ++a) {
            for (std::size_t b = 0; b < Arena::kKinds; ++b) {
                std::vector<void*> to;
                std::vector<const void*> from;
                for (std::size_t i = 0; i < kCount; ++i) {
                    to.push_back(arena.of(a) + i * kUnit);
                    from.push_back(other.of(b) + 2 * i * kUnit);
                }
                const std::vector<std::size_t> sizes(kCount, kUnit);
                const std::size_t of_host = b < 2 ? b : 0;
                const std::size_t gpu = a < 2 ? a : of_host;
                const waywiser::Context context({.threads = 2, .policy = "off"});
                const auto before = fake::counts();
                const std::string text = context.explain_batch(to, from, sizes);
                EXPECT_EQ(fake::counts().copies, before.copies);
                EXPECT_EQ(fake::counts().launches, before.launches);
                waywiser::detail::check_transfer(
                    waywiser_copy_batch(context.get(), to.data(), from.data(), sizes.data(), kCount,
                                        WAYWISER_PER_THREAD_STREAM_OF(gpu), nullptr));
                for (const int device : {0, 1}) gpu::synchronize_device(device);
                const std::size_t copies = fake::counts().copies - before.copies;
                const std::size_t launches = fake::counts().launches - before.launches;
                const std::string shown = text + lacks + ": " + std::to_string(copies) +
                                          " copies, " + std::to_string(launches) + " launches";
                EXPECT_EQ(text.find('\n'), std::string::npos) << shown;
                EXPECT_EQ(numbers_before(text, " pieces of 2 KiB, "), kCount) << shown;
                const auto says = [&](const char* part) {
                    return text.find(part) != std::string::npos;
                };
                if (says("moved by")) {
                    EXPECT_EQ(launches, 1U) << shown;
                } else if (says("one call of the runtime")) {
                    EXPECT_EQ(copies, 1U) << shown;
                    EXPECT_EQ(launches, 0U) << shown;
                } else if (says("one copy for each piece: a side is in several registrations")) {
                    EXPECT_GE(copies, 1U) << shown;
                    EXPECT_EQ(launches, 0U) << shown;
                } else if (says("one copy for each piece")) {
                    EXPECT_EQ(copies, kCount) << shown;
                    EXPECT_EQ(launches, 0U) << shown;
                } else if (says("between host memories")) {
                    EXPECT_EQ(copies + launches, 0U) << shown;
                } else {
                    EXPECT_TRUE(says("through pinned slots")) << shown;
                    EXPECT_GE(copies + launches, 1U) << shown;
                }
            }
        }
    }
}

// Chunks cut pieces, and slots are larger than lists, and smaller.
TEST_F(Lists, ThroughSlotsOfAnySize) {
    const auto engine_owner =
        Engine::make(discover_machine(), {.threads = 2, .pinned_bytes = 4 * kMiB});
    Engine& engine = *engine_owner;
    for (const std::size_t run : {std::size_t{16}, std::size_t{48}, kKiB, 20 * kKiB, 700 * kKiB}) {
        for (const std::size_t slot : {128 * kKiB, 256 * kKiB}) {
            const std::size_t count = kMiB / run;
            const auto seed = static_cast<unsigned>(run + slot);
            std::vector<std::byte> host = test::sequence(2 * count * run, seed);
            const gpu::DeviceBuffer device(0, host.size());
            const gpu::DeviceBuffer other(1, host.size());
            std::vector<std::byte> back(host.size());
            std::vector<Piece> in;
            std::vector<Piece> across;
            std::vector<Piece> out;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t here = 2 * i * run;
                const std::size_t there = 2 * (count - 1 - i) * run;
                in.push_back({device.data() + there, host.data() + here, run});
                across.push_back({other.data() + here, device.data() + there, run});
                out.push_back({back.data() + here, other.data() + here, run});
            }
            const auto list = [](const std::vector<Piece>& pieces) {
                CopyList made;
                made.pieces = pieces;
                return made;
            };
            const Endpoint memory = Endpoint::host(host.data(), false);
            const Endpoint first = Endpoint::device(device.data(), 0);
            const Endpoint second = Endpoint::device(other.data(), 1);
            engine.run(std::make_shared<StagedList>(engine, first, memory, list(in), slot),
                       Engine::Until::done);
            engine.run(std::make_shared<StagedList>(engine, second, first, list(across), slot),
                       Engine::Until::done);
            engine.run(std::make_shared<StagedList>(engine, memory, second, list(out), slot),
                       Engine::Until::done);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_TRUE(
                    test::same_bytes(back.data() + 2 * i * run, host.data() + 2 * i * run, run))
                    << "piece " << i << " of " << run << ", slots of " << slot;
            }
        }
    }
}

TEST_F(Lists, GoAroundWhatFails) {
    constexpr std::size_t kPieces = 64;
    constexpr std::size_t kPiece = 4 * kKiB;
    for (const char* fault :
         {"fail=launch", "fail=copy", "fail=event", "fail=alloc", "oom_at=1+"}) {
        fake::reset();
        const gpu::HostBuffer host(kPieces * kPiece, gpu::HostUse::portable, 0);
        const gpu::DeviceBuffer device(0, 2 * kPieces * kPiece);
        std::memset(host.data(), 0x3C, kPieces * kPiece);
        const gpu::Stream stream(0);
        waywiser::Context context({.threads = 2, .pinned_bytes = 4 * kMiB});
        std::vector<void*> to;
        std::vector<const void*> from;
        for (std::size_t i = 0; i < kPieces; ++i) {
            const std::size_t place = i * 5 % kPieces;  // irregular: its kernel has a table
            to.push_back(device.data() + 2 * place * kPiece);
            from.push_back(host.data() + i * kPiece);
        }
        const std::vector<std::size_t> sizes(kPieces, kPiece);
        fake::configure(fault);
        bool failed = false;
        try {
            context.copy_batch(to, from, sizes, stream.handle());
        } catch (const TransferError& error) {
            failed = true;
            EXPECT_EQ(error.status(), WAYWISER_GPU) << fault;
        }
        fake::reset();
        if (failed) context.copy_batch(to, from, sizes, stream.handle());
        stream.synchronize();
        for (std::size_t i = 0; i < kPieces; ++i) {
            ASSERT_TRUE(test::same_bytes(to[i], from[i], kPiece)) << fault << ", piece " << i;
        }
        const std::string what = fault;
        // A kernel is launched, and its table is copied. Without memory for tables, the copy engine
        // moves the pieces.
        if (what == "fail=launch" || what == "fail=copy") {
            EXPECT_TRUE(failed) << fault;
        }
        if (what.starts_with("oom")) {
            EXPECT_FALSE(failed) << fault;
        }
    }
}

// Blocks of pageable memory, scattered on both sides, in an order of which neighbours are no
// neighbours.
struct PageableBlocks {
    static constexpr std::size_t kBlocks = 2048;
    static constexpr std::size_t kBlock = 4 * kKiB;
    std::vector<std::byte> host = std::vector<std::byte>(2 * kBlocks * kBlock);
    std::vector<std::byte> back = std::vector<std::byte>(2 * kBlocks * kBlock);
    gpu::DeviceBuffer device{0, 2 * kBlocks * kBlock};
    std::vector<std::int64_t> on_host, on_gpu;

    PageableBlocks() {
        std::minstd_rand random(5);
        for (std::byte& byte : host) byte = static_cast<std::byte>(random() >> 7);
        on_host.resize(kBlocks);
        std::iota(on_host.begin(), on_host.end(), std::int64_t{0});
        on_gpu = on_host;
        for (std::size_t i = 0; i < kBlocks; ++i) {
            on_host[i] *= 2;
            on_gpu[i] = 2 * (on_gpu[i] * 5 % static_cast<std::int64_t>(kBlocks)) + 1;
        }
    }
    void copy(waywiser::Context& context, bool to_gpu, const gpu::Stream& stream) {
        std::byte* const memory = to_gpu ? host.data() : back.data();
        waywiser::detail::check_transfer(waywiser_copy_blocks(
            context.get(), to_gpu ? device.data() : memory, kBlock, 2 * kBlocks,
            to_gpu ? memory : device.data(), kBlock, 2 * kBlocks, kBlock,
            (to_gpu ? on_gpu : on_host).data(), (to_gpu ? on_host : on_gpu).data(), kBlocks,
            stream.handle(), nullptr));
    }
    [[nodiscard]] bool are_back() const {
        return std::ranges::all_of(on_host, [&](std::int64_t block) {
            const std::size_t at = static_cast<std::size_t>(block) * kBlock;
            return std::memcmp(back.data() + at, host.data() + at, kBlock) == 0;
        });
    }
};

// Through staging memory of the GPU: what crosses the link are whole chunks.
TEST_F(Lists, OfPageableMemoryCrossTheLinkTogether) {
    PageableBlocks blocks;
    const gpu::Stream stream(0);
    waywiser::Context context({.threads = 2, .policy = "off"});
    for (const bool to_gpu : {true, false}) {
        const auto before = fake::counts();
        blocks.copy(context, to_gpu, stream);
        EXPECT_LE(fake::counts().copies - before.copies, PageableBlocks::kBlocks / 16);
        EXPECT_GE(fake::counts().launches, before.launches + 1);
    }
    EXPECT_TRUE(blocks.are_back());
}

TEST_F(Lists, OfPageableMemoryGoAroundWhatFails) {
    for (const char* fault :
         {"fail=launch", "fail=copy", "fail=event", "fail=alloc", "oom_at=1+"}) {
        fake::reset();
        PageableBlocks blocks;
        const gpu::Stream stream(0);
        waywiser::Context context({.threads = 2, .pinned_bytes = 4 * kMiB, .policy = "off"});
        for (const bool to_gpu : {true, false}) {
            fake::configure(fault);
            bool failed = false;
            try {
                blocks.copy(context, to_gpu, stream);
            } catch (const TransferError& error) {
                failed = true;
                EXPECT_EQ(error.status(), WAYWISER_GPU) << fault;
            }
            fake::reset();
            if (failed) blocks.copy(context, to_gpu, stream);
        }
        EXPECT_TRUE(blocks.are_back()) << fault;
    }
}

TEST_F(Lists, OfPageableMemoryWithoutStagingOfTheGpu) {
    fake::configure("memory=20");  // 16 MiB are those of the blocks
    PageableBlocks blocks;
    const gpu::Stream stream(0);
    waywiser::Context context({.threads = 2, .policy = "off"});
    blocks.copy(context, true, stream);
    blocks.copy(context, false, stream);
    EXPECT_TRUE(blocks.are_back());
}

// The wrong entry is found while the GPU moves the first blocks: the call ends when they are moved,
// and writes no block that the index does not name.
TEST_F(Lists, EndWithTheFirstBlocksIfALaterIndexIsWrong) {
    constexpr std::size_t kBlocks = 70000;
    constexpr std::size_t kBlock = 256;
    const gpu::HostBuffer host((kBlocks + 1) * kBlock, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, (kBlocks + 1) * kBlock);
    const gpu::Stream stream(0);
    std::vector<std::int64_t> ascending(kBlocks);
    std::iota(ascending.begin(), ascending.end(), std::int64_t{0});
    std::vector<std::int64_t> irregular = ascending;
    std::swap(irregular[2], irregular[7]);
    for (const bool to_gpu : {true, false}) {
        // Of the GPU's side, of the host's, and the destination's fifth block once more.
        for (const int wrong : {0, 1, 2}) {
            const bool of_gpu = wrong == 2 ? to_gpu : wrong == 0;
            waywiser::Context context({.threads = 2, .policy = "off"});
            std::memset(host.data(), 0x11, host.bytes());
            std::memset(device.data(), 0x22, device.bytes());
            std::vector<std::int64_t> gpus = irregular;
            std::vector<std::int64_t> hosts = ascending;
            std::int64_t& entry = (of_gpu ? gpus : hosts)[kBlocks - 3];
            const std::int64_t right = std::exchange(
                entry, wrong == 2 ? std::int64_t{5} : static_cast<std::int64_t>(kBlocks));
            const auto copy = [&] {
                return waywiser_copy_blocks(context.get(), to_gpu ? device.data() : host.data(),
                                            kBlock, kBlocks, to_gpu ? host.data() : device.data(),
                                            kBlock, kBlocks, kBlock, (to_gpu ? gpus : hosts).data(),
                                            (to_gpu ? hosts : gpus).data(), kBlocks,
                                            stream.handle(), nullptr);
            };
            EXPECT_EQ(copy(), WAYWISER_INVALID);
            EXPECT_TRUE(stream.done()) << "the memory can be freed";
            const std::byte* const written = to_gpu ? device.data() : host.data();
            EXPECT_TRUE(std::ranges::all_of(
                std::span(written + kBlocks * kBlock, kBlock), [&](std::byte byte) {
                    return byte == static_cast<std::byte>(to_gpu ? 0x22 : 0x11);
                }));
            entry = right;
            EXPECT_EQ(copy(), WAYWISER_OK);
            stream.synchronize();
            for (std::size_t i = 0; i < kBlocks; ++i) {
                ASSERT_EQ(
                    std::memcmp(host.data() + static_cast<std::size_t>(hosts[i]) * kBlock,
                                device.data() + static_cast<std::size_t>(gpus[i]) * kBlock, kBlock),
                    0)
                    << i;
            }
        }
    }
}

// Behind work that does not end the call still ends.
TEST_F(Lists, AreCheckedBeforeTheyAreMovedBehindOtherWork) {
    constexpr std::size_t kBlocks = 40000;
    constexpr std::size_t kBlock = 64;
    const gpu::HostBuffer host(kBlocks * kBlock, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kBlocks * kBlock);
    const gpu::Stream stream(0);
    std::vector<std::int64_t> ascending(kBlocks);
    std::iota(ascending.begin(), ascending.end(), std::int64_t{0});
    std::vector<std::int64_t> wrong = ascending;
    wrong.back() = static_cast<std::int64_t>(kBlocks);
    waywiser::Context context({.threads = 2, .policy = "off"});
    fake::configure("hang=copy@1");
    gpu::copy_async(device.data(), host.data(), kBlock, stream);
    EXPECT_EQ(waywiser_copy_blocks(context.get(), host.data(), kBlock, kBlocks, device.data(),
                                   kBlock, kBlocks, kBlock, ascending.data(), wrong.data(), kBlocks,
                                   stream.handle(), nullptr),
              WAYWISER_INVALID);
    EXPECT_FALSE(stream.done());
    fake::reset();
    stream.synchronize();
}

// The source is contiguous up to a block, and so is what is loaded before its index is known.
TEST_F(Lists, LoadNoFurtherThanTheSourceIsContiguous) {
    constexpr std::size_t kBlocks = 70000;
    constexpr std::size_t kBlock = 256;
    const gpu::HostBuffer host(2 * kBlocks * kBlock, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kBlocks * kBlock);
    const gpu::Stream stream(0);
    std::minstd_rand random(4);
    for (std::size_t i = 0; i < host.bytes(); i += sizeof(std::uint32_t)) {
        const auto word = static_cast<std::uint32_t>(random());
        std::memcpy(host.data() + i, &word, sizeof word);
    }
    std::vector<std::int64_t> to(kBlocks);
    std::iota(to.begin(), to.end(), std::int64_t{0});
    std::swap(to[1], to[4]);
    waywiser::Context context({.threads = 2, .policy = "off"});
    for (const std::size_t jump : {1, 32768, 39999, 70000}) {
        std::vector<std::int64_t> from(kBlocks);
        std::iota(from.begin(), from.end(), std::int64_t{7});
        for (std::size_t i = jump; i < kBlocks; ++i) from[i] += 5;
        std::memset(device.data(), 0, device.bytes());
        waywiser::detail::check_transfer(waywiser_copy_blocks(
            context.get(), device.data(), kBlock, kBlocks, host.data(), kBlock, 2 * kBlocks, kBlock,
            to.data(), from.data(), kBlocks, stream.handle(), nullptr));
        stream.synchronize();
        for (std::size_t i = 0; i < kBlocks; ++i) {
            ASSERT_EQ(std::memcmp(device.data() + static_cast<std::size_t>(to[i]) * kBlock,
                                  host.data() + static_cast<std::size_t>(from[i]) * kBlock, kBlock),
                      0)
                << "block " << i << ", jump at " << jump;
        }
    }
}

// More pieces than are prepared at once.
TEST_F(Lists, OfVeryManyPieces) {
    constexpr std::size_t kPieces = 100000;
    constexpr std::size_t kPiece = 48;
    const gpu::HostBuffer host(kPieces * kPiece, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kPieces * kPiece);
    std::minstd_rand random(3);
    for (std::size_t i = 0; i < kPieces * kPiece; ++i) {
        host.data()[i] = static_cast<std::byte>(random() >> 7);
    }
    std::vector<std::int64_t> to(kPieces);
    std::iota(to.begin(), to.end(), std::int64_t{0});
    const auto from = [&] {
        auto order = to;
        std::ranges::shuffle(order, random);
        return order;
    }();
    std::ranges::shuffle(to, random);
    const gpu::Stream stream(0);
    waywiser::Context context({.pinned_bytes = 64 * kMiB});  // tables of all windows at once
    fake::configure("");
    context.copy_blocks({device.data(), kPiece, kPieces}, {host.data(), kPiece, kPieces}, kPiece,
                        to, from, stream.handle());
    stream.synchronize();
    EXPECT_GT(fake::counts().launches, 1U);
    for (std::size_t i = 0; i < kPieces; ++i) {
        ASSERT_EQ(std::memcmp(device.data() + static_cast<std::size_t>(to[i]) * kPiece,
                              host.data() + static_cast<std::size_t>(from[i]) * kPiece, kPiece),
                  0)
            << "piece " << i;
    }
}

// Equally spaced pieces are moved by a kernel without a table, even if they are short.
TEST_F(Lists, NeedNoTableWhereTheyAreRegular) {
    constexpr std::size_t kPieces = 4096;
    constexpr std::size_t kPiece = 2;
    constexpr std::size_t kPitch = 64;
    const gpu::HostBuffer host(kPieces * kPiece, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer device(0, kPieces * kPitch);
    for (std::size_t i = 0; i < kPieces * kPiece; ++i) host.data()[i] = static_cast<std::byte>(i);
    std::vector<std::int64_t> index(kPieces);
    std::iota(index.begin(), index.end(), std::int64_t{0});
    const gpu::Stream stream(0);
    waywiser::Context context;
    fake::configure("fail=copy@1+");
    context.copy_blocks({device.data(), kPitch, kPieces}, {host.data(), kPiece, kPieces}, kPiece,
                        index, index, stream.handle());
    stream.synchronize();
    for (std::size_t i = 0; i < kPieces; ++i) {
        ASSERT_TRUE(test::same_bytes(device.data() + i * kPitch, host.data() + i * kPiece, kPiece));
    }
}

}  // namespace
}  // namespace waywiser::transfer
