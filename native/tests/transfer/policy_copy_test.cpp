// Copies by a policy over the fake GPU.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "case_stride.hpp"
#include "fake/fixture.hpp"
#include "gpu/gpu.hpp"
#include "many_bytes.hpp"
#include "policy_text.hpp"
#include "transfer/copy.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/discover.hpp"
#include "transfer/explain.hpp"
#include "transfer/file_copy.hpp"
#include "transfer/list_copy.hpp"
#include "transfer/list_method.hpp"
#include "transfer/policy_file.hpp"
#include "units.hpp"
#include "waywiser/huge_page.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

using test::ClassText;
using test::policy_text;
using test::RowText;
using test::sequence;

FoundPolicy policy_of(const std::vector<ClassText>& classes) {
    return {.policy = std::make_shared<const Policy>(parse_policy(policy_text(classes))),
            .file = "test.json",
            .warning = {}};
}

constexpr std::size_t kLarge = 32 * kMiB;
// Never read: choose() only looks at addresses and kinds. No memory is there, which sanitizers map
// at many higher addresses.
std::byte* const kNowhere = reinterpret_cast<std::byte*>(std::uintptr_t{4096});

Side pageable() { return {.end = Endpoint::host(kNowhere, false)}; }
Side pinned() { return {.end = Endpoint::host(kNowhere, true)}; }
Side device(int gpu = 0) { return {.end = Endpoint::device(kNowhere, gpu)}; }

class PolicyCopies : public test::OnFake {
protected:
    static std::shared_ptr<Engine> engine_of(const std::vector<ClassText>& classes,
                                             const EngineOptions& options = {}) {
        return Engine::make(discover_machine(), options, policy_of(classes));
    }
    static ClassText staged(const char* from, const char* to, std::size_t from_bytes = 64 * kKiB) {
        return {.from = from,
                .to = to,
                .rows = {{},
                         {.from_bytes = from_bytes,
                          .executor = "staged",
                          .settings = {{"chunk", "131072"}, {"slots", "2"}, {"threads", "1"}}}}};
    }
};

TEST_F(PolicyCopies, ThePolicyChoosesMethodAndShape) {
    const auto known_owner = engine_of({staged("pageable", "device")});
    const Engine& known = *known_owner;
    const Choice small = choose(known, device(), pageable(), 64 * kKiB - 1);
    EXPECT_EQ(small.method, Choice::Method::plain);
    ASSERT_NE(small.policy, nullptr);
    const Choice large = choose(known, device(), pageable(), 64 * kKiB);
    EXPECT_EQ(large.method, Choice::Method::chunked);
    EXPECT_EQ(large.shape.chunk, 128 * kKiB);
    EXPECT_EQ(large.shape.slots, 2U);
    EXPECT_EQ(large.shape.threads, 1U);
    EXPECT_EQ(known.plain_below(), 64 * kKiB) << "smaller copies are not looked at";
    EXPECT_EQ(choose(known, pageable(), device(), kLarge).policy, nullptr) << "another class";
    EXPECT_EQ(choose(known, device(), pinned(), kLarge).policy, nullptr);
    Side managed = pageable();
    managed.managed = true;
    EXPECT_EQ(choose(known, device(), managed, kLarge).method, Choice::Method::plain);
}

TEST_F(PolicyCopies, APolicyMayKeepLargeCopiesPlain) {
    const auto known_owner = engine_of({{.from = "pageable", .to = "device", .rows = {{}}}});
    const Engine& known = *known_owner;
    const Choice made = choose(known, device(), pageable(), kLarge);
    EXPECT_EQ(made.method, Choice::Method::plain);
    EXPECT_EQ(known.plain_below(), kPlainBelow);
}

