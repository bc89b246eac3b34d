// Operands with the CUDA array interface, versions 2 and 3: cupy, numba and others.
#include <string>

#include "errors.hpp"
#include "operand.hpp"
#include "streams.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

[[noreturn]] void reject(Role role, const std::string& why) {
    raise(Failure::invalid_operand,
          {.what = "the __cuda_array_interface__ of the " + std::string(text(role)) + " " + why,
           .remedy = "pass an array whose library follows version 2 or 3 of the interface"});
}

nb::object entry(const nb::dict& fields, const char* name) {
    PyObject* const found = PyDict_GetItemString(fields.ptr(), name);
    return found == nullptr ? nb::none() : nb::borrow(found);
}

void read_stream(nb::handle stream, Role role, Operand& operand) {
    if (stream.is_none()) return;
    std::uintptr_t number = 0;
    if (!nb::try_cast(stream, number)) reject(role, "has a stream that is no number");
    if (number == 0) reject(role, "has the stream 0, which it forbids: 1 is the legacy one");
    operand.stream = reinterpret_cast<void*>(number);
}

}  // namespace

bool read_cuda_array(nb::handle object, Role role, Operand& operand) {
    const nb::object described = attribute(object, "__cuda_array_interface__");
    if (!described.is_valid()) return false;
    if (!nb::isinstance<nb::dict>(described)) reject(role, "is no dict");
    const auto fields = nb::cast<nb::dict>(described);
    if (!entry(fields, "mask").is_none()) reject(role, "has a mask, which cannot be copied");
    try {
        const auto data = nb::cast<nb::tuple>(entry(fields, "data"));
        operand.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(data[0]));
        operand.read_only = nb::cast<bool>(data[1]);
        operand.type = type_of_typestr(nb::cast<nb::str>(entry(fields, "typestr")).c_str());
        operand.item = operand.type.bytes();
        const auto shape = nb::cast<nb::tuple>(entry(fields, "shape"));
        check_dimensions(static_cast<std::int64_t>(nb::len(shape)), role);
        operand.dimensions = static_cast<int>(nb::len(shape));
        for (std::size_t i = 0; i < nb::len(shape); ++i) {
            operand.shape[i] = nb::cast<std::int64_t>(shape[i]);
            if (operand.shape[i] < 0) reject(role, "has a negative length");
        }
        const nb::object strides = entry(fields, "strides");
        if (strides.is_none()) {
            set_c_strides(operand);
        } else {
            const auto given = nb::cast<nb::tuple>(strides);
            if (nb::len(given) != nb::len(shape)) reject(role, "has strides of another length");
            for (std::size_t i = 0; i < nb::len(given); ++i) {
                operand.strides[i] = nb::cast<std::int64_t>(given[i]);
            }
        }
    } catch (const nb::cast_error&) {
        reject(role, "is malformed");
    }
    if (operand.item == 0) reject(role, "has the unknown typestr " + operand.type.name);
    operand.gpu = kSomeGpu;
    read_stream(entry(fields, "stream"), role, operand);
    complete(operand, role);
    return true;
}

}  // namespace waywiser::python
