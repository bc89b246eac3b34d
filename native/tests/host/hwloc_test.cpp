#include "host/hwloc.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

namespace waywiser::host {
namespace {

std::string what(const std::string& file) {
    try {
        hwloc_xml(file);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return {};
}

TEST(Hwloc, DescribesThisMachine) {
    const std::string xml = hwloc_xml();
    EXPECT_NE(xml.find("<topology"), std::string::npos);
    EXPECT_NE(xml.find("type=\"PU\""), std::string::npos);
    EXPECT_EQ(xml.find('\0'), std::string::npos);
}

TEST(Hwloc, ReadsWhatItWrote) {
    const std::string file = ::testing::TempDir() + "waywiser_topology.xml";
    // After the objects comes what hwloc can do with the live machine, which a file does not have.
    const auto objects = [](const std::string& xml) { return xml.substr(0, xml.find("<support")); };
    const std::string xml = hwloc_xml();
    std::ofstream(file) << xml;
    EXPECT_TRUE(objects(hwloc_xml(file)) == objects(xml));
}

TEST(Hwloc, NamesAFileThatItCannotRead) {
    const std::string file = ::testing::TempDir() + "waywiser_not_a_topology.xml";
    std::ofstream(file) << "<topology";
    for (const std::string& bad : {file, ::testing::TempDir(), std::string("/no/such/file.xml")}) {
        EXPECT_EQ(what(bad).find(bad), 0u) << what(bad);
        EXPECT_EQ(what(bad).find('\n'), std::string::npos);
    }
}

}  // namespace
}  // namespace waywiser::host
