// The reader of policies and the look-up.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "host/pages.hpp"
#include "policy_text.hpp"
#include "transfer/copy_method.hpp"
#include "transfer/json_reader.hpp"
#include "units.hpp"

namespace waywiser::transfer {
namespace {

using test::ClassText;
using test::policy_text;

// Why a text is no policy; empty if it is one.
std::string damage(const std::string& text) {
    try {
        parse_policy(text);
    } catch (const PolicyDamage& why) {
        EXPECT_STRNE(why.what(), "");
        return why.what();
    }
    return {};
}

// The text with one part replaced.
std::string replaced(std::string text, const std::string& part, const std::string& by) {
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), by);
}

// Expects each change, of a part by another text, to be damage.
void expect_damage(const std::string& whole,
                   const std::vector<std::pair<const char*, const char*>>& changes) {
    for (const auto& [part, by] : changes) {
        EXPECT_NE(damage(replaced(whole, part, by)), "") << part << " -> " << by;
    }
}

ClassText pageable_to_device() {
    return {.from = "pageable",
            .to = "device",
            .rows = {{.from_bytes = 4096},
                     {.from_bytes = 1 << 20,
                      .executor = "staged",
                      .settings = {{"chunk", "524288"}, {"slots", "5"}, {"threads", "3"}},
                      .threads = 4}}};
}

const std::string& example() {
    static const std::string text = policy_text(
        {pageable_to_device(),
         {.from = "device",
          .to = "device",
          .rows =
              {{.from_bytes = 1024, .executor = "sm", .settings = {{"blocks", "2"}}, .count = 16},
               {.from_bytes = 65536, .executor = "batch", .count = 16}},
          .relation = "same"},
         {.from = "device",
          .to = "pinned",
          .host_contiguous = {{.executor = "gather-scatter",
                               .settings = {{"chunk", "1048576"}, {"slots", "2"}},
                               .count = 64}}}},
        R"({"gpu": "NVIDIA H200", "gpu_link": "PCIe 5 x16", "cpu": "C\u00e9 \ud83d\ude00",
            "driver": 580, "hypervisor": "none", "later": [1, {"x": null}]})");
    return text;
}

TEST(PolicyReader, ReadsAPolicy) {
    const Policy policy = parse_policy(example());
    EXPECT_EQ(policy.machine, (Fingerprint{.gpu = "NVIDIA H200",
                                           .gpu_link = "PCIe 5 x16",
                                           .cpu = "C\xc3\xa9 \xf0\x9f\x98\x80",
                                           .driver = 580,
                                           .hypervisor = "none"}));
    ASSERT_EQ(policy.classes.size(), 3U);
    const PolicyRow& staged = policy.classes[0].rows[1];
    EXPECT_EQ(staged.method, PolicyMethod::chunked);
    EXPECT_EQ(staged.shape.chunk, 512 * kKiB);
    EXPECT_EQ(staged.shape.slots, 5U);
    EXPECT_EQ(staged.shape.threads, 3U);
    EXPECT_DOUBLE_EQ(staged.seconds, 0.000412);
    const PolicyRow& kernel = policy.classes[1].rows[0];
    EXPECT_EQ(kernel.method, PolicyMethod::kernel);
    EXPECT_EQ(kernel.blocks, 2U);
    EXPECT_FALSE(kernel.host_contiguous);
    const PolicyRow& pipeline = policy.classes[2].rows[0];
    EXPECT_EQ(pipeline.method, PolicyMethod::pipeline);
    EXPECT_TRUE(pipeline.host_contiguous);
    EXPECT_EQ(pipeline.shape.chunk, kMiB);
    EXPECT_EQ(pipeline.shape.slots, 2U);
    EXPECT_EQ(pipeline.blocks, 8U) << "the default of the executor";
    EXPECT_EQ(pipeline.pieces, 64U) << "of the smallest list, if the row does not say more";
}

TEST(PolicyReader, MissingSettingsAreTheDefaultsOfTheExecutor) {
    const Policy policy = parse_policy(policy_text(
        {{.from = "device", .to = "pageable", .rows = {{.executor = "staged", .threads = 4}}}}));
    const CopyShape& shape = policy.classes[0].rows[0].shape;
    const CopyShape usual = default_shape(Endpoint::host(nullptr, false),
                                          Endpoint::device(nullptr, 0), std::size_t{1} << 30, 4);
    EXPECT_EQ(shape.chunk, usual.chunk);
    EXPECT_EQ(shape.slots, usual.slots);
    EXPECT_EQ(shape.threads, 4U);
    EXPECT_TRUE(shape.streaming);
}

