#include "waywiser/words.hpp"

#include <gtest/gtest.h>

namespace waywiser {
namespace {

TEST(Place, IsReadAsItIsWritten) {
    for (const char* text :
         {"numa:0", "numa:12", "gpu:7", "file:/data/x", "file:a:b", "file:gpu:1"}) {
        EXPECT_EQ(Place::parse(text).text(), text);
    }
    EXPECT_EQ(Place::parse("gpu:3"), (Place{Place::Kind::gpu, 3, {}}));
    EXPECT_EQ(Place::parse("file:/data/x"), (Place{Place::Kind::file, 0, "/data/x"}));
}

TEST(Place, RejectsWhatIsNone) {
    for (const char* text : {"", "numa", "numa:", "numa:-1", "numa:1x", "numa: 1", "gpu:+1",
                             "cpu:0", "file:", ":0", "gpu:99999999999", "numa:0 "}) {
        try {
            Place::parse(text);
            ADD_FAILURE() << "'" << text << "' was read as a place";
        } catch (const NotSupported& error) {
            EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"),
                      std::string::npos);
        }
    }
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
