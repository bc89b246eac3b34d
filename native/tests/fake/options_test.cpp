#include "fake/options.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace waywiser::fake {
namespace {

TEST(FakeOptions, DefaultsAreTwoConnectedGpus) {
    const Options options = parse_options("");
    EXPECT_EQ(options.devices, 2);
    EXPECT_TRUE(options.peers(0, 1));
    EXPECT_FALSE(options.peers(0, 0));
}

TEST(FakeOptions, ReadsEveryKindOfValue) {
    const Options options = parse_options(
        "devices=4;memory=64;no_peers=0-1,2-3;h2d=12.5;latency=7;oom_at=3;sticky=copy;"
        "hang=launch@2+;fail=event@/3;delay=0.25@4;gate=stuck;only_bytes=4096;once=/some/file;"
        "piece=3;without=vmm,batch;remote=0.5@7");
    EXPECT_EQ(options.devices, 4);
    EXPECT_EQ(options.memory_bytes, std::size_t{64} << 20);
    EXPECT_FALSE(options.peers(1, 0));
    EXPECT_TRUE(options.peers(1, 2));
    EXPECT_EQ(options.h2d_gb_per_s, 12.5);
    EXPECT_DOUBLE_EQ(options.latency_seconds, 7e-6);
    EXPECT_EQ(options.out_of_memory.value_or(Strike{}).point, Point::alloc);
    EXPECT_EQ(options.out_of_memory.value_or(Strike{}).when.number, 3u);
    EXPECT_EQ(options.sticky.value_or(Strike{Point::alloc, {When::Kind::every, 9}}).when.number,
              1u);
    EXPECT_EQ(options.hang.value_or(Strike{}).point, Point::launch);
    EXPECT_EQ(options.delay_seconds, 0.25);
    EXPECT_EQ(options.gate, GateFault::stuck);
    EXPECT_EQ(options.only_bytes, 4096u);
    EXPECT_EQ(options.once_file, "/some/file");
    EXPECT_DOUBLE_EQ(options.piece_seconds, 3e-6);
    EXPECT_DOUBLE_EQ(options.remote_seconds, 0.5e-6);
    EXPECT_EQ(options.remote_seed, 7u);
    EXPECT_EQ(options.without, (std::set<std::string>{"batch", "vmm"}));
}

TEST(FakeOptions, WhenStrikesAtFromOrEvery) {
    const When at{When::Kind::at, 3};
    const When from{When::Kind::from, 3};
    const When every{When::Kind::every, 3};
    const auto struck = [](const When& when) {
        std::string text;
        for (std::size_t count = 1; count <= 7; ++count) text += when.matches(count) ? 'x' : '.';
        return text;
    };
    EXPECT_EQ(struck(at), "..x....");
    EXPECT_EQ(struck(from), "..xxxxx");
    EXPECT_EQ(struck(every), "..x..x.");
}

TEST(FakeOptions, NamesWhatItDoesNotUnderstand) {
    for (const char* text : {"devces=2", "devices", "devices=two", "devices=-1", "oom_at=0",
                             "oom_at=3-", "sticky=copies", "flip=launch@1", "gate=open", "h2d=0",
                             "delay=-1", "remote=1@one", "no_peers=01", "without=gpu"}) {
        try {
            parse_options(text);
            ADD_FAILURE() << text << " was accepted";
        } catch (const std::invalid_argument& error) {
            const std::string key = std::string(text).substr(0, std::string(text).find('='));
            EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace waywiser::fake
