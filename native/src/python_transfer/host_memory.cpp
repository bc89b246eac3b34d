#include "host_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "contexts.hpp"
#include "errors.hpp"
#include "gil_release.hpp"
#include "waywiser/huge_page.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser::python {
namespace {

[[noreturn]] void reject(std::size_t bytes) {
    raise(Failure::out_of_memory,
          {.what = "no " + std::to_string(bytes) + " bytes of host memory are left",
           .remedy = "free memory, or copy the array in parts"});
}

// The library returns ordinary memory if there is no GPU to pin it for.
bool is_pinned(const void* data) {
    waywiser_description found{};
    found.size = sizeof found;
    return waywiser_describe(data, 1, &found) == WAYWISER_OK && found.kind == WAYWISER_PINNED;
}

std::string why_no_gpu() {
    const nb::object machine = nb::module_::import_("waywiser.transfer.context").attr("machine")();
    return nb::cast<std::string>(machine["gpu_unavailable"]);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    const auto* memory = nb::inst_ptr<HostMemory>(self);
    return PyBuffer_FillInfo(view, self, memory->data(), static_cast<Py_ssize_t>(memory->bytes()),
                             0, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

HostMemory::HostMemory(void* data, std::size_t bytes, void* mapping, std::size_t mapped,
                       bool is_pinned)
    : data_(data),
      bytes_(bytes),
      mapping_(mapping),
      mapped_(mapped),
      pinned_(is_pinned),
      process_(fork_count()) {}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      pinned_(other.pinned_),
      process_(other.process_) {}

HostMemory HostMemory::pinned(std::size_t bytes, int numa) {
    const CallScope scope("pinned_empty");
    void* data = nullptr;
    waywiser_status status = WAYWISER_OK;
    bool pinned = false;
    {
        const GilRelease unlocked;
        status = waywiser_pinned_alloc(bytes, numa, &data);
        pinned = status == WAYWISER_OK && is_pinned(data);
    }
    check(status);
    // A worker that a fork keeps from its parent's GPU gets an error; without a GPU there is
    // nothing to pin the memory for.
    if (const std::string why = pinned ? "" : why_no_gpu();
        why.find("forked") != std::string::npos) {
        {
            const GilRelease unlocked;
            waywiser_pinned_free(std::exchange(data, nullptr));
        }
        raise(Failure::unsupported, {.what = "memory cannot be pinned without a GPU: " + why,
                                     .where = "pinned_empty",
                                     .remedy = "or use an ordinary array"});
    }
    return {data, bytes, nullptr, 0, true};
}

HostMemory HostMemory::pageable(std::size_t bytes) {
    const CallScope scope("to_host");
    const std::size_t huge_page = huge_page_bytes();
    if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) - huge_page) {
        reject(bytes);
    }
    const std::size_t mapped = bytes + huge_page;  // space to start on a huge page
    void* const mapping =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) reject(bytes);
    const auto start = reinterpret_cast<std::uintptr_t>(mapping);
    void* const data = reinterpret_cast<void*>((start + huge_page - 1) & ~(huge_page - 1));
    // Ordinary pages if this is not allowed, or if several threads would each clear a large page.
    if (huge_page <= kSmallHugePage) madvise(data, bytes, MADV_HUGEPAGE);
    return {data, bytes, mapping, mapped, false};
}

HostMemory::~HostMemory() {
    if (data_ == nullptr) return;
    if (!pinned_) {
        munmap(mapping_, mapped_);
    } else if (process_ == fork_count()) {  // a parent's GPU may still use it
        const GilRelease unlocked;
        waywiser_pinned_free(data_);
    }
}

void bind_host_memory(nb::module_& m) {
    nb::class_<HostMemory>(m, "HostMemory", nb::type_slots(slots), nb::is_weak_referenceable())
        .def_prop_ro("nbytes", &HostMemory::bytes);
    m.def("pinned_memory", &HostMemory::pinned, "nbytes"_a, "numa"_a);
    m.def("pageable_memory", &HostMemory::pageable, "nbytes"_a);
}

}  // namespace waywiser::python
