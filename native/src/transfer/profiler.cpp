// The client's side of NVTX 3, which is usually a header (nvtx3/nvToolsExt.h). The toolkits from
// PyPI that build the wheels, and machines without CUDA, have no such header. What it does is small
// and cannot change, because any profiler has to work with any program: it loads the library that
// the profiler has named in the environment, and gives it tables of pointers to functions, in which
// the library enters its own. Of all functions only two are called here.
#include "transfer/profiler.hpp"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace waywiser::transfer {

// Of the module "core": nvtxRangePushA() and nvtxRangePop().
detail::ProfilerFunction detail::profiler_push = nullptr;
detail::ProfilerFunction detail::profiler_pop = nullptr;

namespace {

using detail::ProfilerFunction;

// Numbers of NVTX (nvtx3/nvtxDetail/nvtxTypes.h). They are part of its binary interface: new ones
// come behind them.
constexpr std::uint32_t kCallbacks = 1;    // NVTX_ETID_CALLBACKS
constexpr std::uint32_t kVersionInfo = 3;  // NVTX_ETID_VERSIONINFO
constexpr std::uint32_t kNvtxVersion = 3;  // NVTX_VERSION
constexpr std::size_t kCore = 1;           // NVTX_CB_MODULE_CORE
constexpr std::size_t kRangePushA = 9;     // NVTX_CBID_CORE_RangePushA
constexpr std::size_t kRangePop = 11;      // NVTX_CBID_CORE_RangePop
// Functions of each module, with the number 0, which none has: NVTX_CBID_..._SIZE.
constexpr std::array<unsigned, 7> kFunctions = {0, 16, 9, 15, 7, 16, 7};
constexpr std::size_t kMostFunctions = 16;

struct Callbacks {
    std::size_t size;
    int (*module_table)(int module, ProfilerFunction*** table, unsigned* functions);
};

struct VersionInfo {
    std::size_t size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_version)(std::uint32_t version);
};

// Where a profiler enters its functions. It may do so later, too: this is never destroyed.
struct Module {
    std::array<ProfilerFunction, kMostFunctions> functions{};
    std::array<ProfilerFunction*, kMostFunctions + 1> table{};  // ends with a null pointer
};
std::array<Module, kFunctions.size()> profiler_modules;

int give_module_table(int module, ProfilerFunction*** table, unsigned* functions) {
    const auto number = static_cast<std::size_t>(module);
    if (module <= 0 || number >= profiler_modules.size()) return 0;
    if (table != nullptr) *table = profiler_modules[number].table.data();
    if (functions != nullptr) *functions = kFunctions[number];
    return 1;
}

const void* give_table(std::uint32_t table) {
    static constexpr Callbacks kTableOfCallbacks{.size = sizeof(Callbacks),
                                                 .module_table = give_module_table};
    static constexpr VersionInfo kTableOfVersion{.size = sizeof(VersionInfo),
                                                 .version = kNvtxVersion,
                                                 .reserved = 0,
                                                 .set_version = [](std::uint32_t) {}};
    if (table == kCallbacks) return &kTableOfCallbacks;
    return table == kVersionInfo ? &kTableOfVersion : nullptr;
}

bool load_profiler() {
    const char* const path = secure_getenv("NVTX_INJECTION64_PATH");
    if (path == nullptr || *path == '\0') return false;
    void* const library = dlopen(path, RTLD_LAZY);
    if (library == nullptr) return false;
    using Initialize = int (*)(const void* (*give)(std::uint32_t table));
    const auto initialize =
        reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2"));
    if (initialize == nullptr) return false;
    for (std::size_t n = 1; n < profiler_modules.size(); ++n) {
        Module& own = profiler_modules[n];
        for (std::size_t i = 1; i < kFunctions[n]; ++i) own.table[i] = &own.functions[i];
    }
    profiler_modules[kCore].table[kRangePushA] = &detail::profiler_push;
    profiler_modules[kCore].table[kRangePop] = &detail::profiler_pop;
    if (initialize(give_table) != 0) return true;
    std::atomic_ref(detail::profiler_push).store(nullptr, std::memory_order_release);
    return false;
}

}  // namespace

bool detail::push_range(const std::string& name) noexcept {
    const ProfilerFunction push = std::atomic_ref(profiler_push).load(std::memory_order_acquire);
    if (push == nullptr) return false;
    reinterpret_cast<int (*)(const char*)>(push)(name.c_str());
    return true;
}

void detail::pop_range() noexcept {
    const ProfilerFunction pop = std::atomic_ref(profiler_pop).load(std::memory_order_acquire);
    if (pop != nullptr) reinterpret_cast<int (*)()>(pop)();
}

void find_profiler() { [[maybe_unused]] static const bool found = load_profiler(); }

}  // namespace waywiser::transfer
