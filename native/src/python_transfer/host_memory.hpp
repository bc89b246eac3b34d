// Host memory for arrays of numpy and torch.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace waywiser::python {

// A block of writable bytes with the buffer protocol, freed with its last reference. Outlives every
// context. Not initialised: fresh pages read as zeros.
class HostMemory {
public:
    // Pinned, at a NUMA node (-1: that of the calling thread). Raises UnsupportedTransfer without a
    // GPU. Both raise TransferMemoryError and need the GIL, which they release.
    static HostMemory pinned(std::size_t bytes, int numa);
    // Pageable, in huge pages if the system allows them, and not touched.
    static HostMemory pageable(std::size_t bytes);
    HostMemory(HostMemory&& other) noexcept;
    HostMemory& operator=(HostMemory&&) = delete;
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory();

    [[nodiscard]] void* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    HostMemory(void* data, std::size_t bytes, void* mapping, std::size_t mapped, bool is_pinned);

    void* data_;
    std::size_t bytes_;
    void* mapping_;  // to unmap at the end
    std::size_t mapped_;
    bool pinned_;
    unsigned process_;
};

void bind_host_memory(nanobind::module_& m);

}  // namespace waywiser::python
