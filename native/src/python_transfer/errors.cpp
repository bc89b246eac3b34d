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
        case Failure::in_use: return "TransferInUse";
        case Failure::internal: break;
    }
    return "TransferError";
}

thread_local const CallScope* call_under_way = nullptr;

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
        case WAYWISER_IN_USE: return Failure::in_use;
        case WAYWISER_OK:
        case WAYWISER_INTERNAL: break;
    }
    return Failure::internal;
}

}  // namespace

nb::object text_of(const std::string& bytes) {
    PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                                                "backslashreplace");
    if (text == nullptr) throw nb::python_error();
    return nb::steal(text);
}

CallScope::CallScope(const char* name, std::optional<std::size_t> operation)
    : name_(name), operation_(operation), before_(call_under_way) {
    call_under_way = this;
}
CallScope::~CallScope() { call_under_way = before_; }

std::string operation_text(std::size_t operation) {
    return "operation " + std::to_string(operation);
}

std::string where_of(const Message& message) {
    if (call_under_way == nullptr) return message.where;
    std::string where = message.where;
    const std::string call = call_under_way->name_;
    // The library names some of its calls itself.
    if (where.empty() && !message.what.starts_with(call + ": ")) where = call;
    if (!call_under_way->operation_) return where;
    const std::string operation = operation_text(*call_under_way->operation_);
    return where.empty() ? operation : operation + ": " + where;
}

std::string name_of_type(nb::handle object) {
    const nb::object name = nb::steal(PyType_GetName(Py_TYPE(object.ptr())));
    if (!name.is_valid()) throw nb::python_error();
    return nb::str(name).c_str();
}

std::string given(nb::handle object) {
    if (object.is_none()) return "None";
    return "of type " + name_of_type(object);
}

void raise(Failure kind, const Message& message, std::size_t moved, int error, const char* status) {
    const nb::object type =
        nb::module_::import_("waywiser.transfer.errors").attr(class_of(kind, error));
    nb::dict fields;
    fields["where"] = text_of(where_of(message));
    fields["remedy"] = text_of(message.remedy);
    fields["moved"] = moved;
    if (kind == Failure::file) fields["number"] = error;
    const nb::object made = type(text_of(message.what), **fields);
    if (kind == Failure::gpu_lost) {
        made.attr("lost") = true;
        made.attr("status") = waywiser_status_name(WAYWISER_GPU_LOST);
    }
    if (status != nullptr) made.attr("status") = status;
    PyErr_SetObject(type.ptr(), made.ptr());
    throw nb::python_error();
}

void raise_status(waywiser_status status, std::size_t moved) {
    raise_status(status, waywiser_last_error(), moved, waywiser_last_errno());
}

void raise_status(waywiser_status status, const std::string& message, std::size_t moved, int error,
                  const std::string& file_call) {
    if (status != WAYWISER_IO) {
        raise(failure_of(status), {.what = message}, moved, 0, waywiser_status_name(status));
    }
    if (error == EBADF && !file_call.empty()) {  // the number that failed is of a duplicate
        raise(Failure::file,
              {.what = "the file is not open for this",
               .where = file_call,
               .remedy = file_remedy(error)},
              moved, error);
    }
    // The library's message may already contain it.
    const bool has_remedy = message.find("free space") != std::string::npos;
    raise(Failure::file,
          {.what = message, .where = file_call, .remedy = has_remedy ? "" : file_remedy(error)},
          moved, error);
}

const char* file_remedy(int error) {
    switch (error) {
        case ENOENT: return "check the path: folders are not created";
        case EISDIR: return "pass the path of a file in the folder";
        case ENOTDIR: return "check the path: a part of it is no folder";
        case EACCES:
        case EPERM: return "check the permissions of the file and of its folders";
        case EROFS: return "write to a file system that is mounted for writing";
        case EBADF: return "open the file for reading to read, for writing to write";
        case ESPIPE:
        case ENXIO: return "pass a regular file or a block device: others have no offsets";
        case ENOSPC: return "free space on the disk";
        case EDQUOT: return "free space: the quota of the user is used up";
        case EFBIG: return "write less: the limit of the file system or of the process (ulimit -f)";
        case EMFILE:
        case ENFILE: return "close files, or raise the limit of open files (ulimit -n)";
        default: return "";
    }
}

void raise_forked() {
    raise(Failure::forked, {.what = "this process was forked from one that uses the transfer "
                                    "library, whose threads it does not have",
                            .where = "waywiser.transfer",
                            .remedy = "start processes with the 'spawn' method, or make the first "
                                      "call after the fork"});
}

}  // namespace waywiser::python
