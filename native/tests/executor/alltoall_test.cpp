// Exchanges of all memories with all, between ranks that are threads, over the fake GPU.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "case_stride.hpp"
#include "executor/alltoall_counts.hpp"
#include "executor/alltoall_packing.hpp"
#include "executor/alltoall_plan.hpp"
#include "fake/fixture.hpp"
#include "ranks/rank_places.hpp"
#include "ranks/thread_messenger.hpp"
#include "scratch_folder.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::exchanges {
namespace {

using ranks::Messenger;
using test::ThreadWorld;
using Counts = std::vector<std::vector<std::size_t>>;

std::string error_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const NotSupported& error) {
        return error.what();
    }
    return "";
}

struct Shape {
    int gpus;
    int processes;  // of each
    bool in_turn;   // ranks are dealt to the GPUs in turn, not one GPU after the other
};

Machine machine_of(const Shape& shape) {
    return test::with_ranks(shape.gpus * shape.processes, [&](int rank) {
        return shape.in_turn ? rank % shape.gpus : rank / shape.processes;
    });
}

Transfer exchange_among(int ranks, const char* kind, const char* executor, std::size_t bytes,
                        const Settings& parameters) {
    const Memory memory{kind, {Place::Kind::rank, 0, {}, ranks - 1}, {}};
    return {{memory, memory, executor}, bytes, parameters};
}

// What each memory sends to each, by another method than that of the executors.
Counts expected_counts(const Transfer& transfer, std::size_t memories) {
    const auto setting = [&](const char* name) {
        const auto found = transfer.parameters.find(name);
        return found == transfer.parameters.end() ? std::string() : found->second;
    };
    Counts counts(memories, std::vector<std::size_t>(memories));
    for (std::size_t from = 0; from < memories; ++from) {
        std::vector<double> weights(memories, 1);
        for (std::size_t to = 0; to < memories; ++to) {
            if (setting("counts") == "skewed") weights[to] = 1 / static_cast<double>(to + 1);
            if (setting("counts") == "neighbours") weights[to] = to == (from + 1) % memories;
        }
        const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
        double before = 0;
        for (std::size_t to = 0; to < memories; ++to) {
            const auto end_after = [&](double weight) {
                if (weight == all) return transfer.bytes;
                return static_cast<std::size_t>(static_cast<double>(transfer.bytes) * weight / all);
            };
            counts[from][to] = end_after(before + weights[to]) - end_after(before);
            before += weights[to];
            if (transfer.path.executor == "alltoall") {
                counts[from][to] = (transfer.bytes + memories - 1) / memories;
            }
        }
    }
    return counts;
}

std::byte sent_byte(std::size_t from, std::size_t to, std::size_t n) {
    return static_cast<std::byte>(from * 131 + to * 31 + n * 7 + (n >> 8) * 3 + 1);
}

constexpr std::byte kUntouched{0xEE};
constexpr std::size_t kGuard = 32;

// The memory of a GPU, with bytes behind it that nothing may touch.
struct Held {
    std::unique_ptr<Buffer> source, destination;
};

class Exchanges : public test::OnFake {
protected:
    Exchanges() { fake::configure("devices=4"); }