TEST(PolicyReader, ATruncatedPolicyIsDamaged) {
    const std::string& whole = example();
    const std::size_t end = whole.find_last_of('}');
    for (std::size_t size = 0; size <= end; ++size) {
        EXPECT_NE(damage(whole.substr(0, size)), "") << size;
    }
    EXPECT_EQ(damage(whole), "");
}

TEST(PolicyReader, ChangedBytesAreDamageOrAPolicyWithinItsBounds) {
    const std::string& whole = example();
    std::minstd_rand random(7);
    std::size_t damaged = 0;
    constexpr std::size_t kCases = 6000;
    for (std::size_t i = 0; i < kCases; ++i) {
        std::string text = whole;
        for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
                case 0: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
                case 1: text.erase(at, 1 + random() % 20); break;
                case 2: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
                default: text[at] = "{}[]\",:0-9eE.tfn\\ "[random() % 18]; break;
            }
        }
        if (damage(text).empty()) {
            const Policy policy = parse_policy(text);
            for (const PolicyClass& one : policy.classes) {
                for (const PolicyRow& row : one.rows) {
                    EXPECT_EQ(row.shape.chunk % 4096, 0U);
                    EXPECT_LE(row.shape.chunk, 64 * kMiB);
                    EXPECT_GE(row.shape.chunk, 4096U);
                    EXPECT_LE(row.shape.slots, 16U);
                }
            }
        } else {
            ++damaged;
        }
    }
    EXPECT_GT(damaged, kCases / 2);
    EXPECT_LT(damaged, kCases);
}

TEST(PolicyReader, OtherVersionsAndFormatsAreDamage) {
    EXPECT_NE(damage(replaced(example(), "\"version\": 1", "\"version\": 2"))
                  .find("version 2 of the format"),
              std::string::npos);
    // Its other members may mean something else.
    EXPECT_NE(damage("{\"version\": 2, \"format\": \"waywiser-policy\", \"machine\": 3, "
                     "\"classes\": 4}")
                  .find("version 2"),
              std::string::npos);
    EXPECT_NE(damage(replaced(example(), "waywiser-policy", "other")), "");
    EXPECT_NE(damage(replaced(example(), "\"version\": 1", "\"version\": 1.0")), "");
    EXPECT_NE(damage(replaced(example(), "\"version\": 1", "\"version\": \"1\"")), "");
    for (const char* key : {"format", "version", "machine", "classes"}) {
        EXPECT_NE(damage(replaced(example(), std::string("\"") + key + "\"", "\"other\"")), "")
            << key;
    }
}

