#include "operand.hpp"

#include <cstring>

#include "errors.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// The types whose buffers are all that there is to them. Others are asked for device memory first.
bool is_plain_buffer(nb::handle object) {
    PyObject* const o = object.ptr();
    return PyMemoryView_Check(o) || PyByteArray_CheckExact(o) || PyBytes_CheckExact(o) ||
           std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
}

std::string name_of_type(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

}  // namespace

std::string printed(nb::handle object) { return nb::str(object).c_str(); }

nb::object attribute(nb::handle object, const char* name) {
    PyObject* const found = PyObject_GetAttrString(object.ptr(), name);
    if (found != nullptr) return nb::steal(found);
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
    PyErr_Clear();
    return {};
}

void check_dimensions(std::int64_t dimensions, Role role) {
    if (dimensions >= 0 && dimensions <= kMostDimensions) return;
    raise(Failure::unsupported,
          {.what = "the " + std::string(text(role)) + " has " + std::to_string(dimensions) +
                   " dimensions, more than " + std::to_string(kMostDimensions),
           .remedy = "reshape it"});
}

void set_c_strides(Operand& operand) {
    auto stride = static_cast<std::int64_t>(operand.item);
    for (int i = operand.dimensions - 1; i >= 0; --i) {
        operand.strides[static_cast<std::size_t>(i)] = stride;
        stride *= operand.shape[static_cast<std::size_t>(i)];
    }
}

void complete(Operand& operand) {
    auto expected = static_cast<std::int64_t>(operand.item);
    bool contiguous = true;
    for (int i = operand.dimensions - 1; i >= 0; --i) {
        const std::int64_t count = operand.shape[static_cast<std::size_t>(i)];
        if (count != 1 && operand.strides[static_cast<std::size_t>(i)] != expected) {
            contiguous = false;
        }
        expected *= count;
    }
    operand.bytes = static_cast<std::size_t>(expected);
    operand.contiguous = contiguous || operand.bytes == 0;
}

void read_operand(nb::handle object, Role role, const std::optional<void*>& stream,
                  Operand& operand, Held& held) {
    held.push_back(nb::borrow(object));
    if (is_torch_tensor(object)) {
        read_torch(object, role, operand);
        operand.is_torch = true;
    } else if (is_plain_buffer(object) ? !read_buffer(object, role, operand, held)
                                       : !read_cuda_array(object, role, operand) &&
                                             !read_buffer(object, role, operand, held) &&
                                             !read_dlpack(object, role, stream, operand, held)) {
        raise(Failure::invalid_operand,
              {.what = "the " + std::string(text(role)) + " is a " + name_of_type(object) +
                       ", not an array",
               .remedy = "pass a torch tensor, a numpy or cupy array, or an object with the "
                         "buffer protocol, DLPack or the CUDA array interface"});
    }
    if (role == Role::destination && operand.read_only) {
        raise(Failure::invalid_transfer, {.what = "the destination is read-only: " + text(operand),
                                          .remedy = "copy into a writable array"});
    }
}

void note_write(nb::handle object, const Operand& operand) {
    if (operand.is_torch) note_torch_write(object);
}

std::string text(const Operand& operand) {
    std::string out = text(operand.type) + "[";
    for (int i = 0; i < operand.dimensions; ++i) {
        if (i > 0) out += ", ";
        out += std::to_string(operand.shape[static_cast<std::size_t>(i)]);
    }
    out += "] on ";
    if (operand.gpu == kHost) return out + "the host";
    return out + (operand.gpu == kSomeGpu ? "a GPU" : "gpu:" + std::to_string(operand.gpu));
}

}  // namespace waywiser::python