    // Runs it twice in a world of ranks. Returns what is wrong, in words.
    static std::string wrong_after(const Transfer& transfer, const Machine& machine,
                                   const Counts& counts) {
        const auto ranks = alltoall::ranks_of_memories(transfer.path.source, machine);
        const Executor& executor = *Executors::instance().find(transfer.path.executor);
        const std::vector<int> active = executor.participants(transfer, machine);
        ThreadWorld world(static_cast<int>(machine.ranks.size()));
        std::mutex mutex;
        std::string wrong;
        world.run([&](Messenger& messenger) {
            if (std::ranges::find(active, messenger.rank()) == active.end()) return;
            const std::string own =
                run(executor, transfer, machine, counts, ranks, active, messenger);
            const std::scoped_lock lock(mutex);
            wrong += own;
        });
        return wrong;
    }

private:
    static std::string run(const Executor& executor, const Transfer& transfer,
                           const Machine& machine, const Counts& counts,
                           const std::vector<std::vector<int>>& ranks,
                           const std::vector<int>& active, Messenger& messenger) {
        const auto group = messenger.group(active);
        std::size_t memory = 0;
        while (std::ranges::find(ranks[memory], messenger.rank()) == ranks[memory].end()) ++memory;
        const bool holds = ranks[memory].front() == messenger.rank();
        const Memory named =
            transfer.path.source.each()[static_cast<std::size_t>(messenger.rank())];
        const Memory local = executor.allocated(transfer, local_memory(named, machine), machine);
        Held held;
        View source{.bytes = transfer.bytes}, destination{.bytes = transfer.bytes};
        if (holds) held = make(local, machine, counts, memory, source, destination);
        std::vector<std::unique_ptr<gpu::Stream>> streams;
        std::vector<gpu::Stream*> lanes;
        if (local.on_gpu()) {
            streams.push_back(std::make_unique<gpu::Stream>(local.place.index));
            lanes.push_back(streams.back().get());
        }
        {
            const auto execution =
                executor.prepare_part(transfer, machine, source, destination, lanes, *group);
            for (int n = 0; n < 2; ++n) execution->start(source, destination);
            execution->finish();
        }
        group->barrier();  // those that opened the memory have closed it
        return holds ? inspect(counts, memory, held) : "";
    }

    static std::size_t sent(const Counts& counts, std::size_t memory) {
        return std::accumulate(counts[memory].begin(), counts[memory].end(), std::size_t{0});
    }

    static Held make(const Memory& local, const Machine& machine, const Counts& counts,
                     std::size_t memory, View& source, View& destination) {
        std::size_t arriving = 0;
        for (const auto& row : counts) arriving += row[memory];
        const MemoryKind& kind = *Memories::instance().find(local.kind);
        Held held{kind.allocate(local, sent(counts, memory) + kGuard, machine),
                  kind.allocate(local, arriving + kGuard, machine)};
        std::fill_n(held.source->data(), held.source->bytes(), kUntouched);
        std::fill_n(held.destination->data(), held.destination->bytes(), kUntouched);
        std::byte* at = held.source->data();
        for (std::size_t to = 0; to < counts.size(); ++to) {
            for (std::size_t n = 0; n < counts[memory][to]; ++n) *at++ = sent_byte(memory, to, n);
        }
        source.data = held.source->data();
        destination.data = held.destination->data();
        return held;
    }

    static std::string inspect(const Counts& counts, std::size_t memory, const Held& held) {
        const std::byte* at = held.destination->data();
        std::size_t wrong = 0;
        for (std::size_t from = 0; from < counts.size(); ++from) {
            for (std::size_t n = 0; n < counts[from][memory]; ++n) {
                wrong += *at++ != sent_byte(from, memory, n);
            }
        }
        const auto touched = [](const std::byte* from) {
            return kGuard - static_cast<std::size_t>(std::count(from, from + kGuard, kUntouched));
        };
        const std::size_t behind =
            touched(at) + touched(held.source->data() + sent(counts, memory));
        if (wrong + behind == 0) return "";
        return std::to_string(wrong) + " wrong bytes in memory " + std::to_string(memory) + ", " +
               std::to_string(behind) + " behind; ";
    }
};

const std::vector<Shape> kShapes{{2, 2, true},  {2, 2, false}, {1, 4, false},
                                 {4, 1, false}, {3, 2, true},  {3, 2, false}};
// Races depend on the messages, not on their bytes (many_sizes()).
const std::vector<std::size_t> kSizes =
    test::many_sizes() ? std::vector<std::size_t>{0, 7, 262144} : std::vector<std::size_t>{1, 8191};

std::vector<Settings> settings_of(const std::string& executor) {
    std::vector<Settings> strategies;
    for (const char* exchange : {"collective", "pairs"}) {
        for (const char* strategy : {"direct", "3-step", "extra-message", "duplicate-pointer"}) {
            strategies.push_back({{"strategy", strategy}, {"exchange", exchange}});
        }
        for (const char* strategy : {"extra-message", "duplicate-pointer"}) {
            strategies.push_back(
                {{"strategy", strategy}, {"exchange", exchange}, {"split", "messages"}});
        }
    }
    if (executor == "alltoall") return strategies;
    std::vector<Settings> all;
    for (const char* counts : {"equal", "skewed", "neighbours"}) {
        for (Settings settings : strategies) {
            settings["counts"] = counts;
            if (std::string(counts) == "neighbours") settings["neighbours"] = "1";
            all.push_back(settings);
        }
    }
    return all;
}