TEST(PolicyReader, DamageInAnyFieldIsFound) {
    const std::string whole = policy_text({pageable_to_device()});
    ASSERT_EQ(damage(whole), "");
    const std::vector<std::pair<const char*, const char*>> changes = {
        {"\"from_bytes\": 4096", "\"from_bytes\": -1"},
        {"\"from_bytes\": 4096", "\"from_bytes\": 4096.5"},
        {"\"from_bytes\": 4096", "\"from_bytes\": 1e3"},
        {"\"from_bytes\": 4096", "\"from_bytes\": 18446744073709551616"},
        {"\"from_bytes\": 4096", "\"from_bytes\": 9223372036854775807"},
        {"\"from_bytes\": 4096", "\"from_bytes\": \"4096\""},
        {"\"from_bytes\": 4096", "\"from_bytes\": null"},
        {"\"from_bytes\": 4096", "\"from_bytes\": 04096"},
        {"\"from_bytes\": 4096", "\"from_bytes\": 4096, \"from_bytes\": 4096"},
        {"\"from_bytes\": 4096, ", ""},
        {"\"count\": 1", "\"count\": 0"},
        {"\"threads\": 1", "\"threads\": 0"},
        {"\"threads\": 1", "\"threads\": 8193"},
        {"0.000412", "NaN"},
        {"0.000412", "Infinity"},
        {"0.000412", "1e999"},
        {"0.000412", "-0.1"},
        {"0.000412", "\"0.1\""},
        {"0.000412", ".1"},
        {"0.000412", "0x1"},
        {"\"executor\": \"copy-engine\"", "\"executor\": \"teleport\""},
        {"\"executor\": \"copy-engine\"", "\"executor\": \"sm\""},    // makes lists only
        {"\"executor\": \"copy-engine\"", "\"executor\": \"pack\""},  // the library never uses it
        {"\"executor\": \"copy-engine\"", "\"executor\": 3"},
        {"\"seconds\": 0.000412", "\"seconds\": 0"},
        {"\"seconds\": 0.000412", "\"seconds\": 0.000404"},
        {"\"seconds\": 0.000412", "\"seconds\": 0.000419"},
        {"\"low\": 0.000405", "\"low\": 0"},
        {"\"low\": 0.000405", "\"low\": 0.0005"},
        {"\"high\": 0.000418", "\"high\": 1e400"},
        {"\"settings\": {}", "\"settings\": []"},
        {"\"chunk\": \"524288\"", "\"chunk\": 524288"},
        {"\"524288\"", "\"4095\""},
        {"\"524288\"", "\"524289\""},
        {"\"524288\"", "\"67112960\""},
        {"\"524288\"", "\"-4096\""},
        {"\"524288\"", "\"4096 \""},
        {"\"524288\"", "\"\""},
        {"\"524288\"", "\"99999999999999999999999999\""},
        {"\"slots\": \"5\"", "\"slots\": \"0\""},
        {"\"slots\": \"5\"", "\"slots\": \"17\""},
        {"\"threads\": \"3\"", "\"threads\": \"0\""},
        {"\"threads\": \"3\"", "\"stores\": \"other\""},
        {"\"from\": \"pageable\"", "\"from\": \"fresh\""},
        {"\"from\": \"pageable\"", "\"from\": \"elsewhere\""},
        {"\"from\": \"pageable\"", "\"from\": \"device\""},  // without a relation
        {"\"from\": \"pageable\", ", ""},
        {"\"relation\": \"\"", "\"relation\": \"peers\""},
        {"\"relation\": \"\"", "\"relation\": \"friends\""},
        {"\"peers_idle\": false", "\"peers_idle\": 0"},
        {"\"rows\": [", "\"other\": ["},
        {"\"rows\": [", "\"rows\": {"},
        {"\"machine\": {}", "\"machine\": {\"driver\": \"580\"}"},
        {"\"machine\": {}", "\"machine\": {\"gpu\": null}"},
        {"\"machine\": {}", "\"machine\": []"},
        {"2026-11-23\"", "2026-11-23\", // a comment"},
        {"]}\n", "]} x"},
        {"]}\n", "],}"},
        {"\"0.1.0\"", "\"\x01\""},
        {"\"0.1.0\"", "\"\xff\""},
        {"\"0.1.0\"", "\"\xed\xa0\x80\""},
        {"\"0.1.0\"", "\"\\ud800\""},
        {"\"0.1.0\"", "\"\\ud800\\u0041\""},
        {"\"0.1.0\"", "\"\\u12\""},
        {"\"0.1.0\"", "\"\\x\""},
        {"\"0.1.0\"", "'0'"},
        {"\"0.1.0\"", "truely"},
        {"\"0.1.0\"", "nul"},
    };
    expect_damage(whole, changes);
    EXPECT_NE(damage("\xef\xbb\xbf" + whole), "") << "a byte order mark";
    EXPECT_NE(damage(std::string(10, '\0')), "");
    EXPECT_NE(damage("[]"), "");
    EXPECT_NE(damage(policy_text({pageable_to_device(), pageable_to_device()})), "");
    ClassText twice = pageable_to_device();
    twice.rows.push_back(twice.rows.front());
    EXPECT_NE(damage(policy_text({twice})), "") << "two rows for the same sizes";
}

