#include "operand.hpp"

#include <algorithm>
#include <limits>

#include "errors.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// numpy's type of arrays, which is never unloaded; null until numpy has been imported.
PyTypeObject* numpy_array() {
    static PyTypeObject* known = nullptr;
    if (known == nullptr) {
        PyObject* const numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
        if (numpy == nullptr || numpy == Py_None) return nullptr;
        nb::object type = attribute(numpy, "ndarray");
        if (type.is_valid()) known = reinterpret_cast<PyTypeObject*>(type.release().ptr());
    }
    return known;
}

// Types that only have host buffers. Other types are tested for device memory first.
bool is_plain_buffer(nb::handle object) {
    PyObject* const o = object.ptr();
    return PyMemoryView_Check(o) || PyByteArray_CheckExact(o) || PyBytes_CheckExact(o) ||
           is_numpy_array(object);
}

[[noreturn]] void reject_size(Role role) {
    raise(Failure::invalid_operand, {.what = "the shape and strides of the " +
                                             std::string(text(role)) + " are beyond any memory",
                                     .remedy = "pass an array that describes memory that exists"});
}

}  // namespace

bool is_numpy_array(nb::handle object) { return Py_TYPE(object.ptr()) == numpy_array(); }

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
        // complete() rejects what overflows here.
        (void)__builtin_mul_overflow(stride, operand.shape[static_cast<std::size_t>(i)], &stride);
    }
}

std::int64_t stride_in_bytes(std::int64_t elements, std::size_t item, Role role) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(item), &bytes)) {
        reject_size(role);
    }
    return bytes;
}

void complete(Operand& operand, Role role) {
    operand.bytes = 0;
    operand.contiguous = true;
    const auto count = static_cast<std::size_t>(operand.dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        if (operand.shape[i] >= 0) continue;
        raise(Failure::invalid_operand,
              {.what = "the " + std::string(text(role)) +
                       " has a negative length: " + std::to_string(operand.shape[i]),
               .remedy = "pass an array whose lengths are 0 or more"});
    }
    if (std::find(operand.shape.begin(), operand.shape.begin() + count, 0) !=
        operand.shape.begin() + count) {
        return;  // no elements: the other lengths and the strides are irrelevant
    }
    auto expected = static_cast<std::int64_t>(operand.item);
    std::int64_t extent = 0;  // of the strides, whatever their signs
    std::int64_t next = 0;
    bool contiguous = true;
    for (int i = operand.dimensions - 1; i >= 0; --i) {
        const std::int64_t length = operand.shape[static_cast<std::size_t>(i)];
        const std::int64_t stride = operand.strides[static_cast<std::size_t>(i)];
        if (__builtin_mul_overflow(expected, length, &next)) reject_size(role);
        if (length != 1) {
            contiguous = contiguous && stride == expected;
            std::int64_t span = 0;
            if (stride == std::numeric_limits<std::int64_t>::min() ||
                __builtin_mul_overflow(stride < 0 ? -stride : stride, length, &span) ||
                __builtin_add_overflow(extent, span, &extent)) {
                reject_size(role);
            }
        }
        expected = next;
    }
    operand.bytes = static_cast<std::size_t>(expected);
    operand.contiguous = contiguous || operand.bytes == 0;
}

void read_operand(nb::handle object, Role role, const std::optional<void*>& stream,
                  Operand& operand, Held& held) {
    held.push_back(nb::borrow(object));
    const bool is_plain = is_plain_buffer(object);  // which takes less time to find out
    if (!is_plain && is_torch_tensor(object)) {
        read_torch(object, role, operand);
        operand.is_torch = true;
    } else if (is_plain ? !read_buffer(object, role, operand, held)
                        : !read_cuda_array(object, role, operand) &&
                              !read_buffer(object, role, operand, held) &&
                              !read_dlpack(object, role, stream, operand, held)) {
        raise(Failure::invalid_operand,
              {.what = "the " + std::string(text(role)) + " is " + given(object) + ", not an array",
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
