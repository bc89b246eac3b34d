// A folder for one test, with a user's file, and both as file places.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance.hpp"
#include "host/affinity.hpp"
#include "host/files.hpp"
#include "waywiser/words.hpp"

namespace waywiser::test {

class ScratchFolder {
public:
    explicit ScratchFolder(const std::string& above = ::testing::TempDir()) {
        std::string name = above + "/waywiser-test-XXXXXX";
        path_ = mkdtemp(name.data());
        const auto content = sequence(kFileBytes, 11);
        std::ofstream file(user_file(), std::ios::binary);
        file.write(reinterpret_cast<const char*>(content.data()),
                   static_cast<std::streamsize>(content.size()));
    }
    ~ScratchFolder() { std::filesystem::remove_all(path_); }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    static constexpr std::size_t kFileBytes = (std::size_t{3} << 20) + 13;
    static constexpr std::size_t kScratchBytes = std::size_t{32} << 20;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string user_file() const { return path_ + "/somebody's"; }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            found.push_back(entry.path().filename());
        return found;
    }
    [[nodiscard]] Machine machine() const {
        return {.numa = {{0, host::allowed_cpus()}},
                .gpus = {},
                .files = {{"scratch", path_, true, kScratchBytes, "", true},
                          {user_file(), user_file(), false, kFileBytes, "", true}}};
    }
    // Whether the file can be opened with O_DIRECT: some container file systems do not support it.
    [[nodiscard]] bool direct() const {
        try {
            host::reopen_direct(host::readable_file(user_file()).get());
            return true;
        } catch (const NotSupported&) {
            return false;
        }
    }

private:
    std::string path_;
};

inline Memory at_file(const std::string& kind, const std::string& name,
                      const Settings& variant = {}) {
    return {kind, {Place::Kind::file, 0, name}, variant};
}

}  // namespace waywiser::test