TEST(PolicyReader, DamageInRowsOfContiguousListsIsFound) {
    const ClassText one{
        .from = "pinned",
        .to = "device",
        .rows = {{.executor = "batch", .count = 16}},
        .host_contiguous = {{.executor = "gather-scatter",
                             .settings = {{"chunk", "524288"}, {"slots", "2"}, {"blocks", "4"}},
                             .count = 32,
                             .threads = 2}}};
    const std::string whole = policy_text({one});
    ASSERT_EQ(damage(whole), "");
    EXPECT_EQ(damage(replaced(whole, "gather-scatter", "sm")), "");
    EXPECT_EQ(damage(replaced(whole, "\"count\": 32", "\"count\": 32, \"pieces\": 99")), "");
    const std::vector<std::pair<const char*, const char*>> changes = {
        {"gather-scatter", "scatter"},
        {"gather-scatter", "staged"},  // moves contiguous copies only
        {"\"count\": 32", "\"count\": 1"},
        {"\"count\": 32", "\"count\": 32, \"pieces\": 0"},
        {"\"524288\"", "\"67112960\""},
        {"\"524288\"", "\"524289\""},
        {"\"slots\": \"2\"", "\"slots\": \"17\""},
        {"\"blocks\": \"4\"", "\"blocks\": \"0\""},
        {"\"blocks\": \"4\"", "\"blocks\": \"8193\""},
        {"\"host_contiguous\": [", "\"host_contiguous\": {"},
        {"\"host_contiguous\"", "\"rows\""},
        {"\"from\": \"pinned\"", "\"from\": \"file\""},
        {"\"to\": \"device\"", "\"to\": \"pinned\""},
    };
    expect_damage(whole, changes);
    ClassText within = one;
    within.from = "device";
    within.relation = "same";
    EXPECT_NE(damage(policy_text({within})), "") << "no side is in host memory";
    ClassText twice = one;
    twice.host_contiguous.push_back(twice.host_contiguous.front());
    EXPECT_NE(damage(policy_text({twice})), "") << "two rows for the same sizes";
    ClassText both = one;
    both.rows = both.host_contiguous;
    EXPECT_EQ(damage(policy_text({both})), "") << "other lists";
    EXPECT_EQ(parse_policy(policy_text({both})).classes[0].rows[0].method, PolicyMethod::standard)
        << "no pipeline moves lists that are scattered on both sides";
}

TEST(PolicyReader, UnknownKeysAreIgnored) {
    std::string text = policy_text({pageable_to_device()});
    for (const char* part : {"{\"format\"", "{\"from\"", "{\"from_bytes\"", "{\"chunk\""}) {
        text = replaced(text, part, "{\"new\": \"x\", " + std::string(part).substr(1));
    }
    EXPECT_EQ(damage(text), "");
    EXPECT_EQ(parse_policy(text).classes[0].rows[1].shape.chunk, 512 * kKiB);
}

TEST(PolicyReader, DeepAndLongTextsAreDamage) {
    const auto nested = [](std::size_t depth) {
        return replaced(policy_text({}), "\"0.1.0\"",
                        std::string(depth, '[') + std::string(depth, ']'));
    };
    EXPECT_EQ(damage(nested(JsonReader::kMostDepth - 1)), "");
    EXPECT_NE(damage(nested(JsonReader::kMostDepth)), "");
    EXPECT_NE(damage(nested(400000)), "");
    EXPECT_NE(damage(std::string(900000, '{')), "");
    EXPECT_NE(damage(replaced(policy_text({}), "0.1.0", std::string(5000, 'x'))), "");
    std::string padded = policy_text({});
    padded.resize(kMostPolicyBytes, ' ');
    EXPECT_EQ(damage(padded), "");
    padded += ' ';
    EXPECT_NE(damage(padded), "");
    std::string many;
    for (std::size_t i = 0; i < 100000; ++i) many += "\"" + std::to_string(i) + "\":0,";
    EXPECT_EQ(damage(replaced(policy_text({}), "{\"format\"", "{" + many + "\"format\"")), "");
}

TEST(PolicyReader, RowsThatTheLibraryCannotFollowKeepItsDefaults) {
    const auto method = [](const ClassText& one) {
        return parse_policy(policy_text({one})).classes[0].rows[0].method;
    };
    const auto with = [&](const char* from, const char* to, const char* executor,
                          const char* relation = "", std::size_t count = 1) {
        return method({.from = from,
                       .to = to,
                       .rows = {{.executor = executor, .count = count}},
                       .relation = relation});
    };
    EXPECT_EQ(with("pinned", "device", "staged"), PolicyMethod::standard);
    EXPECT_EQ(with("device", "device", "staged", "same"), PolicyMethod::standard);
    EXPECT_EQ(with("device", "device", "staged", "no-peers"), PolicyMethod::chunked);
    EXPECT_EQ(with("pinned", "device", "relay"), PolicyMethod::chunked);
    EXPECT_EQ(with("device", "device", "relay", "peers"), PolicyMethod::standard);
    EXPECT_EQ(with("pageable", "pinned", "cpu"), PolicyMethod::plain) << "one thread";
    EXPECT_EQ(with("pageable", "device", "cpu"), PolicyMethod::standard);
    EXPECT_EQ(with("file", "pageable", "direct-io"), PolicyMethod::chunked);
    EXPECT_EQ(with("file", "device", "direct-io"), PolicyMethod::standard);
    EXPECT_EQ(with("file", "device", "staged"), PolicyMethod::chunked);
    EXPECT_EQ(with("file", "pageable", "copy-engine"), PolicyMethod::standard);
    EXPECT_EQ(with("pageable", "pageable", "copy-engine", "", 2), PolicyMethod::standard);
    EXPECT_EQ(with("pinned", "device", "batch", "", 2), PolicyMethod::batch);
}

