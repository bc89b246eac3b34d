#include "errors.hpp"

#include <cerrno>

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser::python {
namespace {

const char* class_of(Failure kind, int error) {
    switch (kind) {
        case Failure::invalid_transfer: return "InvalidTransfer";
        case Failure::invalid_operand: return "InvalidOperand";
        case Failure::unsupported: return "UnsupportedTransfer";
        case Failure::out_of_memory: return "TransferMemoryError";
        case Failure::gpu:
        case Failure::gpu_lost: return "GpuError";
        case Failure::file: return error == ENOENT ? "TransferFileNotFound" : "TransferFileError";
        case Failure::timeout: return "TransferTimeout";
        case Failure::cancelled: return "TransferCancelled";
        case Failure::forked: return "ForkedContextError";
        case Failure::internal: break;
    }
    return "TransferError";
}

Failure failure_of(waywiser_status status) {
    switch (status) {
        case WAYWISER_INVALID: return Failure::invalid_transfer;
        case WAYWISER_UNSUPPORTED: return Failure::unsupported;
        case WAYWISER_OUT_OF_MEMORY: return Failure::out_of_memory;
        case WAYWISER_GPU: return Failure::gpu;
        case WAYWISER_GPU_LOST: return Failure::gpu_lost;
        case WAYWISER_IO: return Failure::file;
        case WAYWISER_TIMEOUT: return Failure::timeout;
        case WAYWISER_CANCELLED: return Failure::cancelled;
        case WAYWISER_FORKED: return Failure::forked;
        case WAYWISER_OK:
        case WAYWISER_INTERNAL: break;
    }
    return Failure::internal;
}

}  // namespace

void raise(Failure kind, const Message& message, std::size_t moved, int error) {
    const nb::object type =
        nb::module_::import_("waywiser.transfer.errors").attr(class_of(kind, error));
    nb::dict fields;
    fields["where"] = message.where.c_str();
    fields["remedy"] = message.remedy.c_str();
    fields["moved"] = moved;
    if (kind == Failure::file) fields["number"] = error;
    const nb::object made = type(message.what.c_str(), **fields);
    if (kind == Failure::gpu_lost) made.attr("lost") = true;
    PyErr_SetObject(type.ptr(), made.ptr());
    throw nb::python_error();
}

void raise_status(waywiser_status status, std::size_t moved) {
    raise_status(status, waywiser_last_error(), moved, waywiser_last_errno());
}

void raise_status(waywiser_status status, const std::string& message, std::size_t moved,
                  int error) {
    raise(failure_of(status), {.what = message}, moved, error);
}

void raise_forked() {
    raise(Failure::forked, {.what = "this process was forked from one that uses the transfer "
                                    "library, whose threads it does not have",
                            .where = "waywiser.transfer",
                            .remedy = "start processes with the 'spawn' method, or make the first "
                                      "call after the fork"});
}

}  // namespace waywiser::python