// With one process of each GPU nothing is handed to others.
std::optional<std::string> reason_with_one_process(const Settings& settings, int processes) {
    const std::string strategy = settings.at("strategy");
    if (processes > 1 || strategy == "direct" || strategy == "3-step") return std::nullopt;
    return "each GPU has one process: strategy=" + strategy + " is for several";
}

class EachExchange : public Exchanges,
                     public ::testing::WithParamInterface<std::tuple<std::string, Shape>> {
protected:
    [[nodiscard]] int ranks() const { return shape.gpus * shape.processes; }
    [[nodiscard]] Transfer exchange(const char* kind, std::size_t bytes,
                                    const Settings& settings) const {
        return exchange_among(ranks(), kind, executor.c_str(), bytes, settings);
    }
    [[nodiscard]] std::string wrong(const Transfer& transfer, int memories) const {
        return wrong_after(transfer, machine,
                           expected_counts(transfer, static_cast<std::size_t>(memories)));
    }

    const std::string executor = std::get<0>(GetParam());
    const Shape shape = std::get<1>(GetParam());
    const Machine machine = machine_of(shape);
};

TEST_P(EachExchange, BringsTheRightBytesAndNoOthers) {
    for (const Settings& settings : settings_of(executor)) {
        for (const std::size_t bytes : kSizes) {
            const Transfer transfer = exchange("device", bytes, settings);
            SCOPED_TRACE(transfer.text());
            ASSERT_EQ(unsupported_reason(transfer, machine),
                      reason_with_one_process(settings, shape.processes));
            EXPECT_EQ(wrong(transfer, shape.gpus), "");
        }
    }
}

TEST_P(EachExchange, UsesSomeProcessesOfAGpu) {
    for (int lanes = 1; lanes <= shape.processes; ++lanes) {
        for (const char* strategy : {"extra-message", "duplicate-pointer"}) {
            const Transfer transfer = exchange(
                "device", 1009, {{"strategy", strategy}, {"per-gpu", std::to_string(lanes)}});
            SCOPED_TRACE(transfer.text());
            const auto active =
                Executors::instance().find(executor)->participants(transfer, machine);
            EXPECT_EQ(active.size(), static_cast<std::size_t>(shape.gpus * lanes));
            EXPECT_EQ(wrong(transfer, shape.gpus), "");
        }
    }
}

TEST_P(EachExchange, IsDirectBetweenMemoriesOfTheHost) {
    for (const char* call : {"collective", "pairs"}) {
        const Transfer transfer = exchange("pageable", 1009, {{"exchange", call}});
        EXPECT_EQ(wrong(transfer, ranks()), "") << transfer.text();
    }
}

INSTANTIATE_TEST_SUITE_P(Alltoall, EachExchange,
                         ::testing::Combine(::testing::Values("alltoall", "alltoallv"),
                                            ::testing::ValuesIn(kShapes)),
                         [](const auto& info) {
                             const Shape& shape = std::get<1>(info.param);
                             return std::get<0>(info.param) + "_" + std::to_string(shape.gpus) +
                                    "x" + std::to_string(shape.processes) +
                                    (shape.in_turn ? "_in_turn" : "");
                         });

TEST(AlltoallPlan, SendsSharedBytesOftenerThanItCopiesThem) {
    const auto messages = alltoall::messages_of(alltoall::equal_counts(4, 4000), 2);
    EXPECT_EQ(messages[1][0].from.offset, 0u);
    EXPECT_EQ(messages[1][1].from.offset, 1000u);
    EXPECT_EQ(messages[1][2].from.offset, 0u);
    EXPECT_EQ(messages[1][3].from.offset, 1000u);
    EXPECT_EQ(messages[3][1].to.offset, 3000u);
    const alltoall::Packing packing({{0, 1000}, {1000, 1000}, {0, 1000}, {1000, 1000}});
    EXPECT_EQ(packing.bytes(), 2000u);
    // No share is less than one message.
    EXPECT_EQ(alltoall::messages_of({{300, 0}, {1, 2}}, 4)[0][0].from.bytes, 300u);
}