TEST(PolicyReader, SmallCopiesByOneThreadArePlain) {
    using Settings = std::vector<std::pair<std::string, std::string>>;
    const auto method = [](std::size_t from_bytes, const Settings& settings, const char* to) {
        const ClassText one{
            .from = "pageable",
            .to = to,
            .rows = {{.from_bytes = from_bytes, .executor = "cpu", .settings = settings}}};
        return parse_policy(policy_text({one})).classes[0].rows[0].method;
    };
    const Settings one = {{"threads", "1"}, {"stores", "ordinary"}};
    EXPECT_EQ(method(8, one, "pageable"), PolicyMethod::plain);
    EXPECT_EQ(method(8 * kMiB, one, "pageable"), PolicyMethod::chunked);
    EXPECT_EQ(method(8, one, "fresh"), PolicyMethod::chunked);
    EXPECT_EQ(method(8, {{"threads", "2"}}, "pageable"), PolicyMethod::chunked);
    EXPECT_EQ(method(8, {{"threads", "1"}, {"stores", "streaming"}}, "pageable"),
              PolicyMethod::chunked);
}

// --- look-up ---------------------------------------------------------------------------------

PolicyTable table(const std::vector<ClassText>& classes, const PolicyLimits& limits) {
    return {std::make_shared<const Policy>(parse_policy(policy_text(classes))), limits};
}

constexpr PolicyKey kPageableToDevice{.from = PolicyMemory::pageable, .to = PolicyMemory::device};
constexpr PolicyKey kPinnedToDevice{.from = PolicyMemory::pinned, .to = PolicyMemory::device};

TEST(PolicyTable, EveryKeyHasItsOwnCell) {
    std::vector<bool> seen(PolicyKey::kCells);
    for (const int from : {0, 1, 2, 3, 4}) {
        for (const int to : {0, 1, 2, 3, 4}) {
            for (const int relation : {0, 1, 2, 3}) {
                for (const bool idle : {false, true}) {
                    const PolicyKey key{.from = static_cast<PolicyMemory>(from),
                                        .to = static_cast<PolicyMemory>(to),
                                        .relation = static_cast<PolicyRelation>(relation),
                                        .peers_idle = idle};
                    ASSERT_LT(key.cell(), seen.size());
                    EXPECT_FALSE(seen[key.cell()]);
                    seen[key.cell()] = true;
                }
            }
        }
    }
}

TEST(PolicyTable, ARowHoldsFromItsSizeOnUpToTheNext) {
    const PolicyTable known = table(
        {{.from = "pageable",
          .to = "device",
          .rows = {{.from_bytes = 16 * kMiB, .executor = "staged"},
                   {.from_bytes = 4096},
                   {.from_bytes = kMiB, .executor = "staged", .settings = {{"slots", "7"}}}}}},
        {.threads = 4, .host_slot = kMiB});
    const auto at = [&](std::size_t bytes) { return known.copy(kPageableToDevice, bytes); };
    EXPECT_EQ(at(0), nullptr);
    EXPECT_EQ(at(4095), nullptr);
    EXPECT_EQ(at(4096)->row->from_bytes, 4096U);
    EXPECT_EQ(at(kMiB - 1)->row->from_bytes, 4096U);
    EXPECT_EQ(at(kMiB)->shape.slots, 7U);
    EXPECT_EQ(at(16 * kMiB - 1)->shape.slots, 7U);
    EXPECT_NE(at(16 * kMiB)->shape.slots, 7U);
    EXPECT_EQ(at(std::numeric_limits<std::size_t>::max())->row->from_bytes, 16 * kMiB);
    EXPECT_EQ(known.copy(kPinnedToDevice, kMiB), nullptr);
    EXPECT_EQ(known.plain_below(8 * kMiB), kMiB);
    EXPECT_EQ(known.plain_below(kKiB), kKiB);
}

