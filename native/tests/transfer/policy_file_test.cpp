// Which file the library reads as a policy, and what it knows the machine by.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fake/fixture.hpp"
#include "policy_text.hpp"
#include "transfer/json_reader.hpp"
#include "transfer/policy_file.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::transfer {
namespace {

namespace fs = std::filesystem;

using test::policy_text;

class Folder {
public:
    Folder() {
        std::string name = ::testing::TempDir() + "/waywiser-policy-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }
    [[nodiscard]] const fs::path& path() const { return path_; }
    fs::path put(const std::string& name, const std::string& text, mode_t mode = 0644) const {
        const fs::path file = path_ / name;
        fs::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
        chmod(file.c_str(), mode);
        return file;
    }

private:
    fs::path path_;
};

const MachineIdentity kHere{.fingerprint = {.gpu = "NVIDIA H200",
                                            .gpu_link = "PCIe 5 x16",
                                            .cpu = "CPU",
                                            .driver = 580,
                                            .hypervisor = "KVM"},
                            .links = {"PCIe 5 x16", "PCIe 4 x16"}};
const std::string kFits = policy_text({}, R"({"gpu": "NVIDIA H200", "gpu_link": "PCIe 4 x16"})");
const std::string kForeign = policy_text({}, R"({"gpu": "NVIDIA H100"})");

FoundPolicy found(const PolicyPlaces& places) {
    return find_policy(places, [] { return kHere; });
}
FoundPolicy found_file(const fs::path& file) {
    return found({.file = file.string(), .folders = {}});
}

TEST(PolicyFile, TheNamedFileIsUsedIfItFits) {
    const Folder folder;
    const FoundPolicy used = found_file(folder.put("a.json", kFits));
    EXPECT_NE(used.policy, nullptr);
    EXPECT_EQ(used.file, folder / "a.json");
    EXPECT_EQ(used.warning, "");
    EXPECT_EQ(found({.file = "off", .folders = {folder.path()}}).policy, nullptr);
}

TEST(PolicyFile, ANamedFileThatCannotBeUsedGivesOneWarningAndNoPolicy) {
    const Folder folder;
    folder.put("fits.json", kFits);
    mkfifo((folder / "pipe.json").c_str(), 0600);
    fs::create_directory(folder / "folder.json");
    fs::create_symlink("missing", folder / "dangling.json");
    fs::create_symlink("loop.json", folder / "loop.json");
    const std::vector<std::pair<fs::path, std::string>> cases = {
        {folder / "missing.json", "cannot be opened"},
        {folder / "pipe.json", "not a regular file"},
        {folder / "folder.json", "not a regular file"},
        {folder / "dangling.json", "cannot be opened"},
        {folder / "loop.json", "cannot be opened"},
        {"/dev/zero", "not a regular file"},
        {folder.put("group.json", kFits, 0664), "others may write"},
        {folder.put("world.json", kFits, 0646), "others may write"},
        {folder.put("large.json", kFits + std::string(kMostPolicyBytes, ' ')), "larger than 1 MiB"},
        {folder.put("empty.json", ""), "make it again"},
        {folder.put("cut.json", kFits.substr(0, 40)), "make it again"},
        {folder.put("foreign.json", kForeign), "another machine"},
        {folder.put("new.json",
                    "{\"format\": \"waywiser-policy\", \"version\": 2, "
                    "\"machine\": {}, \"classes\": []}"),
         "version 2"}};
    for (const auto& [file, why] : cases) {
        const FoundPolicy none = found({.file = file.string(), .folders = {folder.path()}});
        EXPECT_EQ(none.policy, nullptr) << file;
        EXPECT_NE(none.warning.find(why), std::string::npos) << none.warning;
        EXPECT_NE(none.warning.find("defaults are used"), std::string::npos);
        EXPECT_EQ(none.warning.find('\n'), std::string::npos);
    }
    EXPECT_NE(found_file(folder.put("line\nbreak.json", "")).warning.find("line?break"),
              std::string::npos);
}

TEST(PolicyFile, OtherUsersCannotGiveOne) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    const Folder folder;
    const fs::path file = folder.put("a.json", kFits);
    ASSERT_EQ(chown(file.c_str(), 12345, 0), 0);
    EXPECT_NE(found_file(file).warning.find("belongs to user 12345"), std::string::npos);
    fs::create_symlink(file, folder / "link.json");
    EXPECT_EQ(found_file(folder / "link.json").policy, nullptr) << "the target counts";
}

TEST(PolicyFile, ALinkToAFileThatIsTrustedIsFollowed) {
    const Folder folder;
    folder.put("else/real", kFits);
    fs::create_symlink(folder / "else/real", folder / "a.json");
    EXPECT_NE(found_file(folder / "a.json").policy, nullptr);
    chmod((folder / "else/real").c_str(), 0666);
    EXPECT_EQ(found_file(folder / "a.json").policy, nullptr);
}

TEST(PolicyFile, TheFirstOfTheFoldersThatFitsIsUsed) {
    const Folder folder;
    folder.put("user/b.json", kForeign);
    folder.put("user/.a.json", kFits);
    folder.put("user/a.json.old", kFits);
    folder.put("system/c.json", kFits);
    folder.put("system/d.json", kFits);
    const PolicyPlaces places{.file = "",
                              .folders = {folder / "none", folder / "user", folder / "system"}};
    FoundPolicy used = found(places);
    EXPECT_EQ(used.file, folder / "system/c.json");
    EXPECT_EQ(used.warning, "") << "a policy of another machine may be in a shared folder";
    folder.put("user/c.json", kFits);
    EXPECT_EQ(found(places).file, folder / "user/c.json");
    folder.put("user/a.json", "damaged");
    folder.put("user/b.json", kFits, 0666);
    used = found(places);
    EXPECT_EQ(used.file, folder / "user/c.json");
    EXPECT_NE(used.warning.find("user/a.json is not used"), std::string::npos) << used.warning;
    EXPECT_NE(used.warning.find("1 other"), std::string::npos) << used.warning;
}

TEST(PolicyFile, AFolderWithManyFilesIsReadInPart) {
    const Folder folder;
    for (int i = 100; i < 200; ++i) folder.put(std::to_string(i) + ".json", kForeign);
    const auto files = policy_files(folder.path());
    ASSERT_EQ(files.size(), 64U);
    EXPECT_TRUE(std::ranges::is_sorted(files));
    EXPECT_EQ(files.front(), folder / "100.json");
    EXPECT_TRUE(policy_files(folder / "100.json").empty());
}

TEST(PolicyFile, MutatedFilesNeverDoHarm) {
    const Folder folder;
    const std::string whole =
        policy_text({{.from = "pageable",
                      .to = "device",
                      .rows = {{.executor = "staged", .settings = {{"slots", "4"}}}}}},
                    R"({"gpu": "NVIDIA H200"})");
    std::minstd_rand random(3);
    for (int i = 0; i < 500; ++i) {
        std::string text = whole;
        for (int n = 0; n < 3; ++n) text[random() % text.size()] = static_cast<char>(random());
        text.resize(random() % 3 == 0 ? random() % text.size() : text.size());
        const FoundPolicy used = found_file(folder.put("a.json", text));
        EXPECT_NE(used.policy == nullptr, used.warning.empty()) << text;
    }
}

// Restores an environment variable at its end.
class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(name) {
        const char* const before = std::getenv(name);
        if (before != nullptr) before_ = before;
        setenv(name, value.c_str(), 1);
    }
    ~Variable() {
        if (before_) {
            setenv(name_, before_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

TEST(PolicyFile, TheEnvironmentNamesThePlaces) {
    const Variable policy("WAYWISER_POLICY", "");
    const Variable home("HOME", "/home/x");
    {
        const Variable config("XDG_CONFIG_HOME", "/config");
        const PolicyPlaces places = PolicyPlaces::of_environment();
        EXPECT_EQ(places.file, "");
        EXPECT_EQ(places.folders, (std::vector<fs::path>{"/config/waywiser", "/etc/waywiser"}));
    }
    const Variable config("XDG_CONFIG_HOME", "relative");
    const Variable named("WAYWISER_POLICY", "a.json");
    const PolicyPlaces places = PolicyPlaces::of_environment();
    EXPECT_EQ(places.file, "a.json");
    EXPECT_EQ(places.folders, (std::vector<fs::path>{"/home/x/.config/waywiser", "/etc/waywiser"}));
}

// --- fingerprints ----------------------------------------------------------------------------

// The same cases as tests/machine/test_fingerprints.py.
TEST(Fingerprints, FollowTheRulesOfThePythonPackage) {
    const fs::path cases =
        fs::path(__FILE__).parent_path() / "../../../tests/machine/fingerprints.json";
    std::stringstream text;
    text << std::ifstream(cases).rdbuf();
    const std::string all = text.str();
    JsonReader reader(all);
    std::size_t count = 0;
    reader.array([&] {
        const Folder folder;
        std::string about;
        std::string hypervisor;
        std::string cpu;
        std::uint64_t driver = 1;
        reader.object([&](const std::string& key) {
            if (key == "files") {
                reader.object(
                    [&](const std::string& name) { folder.put(name.substr(1), reader.text()); });
            } else if (key == "driver") {
                driver = reader.integer();
            } else {
                (key == "about" ? about : key == "cpu" ? cpu : hypervisor) = reader.text();
            }
        });
        EXPECT_EQ(hypervisor_name(folder.path()), hypervisor) << about;
        EXPECT_EQ(cpu_model(folder.path()), cpu) << about;
        EXPECT_EQ(driver_major(folder.path()), driver) << about;
        ++count;
    });
    EXPECT_GE(count, 9U) << cases;
}

TEST(Fingerprints, AMachineThatSaysNothingIsUnknown) {
    const Folder folder;
    EXPECT_EQ(hypervisor_name(folder.path()), "");
    EXPECT_EQ(cpu_model(folder.path()), "");
    EXPECT_EQ(driver_major(folder.path()), 0U);
    EXPECT_TRUE(gpu_links("0000:01:00.0", folder.path()).empty());
}

TEST(Fingerprints, ALinkIsWhatTheGpuOrTheBridgeAboveItSupports) {
    const Folder folder;
    const std::string bridge = "sys/devices/pci0000:00/0000:00:01.0/";
    folder.put(bridge + "0000:01:00.0/max_link_speed", "32.0 GT/s PCIe\n");
    folder.put(bridge + "0000:01:00.0/max_link_width", "16\n");
    fs::create_directories(folder / "sys/bus/pci/devices");
    fs::create_symlink(folder / (bridge + "0000:01:00.0"),
                       folder / "sys/bus/pci/devices/0000:01:00.0");
    const auto links = [&] { return gpu_links("0000:01:00.0", folder.path()); };
    EXPECT_EQ(links(), std::vector<std::string>{"PCIe 5 x16"});
    folder.put(bridge + "max_link_speed", "16.0 GT/s PCIe\n");
    folder.put(bridge + "max_link_width", "255\n");
    EXPECT_EQ(links(), std::vector<std::string>{"PCIe 5 x16"}) << "the width is unknown";
    folder.put(bridge + "max_link_width", "32\n");
    EXPECT_EQ(links(), (std::vector<std::string>{"PCIe 5 x16", "PCIe 4 x16"}));
    folder.put(bridge + "0000:01:00.0/max_link_speed", "Unknown\n");
    EXPECT_TRUE(links().empty());
}

// --- warnings --------------------------------------------------------------------------------

class PolicyWarnings : public test::OnFake {};

TEST_F(PolicyWarnings, AreWrittenOncePerProcessAndKeptByEachContext) {
    const Folder folder;
    const std::string file = folder.put("warned.json", "{").string();
    ::testing::internal::CaptureStderr();
    {
        const Context first({.pinned_bytes = 1 << 20, .policy = file});
        const Context second({.pinned_bytes = 1 << 20, .policy = file});
        for (const Context* context : {&first, &second}) {
            EXPECT_NE(context->warnings().find("warned.json is not used"), std::string::npos);
        }
    }
    const std::string written = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(written.find("waywiser: warning: the policy "), 0U) << written;
    EXPECT_EQ(written.find('\n'), written.size() - 1) << written;
    ::testing::internal::CaptureStderr();
    {
        const std::string other = folder.put("quiet.json", "{").string();
        const Context quiet({.pinned_bytes = 1 << 20, .policy = other, .quiet = true});
        EXPECT_NE(quiet.warnings(), "");
        const Context off({.pinned_bytes = 1 << 20, .policy = "off"});
        EXPECT_EQ(off.warnings(), "");
        const Context plain({.plain = true, .policy = other});
        EXPECT_EQ(plain.warnings(), "") << "it reads no policy";
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(PolicyWarnings, ProgramsOfTheFirstHeaderHaveNoPolicyOption) {
    waywiser_options options{};
    options.size = offsetof(waywiser_options, policy);
    options.policy = "/does/not/exist";
    options.quiet = 1;
    waywiser_context* context = nullptr;
    ASSERT_EQ(waywiser_context_create(&options, &context), WAYWISER_OK) << waywiser_last_error();
    std::size_t needed = 0;
    EXPECT_EQ(waywiser_context_warnings(context, nullptr, 0, &needed), WAYWISER_OK);
    EXPECT_EQ(needed, 1U);
    waywiser_context_release(context);
    options.size -= 1;
    EXPECT_EQ(waywiser_context_create(&options, &context), WAYWISER_INVALID);
}

}  // namespace
}  // namespace waywiser::transfer
