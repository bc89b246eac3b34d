#include "host/child.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace waywiser::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Answers each line with its word. No cat: that of busybox holds the lock of the pipe while it
// waits for a request (sendfile), so that its parent can neither read an answer nor exit.
constexpr const char* kEchoes = "while read -r word; do printf %s \"$word\"; done";

// A reaped process does not exist; a zombie would still be found.
bool exists(pid_t pid) { return kill(pid, 0) == 0; }

std::string complaint(const auto& work) {
    try {
        work();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

TEST(Child, AnswersAndStaysUntilLetGo) {
    pid_t pid = -1;
    {
        Child child("/bin/sh", {"-c", std::string("printf 'ready!'; ") + kEchoes});
        pid = child.pid();
        EXPECT_EQ(child.read(3, seconds(10)), "rea");
        EXPECT_EQ(child.read(3, seconds(10)), "dy!");
        EXPECT_TRUE(exists(pid));
    }
    EXPECT_FALSE(exists(pid));
}

TEST(Child, AnswersRequests) {
    Child child("/bin/sh", {"-c", kEchoes});
    for (const std::string word : {"one", "another"}) {
        child.write(word + "\n");
        EXPECT_EQ(child.read(word.size(), seconds(10)), word);
    }
}

// And without a signal that ends this process.
TEST(Child, ThatHasEndedAcceptsNoRequests) {
    Child child("/bin/sh", {"-c", "exit 0"});
    EXPECT_NE(complaint([&] { child.read(1, seconds(10)); }), "");
    std::string said;  // its output may end shortly before its input
    for (int tries = 0; tries < 1000 && said.empty(); ++tries) {
        said = complaint([&] { child.write("word"); });
        std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(said, "sh has ended");
}

TEST(Child, LeavesAtTheEndOfItsInput) {
    const auto began = steady_clock::now();
    {
        const Child child("/bin/sh", {"-c", kEchoes});
    }
    EXPECT_LT(steady_clock::now() - began, seconds(3));
}

TEST(Child, ThatEndsEarlyIsAnError) {
    Child child("/bin/sh", {"-c", "printf 'half'"});
    EXPECT_EQ(complaint([&] { child.read(8, seconds(10)); }), "sh ended before it answered");
}

TEST(Child, ThatNeverAnswersIsAnErrorInTime) {
    Child child("/bin/sh", {"-c", kEchoes});
    const auto began = steady_clock::now();
    EXPECT_EQ(complaint([&] { child.read(1, milliseconds(50)); }), "sh does not answer");
    EXPECT_GE(steady_clock::now() - began, milliseconds(50));
    EXPECT_LT(steady_clock::now() - began, seconds(5));
}

TEST(Child, ThatDoesNotLeaveIsKilled) {
    pid_t pid = -1;
    {
        const Child child("/bin/sleep", {"1000"}, milliseconds(50));
        pid = child.pid();
    }
    EXPECT_FALSE(exists(pid));
}

TEST(Child, ThatIsNoProgramIsAnError) {
    EXPECT_EQ(complaint([] { const Child child("/nowhere/at-all", {}); }),
              "/nowhere/at-all does not start: No such file or directory");
}

// However its parent dies: here by a signal that cannot be caught.
TEST(Child, DiesWithItsParent) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t parent = fork();
    ASSERT_GE(parent, 0);
    if (parent == 0) {
        const Child child("/bin/sh", {"-c", kEchoes});
        const pid_t pid = child.pid();
        if (write(ends[1], &pid, sizeof pid) == sizeof pid) pause();
        _exit(1);
    }
    pid_t pid = -1;
    ASSERT_EQ(read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    EXPECT_TRUE(exists(pid));
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    const auto ended = [&] {  // reaped, or waiting for init to reap it
        std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
        std::string number, name, state;
        return !(status >> number >> name >> state) || state == "Z";
    };
    for (int tries = 0; tries < 1000 && !ended(); ++tries) {
        std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_TRUE(ended());
}

TEST(FindProgram, IsFoundInTheFolderAndInLib) {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::string name = "waywiser-test-" + std::to_string(getpid());
    EXPECT_EQ(find_program(name), std::nullopt);
    for (const auto& path : {folder / name, folder / "lib" / name}) {
        const bool made = std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << "here\n";
        EXPECT_EQ(find_program(name), path);
        std::filesystem::remove(path);
        if (made) std::filesystem::remove(path.parent_path());
    }
}

}  // namespace
}  // namespace waywiser::host
