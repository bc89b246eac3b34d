// A profiler for tests, as NVTX knows profilers: it writes the start and the end of each range to
// the file FAKE_PROFILE, one line each with the number of the thread. Its declarations are those of
// nvtx3/nvtxDetail/nvtxTypes.h.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using Function = void (*)();

struct Callbacks {
    std::size_t size;
    int (*module_table)(int module, Function*** table, unsigned* functions);
};

struct VersionInfo {
    std::size_t size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_version)(std::uint32_t version);
};

std::FILE* profile = nullptr;
std::atomic<int> threads{0};

int thread_number() {
    thread_local const int number = threads++;
    return number;
}

// A line is written at once, whatever other threads write.
int push(const char* name) {
    std::fprintf(profile, "%d + %s\n", thread_number(), name);
    return 0;
}

int pop() {
    std::fprintf(profile, "%d -\n", thread_number());
    return 0;
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(const void* (*get_table)(std::uint32_t table)) {
    const char* const path = std::getenv("FAKE_PROFILE");
    if (path == nullptr) return 0;
    const auto* const version = static_cast<const VersionInfo*>(get_table(3));
    if (version == nullptr || version->size < sizeof(VersionInfo) || version->version != 3)
        return 0;
    version->set_version(3);
    const auto* const callbacks = static_cast<const Callbacks*>(get_table(1));
    if (callbacks == nullptr || callbacks->size < sizeof(Callbacks)) return 0;
    // Profilers enter what they have into the tables of all modules.
    for (int module = 1; module <= 6; ++module) {
        Function** table = nullptr;
        unsigned functions = 0;
        if (callbacks->module_table(module, &table, &functions) == 0) return 0;
        for (unsigned i = 1; i < functions; ++i) *table[i] = [] { std::abort(); };
        if (module != 1) continue;
        *table[9] = reinterpret_cast<Function>(push);
        *table[11] = reinterpret_cast<Function>(pop);
    }
    profile = std::fopen(path, "we");
    if (profile == nullptr) return 0;
    std::setvbuf(profile, nullptr, _IOLBF, BUFSIZ);
    return 1;
}
