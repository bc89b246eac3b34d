#include "trace/cupti.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

namespace waywiser::trace {
namespace {

template <typename Function>
void find_function(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
}

Cupti functions_of(void* library, const std::string& path) {
    Cupti found{.library = library, .path = path};
    find_function(library, "cuptiGetVersion", found.get_version);
    find_function(library, "cuptiGetTimestamp", found.get_timestamp);
    find_function(library, "cuptiActivityRegisterTimestampCallback", found.register_clock);
    find_function(library, "cuptiActivityRegisterCallbacks", found.register_buffers);
    find_function(library, "cuptiActivityEnable", found.enable);
    find_function(library, "cuptiActivityFlushAll", found.flush);
    find_function(library, "cuptiActivityGetNextRecord", found.next_record);
    find_function(library, "cuptiActivityGetNumDroppedRecords", found.dropped);
    find_function(library, "cuptiActivityConfigureUnifiedMemoryCounter", found.configure_unified);
    find_function(library, "cuptiSubscribe", found.subscribe);
    find_function(library, "cuptiUnsubscribe", found.unsubscribe);
    find_function(library, "cuptiEnableCallback", found.enable_callback);
    if (found.get_version != nullptr) found.get_version(&found.version);
    return found;
}

bool complete(const Cupti& cupti) {
    return cupti.register_buffers != nullptr && cupti.enable != nullptr && cupti.flush != nullptr &&
           cupti.next_record != nullptr;
}

int add_loaded(dl_phdr_info* info, std::size_t, void* paths) {
    if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0')
        static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
    return 0;
}

}  // namespace

std::vector<std::string> loaded_libraries(const std::string& name_begins) {
    std::vector<std::string> paths;
    dl_iterate_phdr(add_loaded, &paths);
    std::erase_if(paths, [&](const std::string& path) {
        return path.compare(path.rfind('/') + 1, name_begins.size(), name_begins) != 0;
    });
    return paths;
}

int driver_version() {
    int version = 0;
    if (void* const driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY)) {
        const auto get = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
        if (get == nullptr || get(&version) != 0) version = 0;
    }
    return version;
}

Cupti open_cupti(int driver, std::string& why) {
    for (const std::string& path : loaded_libraries("libcupti.so")) {
        if (void* const library = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY)) {
            Cupti cupti = functions_of(library, path);
            if (complete(cupti)) return cupti;
        }
    }
    why =
        "no CUPTI for this driver was found; install the wheel nvidia-cuda-cupti-cu12 (or "
        "nvidia-cuda-cupti for CUDA 13), or name libcupti.so with --cupti";
    std::vector<std::string> files = cupti_files(driver);
    const char* const named = std::getenv("WAYWISER_CUPTI");
    if (named != nullptr && *named != '\0') files.insert(files.begin(), named);
    for (const std::string& path : files) {
        void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* const error = dlerror();
            why = "CUPTI cannot be loaded: " + std::string(error != nullptr ? error : path);
            continue;
        }
        Cupti cupti = functions_of(library, path);
        if (complete(cupti)) return cupti;
        why = path + " is no CUPTI that this version can use";
        dlclose(library);
    }
    return {};
}

}  // namespace waywiser::trace
