#include "waywiser/words.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

TEST(Place, IsReadAsItIsWritten) {
    for (const char* text : {"numa:0", "numa:12", "gpu:7", "gpu:0-7", "rank:3", "rank:2-5",
                             "file:/data/x", "file:a:b", "file:gpu:1"}) {
        EXPECT_EQ(Place::parse(text).text(), text);
    }
    EXPECT_EQ(Place::parse("gpu:3"), (Place{Place::Kind::gpu, 3, {}}));
    EXPECT_EQ(Place::parse("file:/data/x"), (Place{Place::Kind::file, 0, "/data/x"}));
}

TEST(Place, RejectsWhatIsNone) {
    for (const char* text : {"", "numa", "numa:", "numa:-1", "numa:1x", "numa: 1", "gpu:+1",
                             "cpu:0", "file:", ":0", "gpu:99999999999", "numa:0 ", "numa:0-1",
                             "rank:3-3", "rank:3-1", "rank:0-", "gpu:-3", "rank:0-1024"}) {
        try {
            Place::parse(text);
            ADD_FAILURE() << "'" << text << "' was read as a place";
        } catch (const NotSupported& error) {
            EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"),
                      std::string::npos);
        }
    }
}

TEST(Place, OfSeveralIsEachOfThem) {
    const Place ranks = Place::parse("rank:2-4");
    EXPECT_TRUE(ranks.several());
    EXPECT_EQ(ranks.each(), (std::vector<Place>{Place::parse("rank:2"), Place::parse("rank:3"),
                                                Place::parse("rank:4")}));
    EXPECT_EQ(Place::parse("gpu:3").each(), std::vector{Place::parse("gpu:3")});
    const Memory memory{"device", Place::parse("gpu:0-1"), {{"from", "ipc"}}};
    ASSERT_EQ(memory.each().size(), 2);
    EXPECT_EQ(memory.each().back().text(), "device[from=ipc]@gpu:1");
}

TEST(WholeNumber, IsOfUpToTwentyDigitsAndWithinItsBound) {
    EXPECT_EQ(whole_number("0"), 0u);
    EXPECT_EQ(whole_number("00000000000000000007"), 7u);
    EXPECT_EQ(whole_number(std::to_string(kMostBytes)), kMostBytes);
    for (const std::string& text :
         {std::string(), std::string("-1"), std::string("+1"), std::string("1.0"),
          std::string("000000000000000000007"), std::to_string(kMostBytes + 1),
          std::string("99999999999999999999"), std::string(5000, '9'), std::string("1\0", 2)}) {
        EXPECT_EQ(whole_number(text), std::nullopt) << text;
    }
}

TEST(Place, HasTheGreatestIndex) {
    const std::string most = std::to_string(kMostIndex);
    EXPECT_EQ(Place::parse("numa:" + most).text(), "numa:" + most);
    EXPECT_THROW(Place::parse("numa:2147483648"), NotSupported);
    EXPECT_THROW(Place::parse("numa:4294967296"), NotSupported);
    EXPECT_THROW(Place::parse("gpu:" + std::string(5000, '9')), NotSupported);
}

TEST(Words, WithoutATextAreRejected) {
    EXPECT_NO_THROW(require_name("copy-engine"));
    for (const char* name : {"", "A", "9a", "-a", "a b", "a_b", "a@b"}) {
        EXPECT_THROW(require_name(name), NotSupported) << name;
    }
    EXPECT_NO_THROW(require_settings({{"api", "sync"}, {"a", "b=c"}}));
    for (const Settings& settings :
         {Settings{{"", "b"}}, Settings{{"a", ""}}, Settings{{"a=b", "c"}}, Settings{{"a", "b,c"}},
          Settings{{"a", "b]"}}, Settings{{"a", "b c"}}, Settings{{"a", "\t"}}}) {
        EXPECT_THROW(require_settings(settings), NotSupported);
    }
    EXPECT_NO_THROW(require_layout_settings({{"piece", "28672"}, {"scattered", "both"}}));
    EXPECT_THROW(require_layout_settings({{"piece", "28KiB"}}), NotSupported);
    EXPECT_NO_THROW(require_bytes(kMostBytes));
    EXPECT_THROW(require_bytes(kMostBytes + 1), NotSupported);
}

TEST(Words, AreWrittenInCanonicalForm) {
    const Memory pinned{"pinned", Place::parse("numa:0"), {}};
    const Memory huge{"pageable", Place::parse("numa:1"), {{"pages", "huge"}, {"a", "b"}}};
    const Memory device{"device", Place::parse("gpu:1"), {}};
    EXPECT_EQ(pinned.text(), "pinned@numa:0");
    EXPECT_EQ(huge.text(), "pageable[a=b,pages=huge]@numa:1");
    const Path path{pinned, device, "copy-engine"};
    EXPECT_EQ(path.text(), "pinned@numa:0 -> device@gpu:1 by copy-engine");
    const Transfer transfer{path, 4096, {{"api", "sync"}}};
    EXPECT_EQ(transfer.text().find(path.text() + "[api=sync]"), 0u);
    EXPECT_NE(transfer.text().find("4096"), std::string::npos);
    EXPECT_TRUE(pinned.on_host() && !pinned.on_gpu());
    EXPECT_TRUE(device.on_gpu() && !device.on_host());
}

TEST(Machine, FindsPlacesByTheirOwnNumber) {
    Machine machine{{{.index = 4, .cpus = {1, 2}}}, {}};
    machine.gpus.emplace_back().index = 1;
    machine.gpus.back().uuid = "GPU-x";
    ASSERT_NE(machine.node(4), nullptr);
    EXPECT_EQ(machine.node(4)->cpus.size(), 2u);
    EXPECT_EQ(machine.node(0), nullptr);
    ASSERT_NE(machine.gpu(1), nullptr);
    EXPECT_EQ(machine.gpu(1)->uuid, "GPU-x");
    EXPECT_EQ(machine.gpu(0), nullptr);
}

}  // namespace
}  // namespace waywiser