// Only the two queries of what the memory is are added.
TEST_F(PolicyCopies, ArePlainAtOnceWhereOnlyOtherMemoryHasAnotherMethod) {
    constexpr std::size_t kBytes = 2 * kMiB;
    const auto standard_owner = Engine::make(discover_machine(), {}, {});
    Engine& standard = *standard_owner;
    const auto known_owner = engine_of({staged("pageable", "device", kMiB)});
    Engine& known = *known_owner;
    const gpu::HostBuffer host(kBytes, gpu::HostUse::portable, 0);
    const gpu::DeviceBuffer gpu(0, kBytes);
    const gpu::Stream stream(0);
    const auto calls = [&](Engine& by) {
        const std::size_t before = fake::counts().calls;
        copy(by, gpu.data(), host.data(), kBytes, CallerStream::of(stream.handle()));
        const std::size_t made = fake::counts().calls - before;
        stream.synchronize();
        return made;
    };
    ASSERT_EQ(known.plain_below(), kMiB);
    EXPECT_GE(calls(standard), 1U);
    EXPECT_LE(calls(known), calls(standard) + 2);
    const auto of_hosts_owner = engine_of(
        {{.from = "pageable",
          .to = "pageable",
          .rows = {{}, {.from_bytes = kMiB, .executor = "cpu", .settings = {{"threads", "2"}}}}}});
    Engine& of_hosts = *of_hosts_owner;
    ASSERT_EQ(of_hosts.plain_below(), kMiB);
    EXPECT_EQ(of_hosts.plain_below_with_gpu(), kPlainBelow);
    EXPECT_LE(calls(of_hosts), calls(standard) + 1) << "one side is on a GPU";
}

TEST_F(PolicyCopies, ExplainNamesThePolicyAndItsExpectation) {
    const auto known_owner =
        engine_of({staged("pageable", "device"),
                   {.from = "pageable", .to = "pageable", .rows = {{.from_bytes = 4096}}}});
    Engine& known = *known_owner;
    const auto host = sequence(kMiB, 1);
    const gpu::DeviceBuffer gpu(0, kMiB);
    const std::string text = explain(known, gpu.data(), host.data(), kMiB);
    EXPECT_NE(text.find("chunked copy: by the policy; chunks of 128 KiB, up to 1 threads; policy "
                        "test.json: staged took 412 us (95 %: 405 us to 418 us) for 68 KiB"),
              std::string::npos)
        << text;
    const auto other = sequence(kMiB, 2);
    EXPECT_EQ(explain(known, const_cast<std::byte*>(other.data()), host.data(), 100).find("policy"),
              std::string::npos)
        << "it is smaller than what was measured";
    EXPECT_EQ(explain(known, const_cast<std::byte*>(host.data()), gpu.data(), kMiB).find("policy"),
              std::string::npos);
}

TEST_F(PolicyCopies, RelationsOfGpusAreClasses) {
    const auto between = [](const char* relation, const char* executor) {
        return ClassText{.from = "device",
                         .to = "device",
                         .rows = {{.executor = executor, .settings = {{"slots", "3"}}}},
                         .relation = relation};
    };
    const std::vector<ClassText> classes = {
        between("same", "copy-engine"), between("peers", "staged"), between("no-peers", "staged")};
    const auto with_owner = engine_of(classes);
    const Engine& with = *with_owner;
    EXPECT_EQ(choose(with, device(0), device(0), kLarge).policy->row->executor, "copy-engine");
    EXPECT_EQ(choose(with, device(0), device(1), kLarge).method, Choice::Method::chunked);
    const auto without_owner = engine_of({between("no-peers", "staged")}, {.peer_access = false});
    const Engine& without = *without_owner;
    EXPECT_EQ(choose(without, device(0), device(1), kLarge).shape.slots, 3U);
    EXPECT_NE(choose(without, device(0), device(1), kLarge).policy, nullptr);
}

// What is measured with default settings is what the library does without a policy.
TEST_F(PolicyCopies, UseTheSameShapeForLargeCopiesWithDefaultSettingsAndWithoutAPolicy) {
    constexpr std::size_t kGiB = std::size_t{1} << 30;
    const auto staged = [](const char* from, const char* to, const char* relation) {
        return ClassText{.from = from,
                         .to = to,
                         .rows = {{.executor = "staged", .threads = 1}},
                         .relation = relation};
    };
    const EngineOptions options{.threads = 1, .pinned_bytes = 256 * kMiB, .peer_access = false};
    const auto with_owner =
        engine_of({staged("pageable", "device", ""), staged("device", "pageable", ""),
                   staged("device", "device", "no-peers")},
                  options);
    const Engine& with = *with_owner;
    const auto without_owner = engine_of({}, options);
    const Engine& without = *without_owner;
    for (const auto& [to, from] :
         {std::pair{device(0), pageable()}, {pageable(), device(0)}, {device(1), device(0)}}) {
        const Choice own = choose(with, to, from, kGiB);
        const Choice usual = choose(without, to, from, kGiB);
        ASSERT_NE(own.policy, nullptr);
        EXPECT_EQ(usual.policy, nullptr);
        EXPECT_EQ(own.shape.chunk, usual.shape.chunk);
        EXPECT_EQ(own.shape.least, usual.shape.least);
        EXPECT_EQ(own.shape.slots, usual.shape.slots);
        EXPECT_EQ(own.shape.threads, usual.shape.threads);
        EXPECT_EQ(own.shape.streaming, usual.shape.streaming);
    }
}

