// The C interface: page-locking of memory that the program owns.
#include "gpu/gpu.hpp"
#include "transfer/capi_guard.hpp"
#include "transfer/registered_memory.hpp"
#include "waywiser/transfer.h"

using namespace waywiser;

extern "C" {

waywiser_status waywiser_register(void* data, size_t bytes) {
    try {
        const gpu::CallerState keep;
        transfer::register_memory(data, bytes);
        return WAYWISER_OK;
    } catch (const transfer::TooMuchToPin& error) {
        return capi::failed(WAYWISER_OUT_OF_MEMORY, error.what());
    } catch (...) {
        return capi::failed(capi::failure_report());
    }
}

waywiser_status waywiser_unregister(void* data) {
    try {
        capi::need_argument(data, "data", "the address that was registered");
        const gpu::CallerState keep;
        transfer::unregister_memory(data);
        return WAYWISER_OK;
    } catch (const transfer::PossiblyInUse& error) {
        return capi::failed(WAYWISER_GPU, error.what());
    } catch (...) {
        return capi::failed(capi::failure_report());
    }
}

}  // extern "C"
