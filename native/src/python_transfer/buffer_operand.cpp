// Operands with the buffer protocol: numpy arrays, memoryview, bytearray, mmap.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "errors.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// Whether a format, or a typestr, contains objects ("O"). The names of fields are between colons.
bool names_objects(const std::string& format) {
    bool in_name = false;
    for (const char c : format) {
        if (c == ':') in_name = !in_name;
        if (c == 'O' && !in_name) return true;
    }
    return false;
}

void reject_objects(bool has_objects, Role role) {
    if (!has_objects) return;
    raise(Failure::unsupported,
          {.what = "the " + std::string(text(role)) + " holds Python objects, not plain values",
           .remedy = "convert it to a dtype of numbers, or copy its items in Python"});
}

// Throws cast_error for a malformed value.
void read_fields(nb::handle object, const nb::dict& fields, Role role, Operand& operand) {
    const auto data = nb::cast<nb::tuple>(fields["data"]);
    const auto shape = nb::cast<nb::tuple>(fields["shape"]);
    const nb::object dtype = attribute(object, "dtype");
    const nb::object name = dtype.is_valid() ? attribute(dtype, "name") : nb::object();
    operand.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(data[0]));
    operand.read_only = nb::cast<bool>(data[1]);
    operand.type = type_of_typestr(printed(nb::object(fields["typestr"])),
                                   name.is_valid() ? printed(name) : "");
    operand.item = nb::cast<std::size_t>(nb::object(dtype.attr("itemsize")));
    check_dimensions(static_cast<std::int64_t>(nb::len(shape)), role);
    operand.dimensions = static_cast<int>(nb::len(shape));
    for (std::size_t i = 0; i < nb::len(shape); ++i) {
        operand.shape[i] = nb::cast<std::int64_t>(shape[i]);
    }
    if (fields.contains("strides") && !fields["strides"].is_none()) {
        const auto strides = nb::cast<nb::tuple>(fields["strides"]);
        if (nb::len(strides) != nb::len(shape)) throw nb::cast_error();
        for (std::size_t i = 0; i < nb::len(strides); ++i) {
            operand.strides[i] = nb::cast<std::int64_t>(strides[i]);
        }
    } else {
        set_c_strides(operand);
    }
    const nb::object has_objects = attribute(dtype, "hasobject");
    reject_objects(
        has_objects.is_valid() ? nb::cast<bool>(has_objects) : names_objects(operand.type.name),
        role);
}

// numpy has dtypes that its buffers cannot describe: datetime64, and those of ml_dtypes.
bool read_array_interface(nb::handle object, Role role, Operand& operand) {
    const nb::object described = attribute(object, "__array_interface__");
    if (!described.is_valid() || !nb::isinstance<nb::dict>(described)) return false;
    try {
        read_fields(object, nb::cast<nb::dict>(described), role, operand);
    } catch (const nb::cast_error&) {
        raise(Failure::invalid_operand, {.what = "the __array_interface__ of the " +
                                                 std::string(text(role)) + " is malformed",
                                         .remedy = "pass numpy.asarray(...) of it"});
    }
    complete(operand, role);
    return true;
}

// A Python object that holds the export of a buffer: until its end the exporter can neither be
// resized nor released. A memoryview does the same, but takes twice the time to make.
struct Export {
    PyObject_HEAD Py_buffer buffer;
};

void end_export(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyBuffer_Release(&reinterpret_cast<Export*>(self)->buffer);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyTypeObject* export_type() {
    static PyObject* const type = [] {
        std::array slots{PyType_Slot{Py_tp_dealloc, reinterpret_cast<void*>(end_export)},
                         PyType_Slot{0, nullptr}};
        PyType_Spec spec{.name = "waywiser._transfer._Export",
                         .basicsize = sizeof(Export),
                         .itemsize = 0,
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots.data()};
        return PyType_FromSpec(&spec);
    }();
    if (type == nullptr) throw nb::python_error();
    return reinterpret_cast<PyTypeObject*>(type);
}

// Returns an empty object, with the error of the exporter set, if there is no buffer.
nb::object export_of(PyObject* exporter) {
    auto* const made = PyObject_New(Export, export_type());
    if (made == nullptr) return {};
    made->buffer = {};
    nb::object owner = nb::steal(reinterpret_cast<PyObject*>(made));
    if (PyObject_GetBuffer(exporter, &made->buffer, PyBUF_FULL_RO) != 0) owner.reset();
    return owner;
}

// The same of a view of `object`: an own memoryview of the program may be released meanwhile.
nb::object viewed_export_of(nb::handle object, Held& held) {
    const nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
    if (!view.is_valid()) return {};
    held.push_back(view);
    return export_of(view.ptr());
}

}  // namespace

bool read_buffer(nb::handle object, Role role, Operand& operand, Held& held) {
    if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
    nb::object exported =
        PyMemoryView_Check(object.ptr()) ? viewed_export_of(object, held) : export_of(object.ptr());
    if (!exported.is_valid()) {
        nb::python_error why;
        if (read_array_interface(object, role, operand)) return true;
        raise(Failure::unsupported, {.what = "the " + std::string(text(role)) +
                                             " gives no buffer: " + printed(why.value()),
                                     .remedy = "pass a numpy array of the same bytes"});
    }
    const Py_buffer* const buffer = &reinterpret_cast<Export*>(exported.ptr())->buffer;
    held.push_back(std::move(exported));
    if (buffer->suboffsets != nullptr &&
        std::any_of(buffer->suboffsets, buffer->suboffsets + buffer->ndim,
                    [](Py_ssize_t offset) { return offset >= 0; })) {
        raise(Failure::unsupported, {.what = "the " + std::string(text(role)) +
                                             " is a buffer with indirections (suboffsets)",
                                     .remedy = "pass its rows one by one, or a copy of it"});
    }
    operand.data = static_cast<std::byte*>(buffer->buf);
    operand.read_only = buffer->readonly != 0;
    operand.item = static_cast<std::size_t>(buffer->itemsize);
    operand.type = type_of_format(buffer->format, operand.item);
    reject_objects(operand.type.code == TypeCode::other && names_objects(operand.type.name), role);
    check_dimensions(buffer->ndim, role);
    operand.dimensions = buffer->ndim;
    std::copy_n(buffer->shape, buffer->ndim, operand.shape.begin());
    if (buffer->strides != nullptr) {
        std::copy_n(buffer->strides, buffer->ndim, operand.strides.begin());
    } else {
        set_c_strides(operand);
    }
    complete(operand, role);
    return true;
}

}  // namespace waywiser::python
