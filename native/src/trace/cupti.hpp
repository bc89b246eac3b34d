// The CUPTI of this process: which library it is, and its functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/cupti_abi.hpp"

namespace waywiser::trace {

struct Cupti {
    void* library = nullptr;  // none: all functions are null
    std::string path;
    std::uint32_t version = 0;

    int (*get_version)(std::uint32_t*) = nullptr;
    int (*get_timestamp)(std::uint64_t*) = nullptr;
    int (*register_clock)(std::uint64_t (*)()) = nullptr;  // not before 11.6
    int (*register_buffers)(cupti::BufferNeeded, cupti::BufferFilled) = nullptr;
    int (*enable)(std::uint32_t activity) = nullptr;
    int (*flush)(std::uint32_t force) = nullptr;
    int (*next_record)(std::uint8_t*, std::size_t, cupti::Record**) = nullptr;
    int (*dropped)(void* context, std::uint32_t stream, std::size_t*) = nullptr;
    int (*configure_unified)(cupti::UnifiedMemoryConfig*, std::uint32_t) = nullptr;
    int (*subscribe)(cupti::Subscriber*, cupti::CallFunction, void*) = nullptr;
    int (*unsubscribe)(cupti::Subscriber) = nullptr;
    int (*enable_callback)(std::uint32_t, cupti::Subscriber, std::uint32_t,
                           std::uint32_t) = nullptr;
};

// Opens the CUPTI that is already loaded, else the first that the driver supports. `why` says in
// one line why there is none.
Cupti open_cupti(int driver, std::string& why);

// The driver's version as 12040; 0 if unknown.
int driver_version();

// Files of loaded libraries whose name begins so.
std::vector<std::string> loaded_libraries(const std::string& name_begins);

// Paths of files named libcupti.so.N that exist in the usual places, best first for that driver.
std::vector<std::string> cupti_files(int driver);

}  // namespace waywiser::trace
