// Where libcupti.so.N lies: toolkits, and wheels beside the CUDA runtime that is loaded.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "trace/cupti.hpp"

namespace waywiser::trace {
namespace {

namespace fs = std::filesystem;

constexpr int kNewestMajor = 14, kOldestMajor = 11;

void add_wheels(std::vector<fs::path>& folders, const fs::path& site_packages) {
    folders.push_back(site_packages / "nvidia" / "cuda_cupti" / "lib");
    for (int major = kNewestMajor; major >= 13; --major)
        folders.push_back(site_packages / "nvidia" / ("cu" + std::to_string(major)) / "lib");
}

void add_toolkit(std::vector<fs::path>& folders, const fs::path& toolkit) {
    folders.push_back(toolkit / "extras" / "CUPTI" / "lib64");
    for (const char* const target : {"x86_64-linux", "sbsa-linux", "aarch64-linux"})
        folders.push_back(toolkit / "targets" / target / "lib");
    folders.push_back(toolkit / "lib64");
}

// .../site-packages/nvidia/cuda_runtime/lib/libcudart.so.12 and .../torch/lib/libtorch_cuda.so lie
// beside the wheel of CUPTI.
void add_folders_of_loaded(std::vector<fs::path>& folders) {
    for (const char* const name : {"libcudart.so", "libtorch_cuda.so"}) {
        for (const std::string& file : loaded_libraries(name)) {
            const fs::path folder = fs::path(file).parent_path();
            folders.push_back(folder);
            folders.push_back(folder / ".." / "extras" / "CUPTI" / "lib64");
            add_wheels(folders, folder.parent_path().parent_path());
            add_wheels(folders, folder.parent_path().parent_path().parent_path());
        }
    }
}

void add_installed_toolkits(std::vector<fs::path>& folders) {
    for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
        const char* const value = std::getenv(variable);
        if (value != nullptr && *value != '\0') add_toolkit(folders, value);
    }
    add_toolkit(folders, "/usr/local/cuda");
    std::error_code error;
    std::vector<fs::path> others;
    for (const auto& entry : fs::directory_iterator("/usr/local", error)) {
        if (entry.path().filename().string().starts_with("cuda-")) others.push_back(entry.path());
    }
    std::sort(others.rbegin(), others.rend());
    for (const fs::path& toolkit : others) add_toolkit(folders, toolkit);
    for (const char* const folder :
         {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"})
        folders.emplace_back(folder);
}

}  // namespace

std::vector<std::string> cupti_files(int driver) {
    std::vector<fs::path> folders;
    add_folders_of_loaded(folders);
    if (const char* const named = std::getenv("WAYWISER_TRACE_CUPTI_FOLDERS")) {
        std::istringstream list(named);
        for (std::string folder; std::getline(list, folder, ':');) {
            if (folder.empty()) continue;
            folders.emplace_back(folder);
            add_wheels(folders, folder);
        }
    }
    add_installed_toolkits(folders);
    // A CUPTI of a newer major version does not start on an older driver.
    const int newest = driver > 0 ? std::min(driver / 1000, kNewestMajor) : kNewestMajor;
    std::vector<std::string> files;
    for (int major = newest; major >= kOldestMajor; --major) {
        for (const fs::path& folder : folders) {
            const std::string file = folder / ("libcupti.so." + std::to_string(major));
            std::error_code error;
            if (!fs::exists(file, error)) continue;
            if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
        }
    }
    return files;
}

}  // namespace waywiser::trace
