#include "nccl/library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "waywiser/words.hpp"

namespace waywiser::nccl {
namespace {

constexpr const char* kVariable = "WAYWISER_NCCL";

struct Named {
    std::mutex mutex;
    std::string path;
};

Named& named() {
    static Named all;
    return all;
}

template <class Function>
void find(void* library, const char* name, Function& function, const std::string& from) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        throw NotSupported(from + " has no " + name + ": it is no NCCL of 2.7 or newer");
    }
}

// nullptr if the library is too old.
template <class Function>
void find_newer(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
}

std::string version_text(int version) {
    // 2.8 and older: 2708; newer: 22703.
    const int major = version < 10000 ? version / 1000 : version / 10000;
    const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
    return std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(version % 100);
}

Functions load() {
    if (std::string reason = missing_reason(); !reason.empty()) throw NotSupported(reason);
    const std::string from = file();
    // Local: its names must not be taken for those of another NCCL in the process, as PyTorch's.
    void* library = dlopen(from.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw NotSupported(std::string("NCCL does not load: ") + dlerror());
    Functions found{};
    find(library, "ncclGetVersion", found.get_version, from);
    find(library, "ncclGetErrorString", found.get_error_string, from);
    find(library, "ncclCommInitAll", found.comm_init_all, from);
    find(library, "ncclCommAbort", found.comm_abort, from);
    find(library, "ncclCommDestroy", found.comm_destroy, from);
    find(library, "ncclGroupStart", found.group_start, from);
    find(library, "ncclGroupEnd", found.group_end, from);
    find(library, "ncclSend", found.send, from);
    find(library, "ncclRecv", found.recv, from);
    find(library, "ncclAllReduce", found.all_reduce, from);
    find(library, "ncclAllGather", found.all_gather, from);
    find(library, "ncclReduceScatter", found.reduce_scatter, from);
    find(library, "ncclBroadcast", found.broadcast, from);
    find(library, "ncclGetUniqueId", found.get_unique_id, from);
    find_newer(library, "ncclCommInitRankConfig", found.comm_init_rank_config);
    find_newer(library, "ncclCommGetAsyncError", found.comm_get_async_error);
    find_newer(library, "ncclCommFinalize", found.comm_finalize);
    find_newer(library, "ncclAlltoAll", found.all_to_all);
    return found;
}

}  // namespace

std::string file() {
    if (const char* chosen = std::getenv(kVariable); chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    const std::lock_guard lock(named().mutex);
    return named().path;
}

void use_file(const std::string& path) {
    const std::lock_guard lock(named().mutex);
    named().path = path;
}

std::string missing_reason() {
    const std::string path = file();
    if (path.empty()) {
        return "NCCL is not found: install the package nvidia-nccl-cu13 (or -cu12), or name "
               "libnccl.so.2 with --nccl";
    }
    std::error_code failed;
    if (std::filesystem::exists(path, failed)) return {};
    return "there is no NCCL at " + path + ": name libnccl.so.2 with --nccl";
}

const Functions& functions() {
    static const Functions loaded = load();  // a failed load is tried again
    return loaded;
}

std::string version() {
    int number = 0;
    check(functions().get_version(&number), "ncclGetVersion");
    return version_text(number);
}

void check(Result result, const char* call) {
    if (result == kSuccess || result == kInProgress) return;
    throw Error(std::string(call) + " failed: " + functions().get_error_string(result) + " (" +
                std::to_string(result) + ")");
}

}  // namespace waywiser::nccl