TEST(AlltoallPlan, PacksPartsOfBytesThatSeveralMessagesHave) {
    const alltoall::Packing packing({{30, 10}, {0, 10}, {0, 0}, {5, 10}});
    EXPECT_EQ(packing.bytes(), 25u);
    EXPECT_EQ(packing.packed()[0].offset, 15u);
    EXPECT_EQ(packing.packed()[1].offset, 0u);
    EXPECT_EQ(packing.packed()[3].offset, 5u);
}

TEST(AlltoallCounts, AddUpToTheBytesOfTheOneThatSendsMost) {
    for (const std::size_t bytes : {0u, 1u, 7u, 1009u, 262144u}) {
        for (const std::size_t memories : {1u, 2u, 3u, 7u}) {
            for (const auto& weights :
                 {alltoall::equal_weights(memories), alltoall::skewed_weights(memories),
                  alltoall::weights_of_neighbours(memories, memories > 1 ? memories - 1 : 1)}) {
                for (const auto& row : alltoall::counts_of(weights, bytes)) {
                    EXPECT_EQ(std::accumulate(row.begin(), row.end(), std::size_t{0}), bytes);
                }
            }
        }
    }
    EXPECT_EQ(alltoall::equal_counts(4, 7), Counts(4, std::vector<std::size_t>(4, 2)));
    EXPECT_GT(alltoall::counts_of(alltoall::skewed_weights(4), 1000)[3][0], 400u);
    EXPECT_EQ(alltoall::counts_of(alltoall::weights_of_neighbours(3, 1), 10),
              (Counts{{0, 10, 0}, {0, 0, 10}, {10, 0, 0}}));
}

class TrafficMatrix : public ::testing::Test {
protected:
    std::string put(const std::string& text) {
        const std::string path = folder_.path() + "/matrix";
        std::ofstream(path) << text;
        return path;
    }
    std::string error(const std::string& text) {
        return error_of([&] { (void)alltoall::weights_in_file(put(text), 2); });
    }

private:
    test::ScratchFolder folder_;
};

TEST_F(TrafficMatrix, IsThatOfNcclTests) {
    const auto weights = alltoall::weights_in_file(put("\n1 2\n\n0.5,4\n"), 2);
    EXPECT_EQ(weights, (alltoall::Weights{{1, 2}, {0.5, 4}}));
    EXPECT_EQ(alltoall::counts_of(weights, 4500), (Counts{{1000, 2000}, {500, 4000}}));
}

TEST_F(TrafficMatrix, SaysWhatIsWrongWithIt) {
    EXPECT_NE(error("1 2\n").find("has 1 rows, of 2 needed"), std::string::npos);
    EXPECT_NE(error("1 2\n3\n").find("has a row of 1 numbers, of 2 needed"), std::string::npos);
    EXPECT_NE(error("1 x\n3 4\n").find("has 'x', which is not a number"), std::string::npos);
    EXPECT_NE(error("1 2 9\n3 4\n").find("has more than 2 numbers in a row"), std::string::npos);
    EXPECT_NE(error("1 2\n3 4\n7 7\n").find("has more than 2 rows"), std::string::npos);
    EXPECT_NE(error("1 -2\n3 4\n").find("has a negative number"), std::string::npos);
    EXPECT_NE(error("0 0\n0 0\n").find("sends nothing"), std::string::npos);
    EXPECT_NE(error_of([] {
                  (void)alltoall::weights_in_file("/nowhere", 2);
              }).find("/nowhere: it cannot be opened: No such file"),
              std::string::npos);
}