TEST_F(PolicyCopies, ClassesOfIdlePeersNeedRelays) {
    std::vector<ClassText> classes = {
        staged("pageable", "device", 4096),
        {.from = "pageable",
         .to = "device",
         .rows = {{.from_bytes = kMiB, .executor = "relay", .settings = {{"relays", "3"}}}},
         .peers_idle = true}};
    const auto alone_owner = engine_of(classes);
    const Engine& alone = *alone_owner;
    EXPECT_TRUE(choose(alone, device(), pageable(), kLarge).shape.relays.empty());
    EXPECT_EQ(choose(alone, device(), pageable(), kLarge).policy->row->executor, "staged");
    const auto helped_owner = engine_of(classes, {.relays = {1}});
    const Engine& helped = *helped_owner;
    EXPECT_EQ(choose(helped, device(), pageable(), kLarge).shape.relays, std::vector{1});
    EXPECT_EQ(choose(helped, device(), pageable(), kMiB - 1).policy->row->executor, "staged")
        << "smaller copies are of the other class";
    classes.pop_back();
    const auto unknown_owner = engine_of(classes, {.relays = {1}});
    const Engine& unknown = *unknown_owner;
    const Choice large = choose(unknown, device(), pageable(), kLarge);
    EXPECT_EQ(large.policy, nullptr) << "the policy does not know relays, the defaults use them";
    EXPECT_EQ(large.shape.relays, std::vector{1});
    EXPECT_NE(choose(unknown, device(), pageable(), kMiB).policy, nullptr);
}

TEST_F(PolicyCopies, PoliteAndPlainContextsStaySo) {
    const std::vector<ClassText> classes = {{.from = "pinned", .to = "device", .rows = {{}}},
                                            staged("pageable", "device")};
    const auto polite_owner = engine_of(classes, {.max_queued_bytes = 4 * kMiB});
    const Engine& polite = *polite_owner;
    EXPECT_EQ(choose(polite, device(), pinned(), kLarge).method, Choice::Method::chunked);
    EXPECT_EQ(choose(polite, device(), pinned(), kMiB).method, Choice::Method::plain);
    const auto plain_owner = engine_of(classes, {.plain = true});
    const Engine& plain = *plain_owner;
    EXPECT_EQ(plain.policy(), nullptr);
    EXPECT_EQ(choose(plain, device(), pageable(), kLarge).method, Choice::Method::plain);
}

TEST_F(PolicyCopies, MemoryWithoutPagesIsAClass) {
    const std::vector<ClassText> of_pageable = {staged("device", "pageable")};
    std::vector<ClassText> both = of_pageable;
    const std::size_t chunk = std::max(4 * kMiB, huge_page_bytes());
    both.push_back(
        {.from = "device",
         .to = "fresh",
         .rows = {{.executor = "staged", .settings = {{"chunk", std::to_string(chunk)}}}}});
    void* const mapped =
        mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const Side fresh{.end = Endpoint::host(mapped, false)};
    const auto knows_owner = engine_of(both, {.pinned_bytes = 16 * chunk});
    const Engine& knows = *knows_owner;
    const Choice made = choose(knows, fresh, device(), kLarge);
    EXPECT_EQ(made.shape.chunk, chunk);
    EXPECT_EQ(made.shape.least, huge_page_bytes()) << "whole huge pages";
    const auto does_not_owner = engine_of(of_pageable);
    const Engine& does_not = *does_not_owner;
    EXPECT_EQ(choose(does_not, fresh, device(), kLarge).policy, nullptr) << "the defaults know it";
    std::memset(mapped, 1, kLarge);
    EXPECT_EQ(choose(knows, fresh, device(), kLarge).shape.chunk, 128 * kKiB);
    EXPECT_NE(choose(does_not, fresh, device(), kLarge).policy, nullptr);
    munmap(mapped, kLarge);
}

