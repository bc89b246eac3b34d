#include "plain_buffer.hpp"

#include <algorithm>
#include <cstring>

#include "operand.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

// The dtype of a numpy array; empty if its elements are Python objects.
nb::object plain_dtype_of(nb::handle array) {
    static PyObject* const name = PyUnicode_InternFromString("dtype");
    static PyObject* known = nullptr;  // the last one that was found to be plain; by the GIL
    nb::object dtype = nb::steal(PyObject_GetAttr(array.ptr(), name));
    if (!dtype.is_valid() || dtype.ptr() == known) return dtype;
    const nb::object has_objects = nb::steal(PyObject_GetAttrString(dtype.ptr(), "hasobject"));
    if (has_objects.ptr() != Py_False) return {};
    Py_XDECREF(known);
    known = Py_NewRef(dtype.ptr());
    return dtype;
}

bool is_bytes(nb::handle object) {
    return PyByteArray_CheckExact(object.ptr()) || PyBytes_CheckExact(object.ptr());
}

}  // namespace

PlainBuffer::PlainBuffer(nb::handle object, TypeBy by) : usable_(take(object, by)) {
    if (!usable_) PyErr_Clear();
}

bool PlainBuffer::take(nb::handle object, TypeBy by) {
    nb::handle exporter = object;
    if (by == TypeBy::dtype) {
        dtype_ = plain_dtype_of(object);
        if (!dtype_.is_valid()) return false;
    } else if (PyMemoryView_Check(object.ptr())) {
        view_ = nb::steal(PyMemoryView_FromObject(object.ptr()));
        if (!view_.is_valid()) return false;
        exporter = view_;
    } else if (!is_bytes(object) && !is_numpy_array(object)) {
        return false;
    }
    // numpy writes the text of a format anew in each call.
    const int flags = by == TypeBy::dtype ? PyBUF_STRIDES : PyBUF_STRIDES | PyBUF_FORMAT;
    if (PyObject_GetBuffer(exporter.ptr(), &buffer_, flags) != 0) return false;
    if (is_bytes(object)) return true;
    if (by == TypeBy::format &&
        (buffer_.format == nullptr || std::strchr(buffer_.format, 'O') != nullptr)) {
        return false;
    }
    return PyBuffer_IsContiguous(&buffer_, 'C') != 0;
}

PlainBuffer::~PlainBuffer() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

bool PlainBuffer::is_like(const PlainBuffer& other) const {
    const Py_buffer& theirs = other.buffer_;
    const bool same_type = dtype_.is_valid() ? dtype_.is(other.dtype_)
                                             : buffer_.itemsize == theirs.itemsize &&
                                                   std::strcmp(buffer_.format, theirs.format) == 0;
    return same_type && buffer_.ndim == theirs.ndim &&
           std::equal(buffer_.shape, buffer_.shape + buffer_.ndim, theirs.shape);
}

PlainBuffer::TypeBy type_by(nb::handle object) {
    return !is_bytes(object) && is_numpy_array(object) ? PlainBuffer::TypeBy::dtype
                                                       : PlainBuffer::TypeBy::format;
}

}  // namespace waywiser::python