TEST_F(TrafficMatrix, IsReadAsWholeNumbers) {
    const auto first_cell = [&](const std::string& cell) { return error(cell + " 1\n1 0\n"); };
    for (const char* cell : {"0X1p3", "1_000", "7f", "--1", "1..5", "1e", "nan(1)", "Infinity",
                             "-inf", "\"2\"", "1;", "#", "\x01", "\xc3\xa9"}) {
        const std::string said = first_cell(cell);
        EXPECT_NE(said.find("which is not a number"), std::string::npos) << cell << ": " << said;
        EXPECT_EQ(said.find('\n'), std::string::npos);
    }
    EXPECT_NE(first_cell("4e400").find("4e400, which is out of range"), std::string::npos);
    EXPECT_NE(first_cell(std::string(5000, '9')).find("..., which is out of range"),
              std::string::npos);
    EXPECT_NE(error("1,,2\n3,4\n").find("a row with an empty cell"), std::string::npos);
    EXPECT_NE(error("1 2 # of node 7\n3 4\n").find("more than 2 numbers"), std::string::npos);
    EXPECT_NE(error(std::string("1 2\n3 4\0\n", 9)).find("'4?'"), std::string::npos);
    EXPECT_NE(error("1.7e308 1.7e308\n1 1\n").find("sum is out of range"), std::string::npos);
    EXPECT_EQ(error("+1e0,\t.5 ,\r\n2.,0\r\n"), "");
}

TEST_F(TrafficMatrix, OfNumbersAtTheEndsOfTheirRangeHasTheRightSizes) {
    for (const char* text : {"0 3e307\n9e307 0\n", "0 3e-320\n9e-320 0", "0 3\n9 0"}) {
        const auto counts = alltoall::counts_of(alltoall::weights_in_file(put(text), 2), 9000);
        EXPECT_NEAR(static_cast<double>(counts[0][1]), 3000, 10) << text;
        EXPECT_EQ(counts[1][0], 9000u) << text;
    }
}

TEST_F(TrafficMatrix, IsARegularFileOfABoundedSize) {
    const std::string pipe = put("") + ".pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& file : {pipe, std::string("/dev/zero"), std::string("/")}) {
        const auto said = error_of([&] { (void)alltoall::weights_in_file(file, 2); });
        EXPECT_NE(said.find(": it is not a regular file"), std::string::npos) << said;
    }
    const std::string sparse = put("1 2\n3 4\n");
    std::filesystem::resize_file(sparse, std::uintmax_t{3} << 30);
    const auto said = error_of([&] { (void)alltoall::weights_in_file(sparse, 2); });
    EXPECT_NE(said.find(": it is larger than 65 KiB"), std::string::npos) << said;
}

TEST_F(Exchanges, SaysWhyOneIsNotSupported) {
    const Machine machine = machine_of({2, 2, true});
    const auto reason = [&](const Transfer& tried) {
        return unsupported_reason(tried, machine).value_or("");
    };
    const auto with = [&](const Settings& parameters) {
        return exchange_among(4, "device", "alltoallv", 64, parameters);
    };
    EXPECT_EQ(reason(with({})), "");
    EXPECT_EQ(reason(exchange_among(4, "pageable", "alltoall", 64, {{"strategy", "3-step"}})),
              "alltoall has no strategy=3-step here: it takes direct");
    EXPECT_EQ(reason(with({{"per-gpu", "2"}})), "alltoallv[strategy=3-step] has no 'per-gpu'");
    EXPECT_EQ(reason(with({{"strategy", "direct"}, {"unique", "1/2"}})),
              "alltoallv[strategy=direct] has no 'unique'");
    EXPECT_NE(reason(with({{"strategy", "extra-message"}, {"per-gpu", "3"}})).find("it takes 2, 1"),
              std::string::npos);
    EXPECT_NE(reason(with({{"unique", "1/4"}})).find("it takes 1, 1/2"), std::string::npos);
    EXPECT_EQ(reason(with({{"counts", "/nowhere"}})),
              "the traffic matrix /nowhere: it cannot be opened: No such file or directory");
    Transfer one = with({});
    one.path.source.place.last = one.path.destination.place.last = -1;
    EXPECT_NE(reason(one), "");
    Transfer fewer = with({});
    fewer.path.destination.place.last = 2;
    EXPECT_EQ(reason(fewer), "alltoallv is among the same ranks at both ends: write rank:0-7");
    Transfer mixed = with({});
    mixed.path.destination.kind = "pinned";
    EXPECT_EQ(reason(mixed), "both ends of an exchange are on GPUs, or both on the host");
    Transfer missing = exchange_among(5, "device", "alltoallv", 64, {});
    EXPECT_EQ(reason(missing), "there is no rank:4 in this launch");
    Transfer by_mpi = with({});
    by_mpi.path.executor = "mpi";
    EXPECT_EQ(reason(by_mpi), "mpi moves bytes between two memories, not among several");
}

