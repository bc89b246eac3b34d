// Page-locks the memory of host arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "operand.hpp"

namespace waywiser::python {

// An array whose memory is page-locked for all GPUs, and which is kept as long. All functions need
// the GIL, which they release for calls of the library.
class HostRegistration {
public:
    // Raises what read_operand() raises, InvalidTransfer for arrays with gaps and for those that
    // are pinned, UnsupportedTransfer without a GPU, TransferMemoryError.
    explicit HostRegistration(nanobind::handle array);
    ~HostRegistration();
    HostRegistration(const HostRegistration&) = delete;
    HostRegistration& operator=(const HostRegistration&) = delete;

    // Waits for the GPUs that may use the array, then unlocks its memory and releases it. Does
    // nothing the second time, and in a forked child. Raises GpuError if it is unknown whether a
    // GPU uses it; it stays page-locked then.
    void close();
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    // The status of the library.
    waywiser_status unregister();

    void* data_ = nullptr;  // null after close()
    std::size_t bytes_ = 0;
    Held held_;
    unsigned process_;
};

void bind_host_registration(nanobind::module_& m);

}  // namespace waywiser::python