TEST(PolicyTable, TheLargestNumberOfThreadsThatTheContextHasCounts) {
    const std::vector<ClassText> classes = {
        {.from = "pageable",
         .to = "device",
         .rows = {{.settings = {{"threads", "2"}}, .threads = 2},
                  {.executor = "staged", .settings = {{"slots", "4"}}, .threads = 4},
                  {.executor = "staged", .settings = {{"slots", "16"}}, .threads = 16}}}};
    for (const auto& [own, threads] :
         {std::pair{2, 2}, {3, 2}, {4, 4}, {15, 4}, {16, 16}, {99, 16}}) {
        const PolicyTable known = table(classes, {.threads = static_cast<std::size_t>(own)});
        EXPECT_EQ(known.copy(kPageableToDevice, kMiB)->row->threads,
                  static_cast<std::uint64_t>(threads))
            << own;
    }
    const PolicyTable none = table(classes, {.threads = 1});
    EXPECT_EQ(none.copy(kPageableToDevice, kMiB), nullptr) << "the defaults are used";
    EXPECT_FALSE(none.has(kPageableToDevice));
}

TEST(PolicyTable, ListsUseTheLargestCountBelowTheirsOrTheSmallest) {
    const PolicyTable known = table(
        {{.from = "pinned",
          .to = "device",
          .rows =
              {{.from_bytes = 1024, .executor = "sm", .settings = {{"blocks", "4"}}, .count = 16},
               {.from_bytes = 65536, .executor = "batch", .count = 16},
               {.from_bytes = 512, .executor = "batch", .count = 1024},
               {.from_bytes = 0, .executor = "copy-engine"}}}},
        {.threads = 4, .multiprocessors = 2});
    const auto at = [&](std::size_t count, std::size_t bytes) -> const PolicyDecision* {
        return known.list(kPinnedToDevice, PolicyTable::Lists::scattered, count, bytes);
    };
    EXPECT_EQ(at(1, 4096), nullptr) << "one piece is no list";
    EXPECT_EQ(at(2, 1024)->method, PolicyMethod::kernel);
    EXPECT_EQ(at(2, 1024)->blocks, 2U) << "the context allows two";
    EXPECT_EQ(at(16, 65535)->method, PolicyMethod::kernel);
    EXPECT_EQ(at(1023, 65536)->method, PolicyMethod::batch);
    EXPECT_EQ(at(1024, 600)->row->count, 1024U);
    EXPECT_EQ(at(1 << 20, 1 << 20)->row->count, 1024U);
    EXPECT_EQ(at(16, 1023), nullptr) << "smaller pieces than were measured";
    EXPECT_EQ(known.copy(kPinnedToDevice, kMiB)->method, PolicyMethod::plain);
}

TEST(PolicyTable, RowsOfContiguousListsAreOfNoOtherLists) {
    using Lists = PolicyTable::Lists;
    const std::vector<ClassText> classes = {
        {.from = "pinned",
         .to = "device",
         .rows = {{.executor = "batch", .count = 16}},
         .host_contiguous = {{.executor = "gather-scatter",
                              .settings = {{"blocks", "9"}},
                              .count = 2},
                             {.executor = "sm", .count = 2, .threads = 3}}},
        {.from = "device",
         .to = "pinned",
         .host_contiguous = {{.from_bytes = 512, .executor = "gather-scatter", .count = 2}}}};
    const PolicyTable known = table(classes, {.threads = 2, .multiprocessors = 5});
    const PolicyDecision* made = known.list(kPinnedToDevice, Lists::host_contiguous, 100, 4096);
    EXPECT_EQ(made->method, PolicyMethod::pipeline);
    EXPECT_EQ(made->blocks, 5U) << "the context allows five";
    EXPECT_EQ(known.list(kPinnedToDevice, Lists::scattered, 100, 4096)->method,
              PolicyMethod::batch);
    EXPECT_FALSE(known.has(kPinnedToDevice)) << "of contiguous copies";
    EXPECT_EQ(table(classes, {.threads = 3})
                  .list(kPinnedToDevice, Lists::host_contiguous, 100, 4096)
                  ->method,
              PolicyMethod::kernel)
        << "rows of more threads";
    const PolicyKey back{.from = PolicyMemory::device, .to = PolicyMemory::pinned};
    EXPECT_TRUE(known.has(back, Lists::host_contiguous));
    EXPECT_FALSE(known.has(back, Lists::scattered));
    EXPECT_EQ(known.list(back, Lists::host_contiguous, 100, 511), nullptr);
    EXPECT_EQ(known.list(back, Lists::host_contiguous, 1, 512), nullptr) << "one piece is no list";
}