TEST_F(PolicyCopies, ListsFollowThePolicy) {
    const FoundPolicy found = policy_of(
        {{.from = "pinned",
          .to = "device",
          .rows = {
              {.from_bytes = 1024, .executor = "sm", .settings = {{"blocks", "4"}}, .count = 16},
              {.from_bytes = 65536, .executor = "batch", .count = 16},
              {.from_bytes = 1 << 20, .executor = "copy-engine", .count = 16}}}});
    const auto chosen = [&](std::size_t bytes, ListLimits limits = {.multiprocessors = 132},
                            ListPath path = ListPath::from_host) {
        const PolicyTable table(found.policy, {.threads = 4});
        return choose_list_method(
            {.path = path, .bytes = 1000 * bytes, .merged = 1000, .run = bytes, .access = 16},
            limits, &table);
    };
    EXPECT_EQ(chosen(1024).method, ListMethod::kernel);
    EXPECT_EQ(chosen(1024).blocks, 4U);
    EXPECT_EQ(chosen(1024, {.multiprocessors = 2}).blocks, 2U);
    EXPECT_EQ(chosen(65536).method, ListMethod::batch);
    EXPECT_EQ(chosen(1 << 20).method, ListMethod::copies);
    EXPECT_EQ(chosen(1 << 20, {.multiprocessors = 132, .spare_engine = true}).method,
              ListMethod::kernel)
        << "a polite context";
    EXPECT_EQ(chosen(1 << 20, {}, ListPath::to_host).method,
              choose_list_method({.path = ListPath::to_host,
                                  .bytes = std::size_t{1000} << 20,
                                  .merged = 1000,
                                  .run = 1 << 20,
                                  .access = 16},
                                 {})
                  .method)
        << "a class that the policy does not have";
    const PolicyTable table(found.policy, {.threads = 4});
    EXPECT_EQ(choose_list_method({.path = ListPath::from_host,
                                  .bytes = std::size_t{1000} << 15,
                                  .merged = 1000,
                                  .run = 1 << 15,
                                  .access = 16,
                                  .host_contiguous = true,
                                  .gpu_access = 16},
                                 {.multiprocessors = 132, .of_pipeline = 8}, &table)
                  .method,
              ListMethod::pipeline)
        << "the lists of a policy are scattered in host memory too";
}

TEST_F(PolicyCopies, ListsThatAreContiguousInHostMemoryFollowTheirRows) {
    const std::vector<RowText> scattered = {{.executor = "sm", .count = 2}};
    ClassText one{
        .from = "device",
        .to = "pinned",
        .rows = scattered,
        .host_contiguous = {{.executor = "copy-engine", .count = 2},
                            {.executor = "gather-scatter",
                             .settings = {{"chunk", "1048576"}, {"slots", "2"}, {"blocks", "12"}},
                             .count = 256},
                            {.from_bytes = 1 << 20, .executor = "batch", .count = 256}}};
    const auto chosen = [&](std::size_t count, std::size_t bytes, ListLimits limits,
                            bool contiguous = true) {
        const PolicyTable table(policy_of({one}).policy, {.threads = 4});
        ListChoice choice = choose_list_method({.path = ListPath::to_host,
                                                .bytes = count * bytes,
                                                .merged = count,
                                                .run = bytes,
                                                .access = 16,
                                                .host_contiguous = contiguous,
                                                .gpu_access = 16},
                                               limits, &table);
        if (choice.policy != nullptr && !one.host_contiguous.empty()) {
            EXPECT_EQ(choice.policy->row->host_contiguous, contiguous);
        }
        choice.policy = nullptr;  // of a table that ends here
        return choice;
    };
    const ListLimits usual{.multiprocessors = 132, .of_pipeline = 8};
    const ListChoice pipeline = chosen(1000, 4096, usual);
    EXPECT_EQ(pipeline.method, ListMethod::pipeline);
    EXPECT_EQ(pipeline.chunk, kMiB);
    EXPECT_EQ(pipeline.slots, 2U);
    EXPECT_EQ(pipeline.blocks, 8U) << "no more than fill a chunk";
    EXPECT_EQ(chosen(100, 4096, usual).method, ListMethod::copies) << "a short list";
    ListLimits part = usual;
    part.list_bytes = std::size_t{1000} * 4096;
    EXPECT_EQ(chosen(100, 4096, part).method, ListMethod::pipeline) << "a part of a long list";
    EXPECT_EQ(chosen(1000, 1 << 20, usual).method, ListMethod::batch);
    EXPECT_EQ(chosen(1000, 4096, {.multiprocessors = 132}).method, ListMethod::kernel)
        << "there is no pipeline: the library's choice";
    EXPECT_EQ(chosen(1000, 4096, usual, false).method, ListMethod::kernel) << "scattered on both";
    one.host_contiguous = {
        {.executor = "gather-scatter",
         .settings = {{"chunk", "67108864"}, {"slots", "16"}, {"blocks", "8192"}},
         .count = 2}};
    const ListChoice most = chosen(100000, 4096, usual);
    EXPECT_EQ(most.chunk, 8 * kMiB) << "what a pipeline of the library has";
    EXPECT_EQ(most.slots, 3U);
    EXPECT_LE(most.blocks, 132U);
    one.host_contiguous.clear();
    EXPECT_EQ(chosen(1000, 4096, {.multiprocessors = 132, .of_pipeline = 0}).method,
              ListMethod::kernel)
        << "without rows of such lists, those of others decide if no pipeline is faster";
    EXPECT_EQ(chosen(10000, 4096, usual).method, ListMethod::pipeline);
}

