#include "host_registration.hpp"

#include <optional>
#include <utility>

#include "contexts.hpp"
#include "errors.hpp"
#include "gil_release.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser::python {

HostRegistration::HostRegistration(nb::handle array) : process_(fork_count()) {
    const CallScope scope("register");
    Operand operand;
    read_operand(array, Role::source, std::nullopt, operand, held_);
    if (operand.gpu != kHost) {
        raise(Failure::invalid_transfer,
              {.what = "the array is not in host memory: " + python::text(operand),
               .remedy = "pass an array of the host"});
    }
    if (!operand.contiguous) {
        raise(Failure::invalid_transfer,
              {.what = "the array is not contiguous: " + python::text(operand),
               .remedy = "register the array that has the memory, of which this is a view"});
    }
    waywiser_status status = WAYWISER_OK;
    {
        const GilRelease unlocked;
        status = waywiser_register(operand.data, operand.bytes);
    }
    check(status);
    data_ = operand.data;
    bytes_ = operand.bytes;
}

HostRegistration::~HostRegistration() {
    if (data_ == nullptr) return;
    // A GPU, or that of the parent, may still use it.
    if (unregister() != WAYWISER_OK) keep_for_ever(held_);
}

waywiser_status HostRegistration::unregister() {
    // In a forked child the memory is a copy, which no GPU uses.
    if (process_ != fork_count()) return WAYWISER_OK;
    const GilRelease unlocked;
    return waywiser_unregister(data_);
}

void HostRegistration::close() {
    if (data_ == nullptr) return;
    const CallScope scope("PinnedRegistration.close");
    void* const data = data_;
    const waywiser_status status = unregister();
    if (data_ != data) return;  // another thread was faster
    check(status);
    data_ = nullptr;
    bytes_ = 0;
    const Held gone = std::move(held_);
}

void bind_host_registration(nb::module_& m) {
    nb::class_<HostRegistration>(m, "PinnedRegistration", nb::is_weak_referenceable())
        .def(nb::init<nb::handle>(), "array"_a.none())
        .def("close", &HostRegistration::close)
        .def_prop_ro("nbytes", &HostRegistration::bytes)
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def(
            "__exit__",
            [](HostRegistration& self, nb::handle, nb::handle, nb::handle) { self.close(); },
            "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

}  // namespace waywiser::python