TEST(PolicyTable, NothingExceedsTheLimitsOfTheContext) {
    const std::vector<ClassText> classes = {
        {.from = "pageable",
         .to = "device",
         .rows = {{.executor = "staged",
                   .settings = {{"chunk", "67108864"}, {"threads", "8000"}}}}},
        {.from = "pageable",
         .to = "device",
         .rows = {{.executor = "relay",
                   .settings = {{"relays", "7"}, {"chunk", "16777216"}, {"threads", "8000"}}}},
         .peers_idle = true},
        {.from = "pinned",
         .to = "device",
         .rows = {{.executor = "relay", .settings = {{"relays", "1"}}}},
         .peers_idle = true}};
    const PolicyTable known = table(classes, {.threads = 4,
                                              .relays = {1, 3},
                                              .host_slot = 2 * kMiB,
                                              .relay_slot = kMiB,
                                              .max_queued_bytes = 0});
    const PolicyDecision* staged = known.copy(kPageableToDevice, kMiB);
    EXPECT_EQ(staged->shape.threads, 4U);
    EXPECT_EQ(staged->shape.chunk, 2 * kMiB);
    EXPECT_TRUE(staged->shape.relays.empty());
    PolicyKey idle = kPageableToDevice;
    idle.peers_idle = true;
    const PolicyDecision* relayed = known.copy(idle, kMiB);
    EXPECT_EQ(relayed->shape_for(0).relays, (std::vector{1, 3}));
    EXPECT_EQ(relayed->shape_for(3).relays, std::vector{1}) << "no GPU relays for itself";
    EXPECT_EQ(relayed->shape.chunk, kMiB);
    EXPECT_EQ(relayed->shape.threads, 4U);
    idle.from = PolicyMemory::pinned;
    EXPECT_EQ(known.copy(idle, kMiB)->shape_for(0).relays, std::vector{1});
    EXPECT_EQ(known.copy(idle, kMiB)->shape_for(1).relays, std::vector{3});
    EXPECT_EQ(known.copy(idle, kMiB)->shape.threads, 2U) << "no CPU moves bytes";
    const PolicyTable polite =
        table(classes, {.threads = 4, .host_slot = 2 * kMiB, .max_queued_bytes = kMiB});
    EXPECT_EQ(polite.copy(kPageableToDevice, kMiB)->shape.chunk, 512 * kKiB);
    EXPECT_EQ(polite.copy(idle, kMiB), nullptr) << "a context without relays";
    const PolicyTable tiny = table(classes, {.threads = 1});
    EXPECT_EQ(tiny.copy(kPageableToDevice, kMiB)->shape.chunk, host::page_bytes());
}

TEST(Fingerprints, FitIfAllThatBothSidesKnowIsEqual) {
    const Fingerprint here{
        .gpu = "A", .gpu_link = "PCIe 5 x16", .cpu = "C", .driver = 580, .hypervisor = "none"};
    EXPECT_EQ(difference(here, here, {}), "");
    EXPECT_EQ(difference({}, here, {}), "");
    EXPECT_EQ(difference(here, {}, {}), "");
    Fingerprint other = here;
    other.gpu_link = "PCIe 4 x16";
    EXPECT_NE(difference(other, here, {}), "");
    EXPECT_EQ(difference(other, here, {"PCIe 5 x16", "PCIe 4 x16"}), "");
    for (const auto& [change, word] : {std::pair{&Fingerprint::gpu, "GPU"},
                                       {&Fingerprint::cpu, "CPU"},
                                       {&Fingerprint::hypervisor, "hypervisor"}}) {
        other = here;
        other.*change = "another";
        EXPECT_NE(difference(other, here, {}).find(word), std::string::npos);
        other.*change = "";
        EXPECT_EQ(difference(other, here, {}), "");
    }
    other = here;
    other.driver = 570;
    EXPECT_EQ(difference(other, here, {}), "driver 570 instead of 580");
    other.driver = 0;
    EXPECT_EQ(difference(other, here, {}), "");
}

}  // namespace
}  // namespace waywiser::transfer