TEST_F(Exchanges, NeedsMemoryThatProcessesCanShareForDuplicatePointers) {
    const Machine machine = machine_of({2, 2, true});
    Transfer transfer =
        exchange_among(4, "device", "alltoall", 64, {{"strategy", "duplicate-pointer"}});
    EXPECT_EQ(unsupported_reason(transfer, machine), std::nullopt);
    transfer.path.source.variant = {{"from", "pool"}};
    EXPECT_EQ(unsupported_reason(transfer, machine),
              "duplicate pointers are not to memory from pool");
    transfer.path.source.variant = {{"from", "ipc"}};
    EXPECT_EQ(unsupported_reason(transfer, machine), std::nullopt);
    fake::configure("devices=4;without=ipc");
    EXPECT_EQ(unsupported_reason(transfer, machine), "gpu:0 shares no memory between processes");
}

TEST_F(Exchanges, IsNotDirectWhereTheLibraryDoesNotSendTheMemory) {
    Machine machine = machine_of({2, 2, true});
    machine.ranks[3].unsent = {"device"};
    EXPECT_EQ(unsupported_reason(
                  exchange_among(4, "device", "alltoall", 64, {{"strategy", "direct"}}), machine),
              "alltoall has no strategy=direct here: it takes 3-step, extra-message, "
              "duplicate-pointer");
    EXPECT_EQ(unsupported_reason(exchange_among(4, "device", "alltoall", 64, {}), machine),
              std::nullopt);
}

TEST_F(Exchanges, IsDirectBetweenPairsWhereCollectiveCallsDoNotTakeTheMemory) {
    Machine machine = machine_of({2, 2, true});
    machine.ranks[1].unexchanged = {"device"};
    const auto reason = [&](const char* kind, const Settings& parameters) {
        return unsupported_reason(exchange_among(4, kind, "alltoall", 64, parameters), machine);
    };
    EXPECT_EQ(reason("device", {{"strategy", "direct"}}),
              "collective calls of the MPI library do not take device memory: use exchange=pairs");
    EXPECT_EQ(reason("device", {{"strategy", "direct"}, {"exchange", "pairs"}}), std::nullopt);
    EXPECT_EQ(reason("device", {{"strategy", "3-step"}}), std::nullopt);
    EXPECT_EQ(reason("pinned", {{"strategy", "direct"}}), std::nullopt);
}

TEST_F(Exchanges, NeedsPinnedMemoryForAllThatEachRankPacks) {
    const Machine machine = machine_of({4, 2, true});
    const auto pinned = [&](const Settings& parameters) {
        return Executors::instance()
            .find("alltoall")
            ->requirements(exchange_among(8, "device", "alltoall", 4000, parameters), machine)
            .pinned_bytes;
    };
    // Of each of 4 GPUs: what arrives, and what is sent.
    EXPECT_EQ(pinned({{"strategy", "direct"}}), 0u);
    EXPECT_EQ(pinned({}), 4u * (4000 + 4000));
    EXPECT_EQ(pinned({{"unique", "1/4"}}), 4u * (4000 + 1000));
    Settings shared{{"strategy", "duplicate-pointer"}, {"unique", "1/4"}};
    EXPECT_EQ(pinned(shared), 4u * (4000 + 1000));
    // Both ranks of a GPU send the same bytes to others.
    shared["split"] = "messages";
    EXPECT_EQ(pinned(shared), 4u * (4000 + 2 * 1000));
    // The first one also has what it hands to the others and gets from them.
    shared["strategy"] = "extra-message";
    EXPECT_EQ(pinned(shared), 2u * 4 * (4000 + 2 * 1000));
}

TEST_F(Exchanges, DoesNotSupportMoreThanAMessageCanHave) {
    const Machine machine = machine_of({2, 1, true});
    const Transfer transfer = exchange_among(2, "device", "alltoall", std::size_t{1} << 31, {});
    const Executor& executor = *Executors::instance().find("alltoall");
    EXPECT_EQ(unsupported_reason(transfer, machine),
              "MPI counts in int, so one message has less than 2 GiB");
    EXPECT_EQ(executor.requirements(transfer, machine).pinned_bytes, std::size_t{8} << 30);
}

}  // namespace
}  // namespace waywiser::exchanges
