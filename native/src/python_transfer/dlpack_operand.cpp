// Operands with __dlpack__ and __dlpack_device__: jax, paddle and others.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "dlpack.hpp"
#include "errors.hpp"
#include "operand.hpp"
#include "streams.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser::python {
namespace {

struct Exported {
    const dlpack::Tensor* tensor = nullptr;
    std::uint64_t flags = 0;
};

nb::object capsule_of(nb::handle object, const nb::dict& arguments) {
    const nb::object method = object.attr("__dlpack__");
    try {
        nb::dict versioned(arguments);
        PyObject* const copied = PyDict_Copy(arguments.ptr());
        if (copied == nullptr) throw nb::python_error();
        versioned = nb::steal<nb::dict>(copied);
        versioned["max_version"] = nb::make_tuple(1, 0);
        return method(**versioned);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_TypeError)) throw;
    }
    return method(**arguments);  // a producer from before DLPack 1.0
}

Exported exported(const nb::object& capsule, Role role) {
    PyObject* const c = capsule.ptr();
    if (PyCapsule_IsValid(c, "dltensor_versioned") != 0) {
        const auto* managed = static_cast<const dlpack::ManagedTensorVersioned*>(
            PyCapsule_GetPointer(c, "dltensor_versioned"));
        if (managed->version.major != 1) {
            raise(Failure::unsupported,
                  {.what = "the " + std::string(text(role)) + " uses DLPack " +
                           std::to_string(managed->version.major) + ", not 1",
                   .remedy = "use a version of its library that uses DLPack 1"});
        }
        return {&managed->tensor, managed->flags};
    }
    if (PyCapsule_IsValid(c, "dltensor") != 0) {
        return {&static_cast<const dlpack::ManagedTensor*>(PyCapsule_GetPointer(c, "dltensor"))
                     ->tensor};
    }
    raise(Failure::invalid_operand,
          {.what = "__dlpack__ of the " + std::string(text(role)) + " gave no DLPack capsule",
           .remedy = "pass an array whose __dlpack__ returns a new capsule at each call"});
}

}  // namespace

void read_dlpack_tensor(const dlpack::Tensor& tensor, Role role, Operand& operand) {
    switch (tensor.device.type) {
        case dlpack::kCpu:
        case dlpack::kCudaHost: operand.gpu = kHost; break;
        case dlpack::kCuda:
        case dlpack::kCudaManaged: operand.gpu = tensor.device.index; break;
        default:
            raise(Failure::unsupported,
                  {.what = "the " + std::string(text(role)) + " is on a device of DLPack's type " +
                           std::to_string(tensor.device.type) + ", which is neither CPU nor CUDA",
                   .remedy = "copy it to the host or to a CUDA GPU with its own library first"});
    }
    operand.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    operand.type = {.code = static_cast<TypeCode>(tensor.dtype.code),
                    .bits = tensor.dtype.bits,
                    .lanes = tensor.dtype.lanes};
    operand.item = operand.type.bytes();
    if (operand.item == 0) {
        raise(Failure::unsupported, {.what = "elements of the " + std::string(text(role)) +
                                             " are no whole number of bytes: " + text(operand.type),
                                     .remedy = "pass a view of its bytes"});
    }
    check_dimensions(tensor.dimensions, role);
    operand.dimensions = tensor.dimensions;
    const auto count = static_cast<std::size_t>(tensor.dimensions);
    std::copy_n(tensor.shape, count, operand.shape.begin());
    if (tensor.strides != nullptr) {
        std::transform(
            tensor.strides, tensor.strides + count, operand.strides.begin(),
            [&](std::int64_t stride) { return stride_in_bytes(stride, operand.item, role); });
    } else {
        set_c_strides(operand);
    }
    complete(operand, role);
}

bool read_dlpack(nb::handle object, Role role, const std::optional<void*>& stream, Operand& operand,
                 Held& held) {
    const nb::object device = attribute(object, "__dlpack_device__");
    if (!device.is_valid() || !attribute(object, "__dlpack__").is_valid()) return false;
    std::pair<int, int> where;
    if (!nb::try_cast(nb::object(device()), where)) {
        raise(Failure::invalid_operand,
              {.what = "__dlpack_device__ of the " + std::string(text(role)) +
                       " gave no pair of numbers",
               .remedy = "pass an array that follows DLPack: (device type, device number)"});
    }
    nb::dict arguments;
    if (where.first == dlpack::kCuda || where.first == dlpack::kCudaManaged) {
        // The producer orders its work before this stream, in which the copy is then enqueued.
        arguments["stream"] = number_for_others(stream.value_or(nullptr));
        operand.stream = stream.value_or(legacy_stream_of(where.second));
    }
    // It stays in the capsule, which releases it.
    nb::object capsule = capsule_of(object, arguments);
    const Exported found = exported(capsule, role);
    held.push_back(std::move(capsule));
    read_dlpack_tensor(*found.tensor, role, operand);
    operand.read_only = (found.flags & dlpack::kReadOnly) != 0;
    if (role == Role::destination && (found.flags & dlpack::kIsCopied) != 0) {
        raise(Failure::invalid_transfer,
              {.what = "__dlpack__ of the destination gave a copy of its memory",
               .remedy = "pass an array whose own memory DLPack can show"});
    }
    return true;
}

}  // namespace waywiser::python