// --- bytes arrive ----------------------------------------------------------------------------

std::string number(std::minstd_rand& random, std::size_t least, std::size_t most) {
    return std::to_string(least + random() % (most - least + 1));
}

RowText random_row(std::minstd_rand& random, std::size_t from_bytes, std::size_t count,
                   const std::vector<std::string>& executors) {
    RowText row{.from_bytes = from_bytes,
                .executor = executors[random() % executors.size()],
                .count = count};
    const auto set = [&](const char* name, const std::string& value) {
        if (random() % 4 != 0) row.settings.emplace_back(name, value);
    };
    const std::string chunk = std::to_string(4096 * (1 + random() % 300));
    if (row.executor == "staged" || row.executor == "relay") {
        set("chunk", chunk);
        set("slots", number(random, 1, 16));
    }
    if (row.executor == "relay") set("relays", number(random, 1, 4));
    if (row.executor.ends_with("io")) {
        set("block", chunk);
        set("depth", number(random, 1, 9));
    }
    if (row.executor == "staged" || row.executor == "relay" || row.executor == "cpu") {
        set("threads", number(random, 1, 9));
        set("stores", random() % 2 == 0 ? "ordinary" : "streaming");
    }
    if (row.executor == "sm" || row.executor == "gather-scatter") {
        set("blocks", number(random, 1, 300));
    }
    if (row.executor == "gather-scatter") {
        set("chunk", chunk);
        set("slots", number(random, 1, 16));
    }
    return row;
}

std::vector<ClassText> random_classes(std::minstd_rand& random) {
    const std::vector<std::string> memories = {"pageable", "pinned", "device", "file", "fresh"};
    std::vector<ClassText> classes;
    for (const std::string& from : memories) {
        for (const std::string& to : memories) {
            if (from == "fresh" || random() % 8 == 0) continue;
            const bool two_gpus = from == "device" && to == "device";
            for (const bool idle : {false, true}) {
                for (const char* relation :
                     two_gpus ? std::vector{"same", "peers", "no-peers"} : std::vector{""}) {
                    ClassText one{.from = from, .to = to, .relation = relation, .peers_idle = idle};
                    std::size_t size = random() % 3000;
                    for (std::size_t rows = 1 + random() % 4; rows > 0; --rows) {
                        one.rows.push_back(random_row(
                            random, size, 1,
                            {"copy-engine", "staged", "relay", "cpu", "direct-io", "buffered-io"}));
                        size += 1 + random() % kMiB;
                    }
                    one.rows.push_back(
                        random_row(random, random() % 500, 2, {"copy-engine", "batch", "sm"}));
                    one.rows.push_back(
                        random_row(random, random() % 500, 64, {"copy-engine", "batch", "sm"}));
                    const bool to_host = from == "device" && (to == "pageable" || to == "pinned");
                    if (to_host || (to == "device" && (from == "pageable" || from == "pinned"))) {
                        for (const std::size_t count : {2, 64}) {
                            one.host_contiguous.push_back(
                                random_row(random, random() % 500, count,
                                           {"batch", "sm", "gather-scatter", "gather-scatter"}));
                        }
                    }
                    classes.push_back(std::move(one));
                }
            }
        }
    }
    return classes;
}

