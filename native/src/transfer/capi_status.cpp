// The C interface: names of statuses.
#include "transfer/capi_guard.hpp"

extern "C" {

const char* waywiser_status_name(waywiser_status status) {
    constexpr const char* kUnknown = "a status that this version of the library does not know";
    if (!waywiser::capi::is_known(status, WAYWISER_IN_USE)) return kUnknown;
    switch (status) {
        case WAYWISER_OK: return "WAYWISER_OK";
        case WAYWISER_INVALID: return "WAYWISER_INVALID";
        case WAYWISER_UNSUPPORTED: return "WAYWISER_UNSUPPORTED";
        case WAYWISER_OUT_OF_MEMORY: return "WAYWISER_OUT_OF_MEMORY";
        case WAYWISER_GPU: return "WAYWISER_GPU";
        case WAYWISER_GPU_LOST: return "WAYWISER_GPU_LOST";
        case WAYWISER_IO: return "WAYWISER_IO";
        case WAYWISER_TIMEOUT: return "WAYWISER_TIMEOUT";
        case WAYWISER_CANCELLED: return "WAYWISER_CANCELLED";
        case WAYWISER_FORKED: return "WAYWISER_FORKED";
        case WAYWISER_INTERNAL: return "WAYWISER_INTERNAL";
        case WAYWISER_IN_USE: return "WAYWISER_IN_USE";
    }
    return kUnknown;
}

}  // extern "C"