class File {
public:
    File() : number_(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {}
    ~File() { close(number_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] int number() const { return number_; }

private:
    int number_;
};

// The memories that a case copies between, each with room for `bytes` at any offset below a page.
struct Memories {
    explicit Memories(std::size_t bytes)
        : pageable(bytes + 4096),
          pinned(bytes + 4096, gpu::HostUse::portable, 0),
          devices{gpu::DeviceBuffer(0, bytes + 4096), gpu::DeviceBuffer(0, bytes + 4096),
                  gpu::DeviceBuffer(1, bytes + 4096)},
          fresh_bytes(bytes + 4096),
          fresh(static_cast<std::byte*>(mmap(nullptr, bytes + 4096, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Memories() { munmap(fresh, fresh_bytes); }
    Memories(const Memories&) = delete;
    Memories& operator=(const Memories&) = delete;

    std::byte* operator[](std::size_t kind) {
        switch (kind) {
            case 0: return pageable.data();
            case 1: return pinned.data();
            case 2: return fresh;
            default: return devices[kind - 3].data();
        }
    }
    static constexpr std::size_t kKinds = 6;

    std::vector<std::byte> pageable;
    gpu::HostBuffer pinned;
    std::array<gpu::DeviceBuffer, 3> devices;
    std::size_t fresh_bytes;
    std::byte* fresh;
};

TEST_F(PolicyCopies, BytesArriveWhateverAPolicySays) {
    std::minstd_rand random(11);
    std::size_t by_policy = 0;
    const std::size_t kPolicies = test::many_sizes() ? 24 : 6;
    for (std::size_t policy = 0; policy < kPolicies; ++policy) {
        SCOPED_TRACE("policy " + std::to_string(policy));
        fake::configure(policy % 3 == 0 ? "h2d=60;d2h=60;d2d=90;peer=90;staged=50;no_peers=all"
                                        : "h2d=60;d2h=60;d2d=90;peer=90;staged=50");
        const auto engine = Engine::make(
            discover_machine(),
            EngineOptions{.threads = 1 + random() % 4,
                          .pinned_bytes = random() % 2 == 0 ? kMiB : 24 * kMiB,
                          .relays = random() % 2 == 0 ? std::vector<int>{} : std::vector{1},
                          .relay_bytes = random() % 2 == 0 ? 256 * kKiB : 8 * kMiB,
                          .max_queued_bytes = random() % 3 == 0 ? kMiB : 0},
            policy_of(random_classes(random)));
        const gpu::Stream stream(0);
        const CallerStream caller = CallerStream::of(stream.handle());
        for (int i = 0; i < 18; ++i) {
            const std::size_t bytes = 1 + random() % (random() % 3 == 0 ? 3 * kMiB : 70 * kKiB);
            Memories memory(bytes);
            const auto expected = sequence(bytes, static_cast<unsigned>(random()));
            std::size_t from_kind = random() % Memories::kKinds;
            std::size_t to_kind = random() % Memories::kKinds;
            if (from_kind == 2) from_kind = 0;
            if (from_kind == to_kind) to_kind = (to_kind + 3) % Memories::kKinds;
            std::byte* const from = memory[from_kind] + random() % 4096;
            std::byte* const to = memory[to_kind] + random() % 4096;
            SCOPED_TRACE("case " + std::to_string(i) + ": " + std::to_string(bytes) + " bytes, " +
                         std::to_string(from_kind) + " to " + std::to_string(to_kind));
            test::copy_bytes(from, expected.data(), bytes);
            const Choice choice = choose(*engine, side_of(to, bytes), side_of(from, bytes), bytes);
            by_policy += choice.policy != nullptr ? 1 : 0;
            EXPECT_LE(choice.shape.threads, std::max<std::size_t>(engine->options().threads, 10));
            if (random() % 2 == 0) {
                copy(*engine, to, from, bytes, caller);
            } else {
                copy_async(engine, to, from, bytes, caller).wait({});
            }
            stream.synchronize();
            ASSERT_TRUE(test::same_bytes(to, expected.data(), bytes));
            EXPECT_LE(engine->pinned_bytes(), engine->options().pinned_bytes);
            // The same through a file.
            const File file;
            const std::uint64_t offset = random() % 10000;
            std::size_t moved = 0;
            write(*engine, {file.number(), offset}, from, bytes, caller, moved);
            ASSERT_EQ(moved, bytes);
            std::memset(to, 0, bytes);
            read(*engine, {file.number(), offset}, to, bytes, caller, moved);
            stream.synchronize();
            ASSERT_EQ(moved, bytes);
            ASSERT_TRUE(test::same_bytes(to, expected.data(), bytes)) << "through a file";
        }
    }
    EXPECT_GT(by_policy, 4 * kPolicies);
}

TEST_F(PolicyCopies, ListsArriveWhateverAPolicySays) {
    fake::configure("h2d=60;d2h=60;d2d=90;peer=90;staged=50");
    std::minstd_rand random(5);
    const std::size_t kPolicies = 30 / test::case_stride();
    for (std::size_t policy = 0; policy < kPolicies; ++policy) {
        const auto engine_owner =
            Engine::make(discover_machine(), {.threads = 2, .pinned_bytes = 8 * kMiB},
                         policy_of(random_classes(random)));
        Engine& engine = *engine_owner;
        const gpu::Stream stream(0);
        for (int i = 0; i < 10; ++i) {
            const std::size_t count = 1 + random() % 300;
            const std::size_t block = 16 * (1 + random() % 100);
            Memories memory(2 * count * block);
            const std::size_t from_kind = std::array{1, 3, 0, 5}[random() % 4];
            const std::size_t to_kind = std::array{4, 4, 1, 0}[random() % 4];
            if (from_kind == to_kind) continue;
            const auto expected = sequence(count * block, static_cast<unsigned>(i));
            std::vector<void*> to;
            std::vector<const void*> from;
            // Every other block in any order; all in order in host memory, if that is contiguous.
            const bool contiguous = random() % 2 == 0;
            const auto at = [&](std::size_t kind, std::size_t n, std::size_t other) {
                return memory[kind] + (contiguous && kind < 2 ? n : 2 * other) * block;
            };
            for (std::size_t n = 0; n < count; ++n) {
                from.push_back(at(from_kind, n, n));
                to.push_back(at(to_kind, n, (n * 7919) % count));
                test::copy_bytes(at(from_kind, n, n), expected.data() + n * block, block);
            }
            const std::vector<std::size_t> sizes(count, block);
            copy_list(engine, list_of({to.data(), count}, {from.data(), count}, {sizes}),
                      CallerStream::of(stream.handle()));
            stream.synchronize();
            for (std::size_t n = 0; n < count; ++n) {
                ASSERT_TRUE(test::same_bytes(to[n], expected.data() + n * block, block))
                    << policy << ' ' << i << ": " << from_kind << " to " << to_kind;
            }
        }
    }
}

TEST_F(PolicyCopies, AContextReadsTheFileOfItsOption) {
    const std::string file =
        ::testing::TempDir() + "/waywiser-policy-" + std::to_string(getpid()) + ".json";
    std::ofstream(file) << policy_text({staged("pageable", "device")});
    chmod(file.c_str(), 0600);
    const auto host = sequence(kMiB, 4);
    const gpu::DeviceBuffer device(0, kMiB);
    {
        Context context({.pinned_bytes = 8 * kMiB, .policy = file});
        unlink(file.c_str());
        EXPECT_NE(context.explain(device.data(), host.data(), kMiB).find("policy " + file),
                  std::string::npos);
        EXPECT_EQ(context.warnings(), "");
        const gpu::Stream stream(0);
        context.copy(device.data(), host.data(), kMiB, stream.handle());
        stream.synchronize();
        EXPECT_TRUE(test::same_bytes(device.data(), host.data(), kMiB));
    }
    Context without({.pinned_bytes = 8 * kMiB, .policy = "off"});
    EXPECT_EQ(without.explain(device.data(), host.data(), kMiB).find("policy"), std::string::npos);
}

}  // namespace
}  // namespace waywiser::transfer
