// Converts the library's errors to exceptions of the module.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "gpu/gpu.hpp"
#include "host/node_memory.hpp"
#include "nccl/library.hpp"
#include "python/bindings.hpp"
#include "waywiser/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

const char* text(gpu::Failure kind) {
    switch (kind) {
        case gpu::Failure::other: return "other";
        case gpu::Failure::out_of_memory: return "out_of_memory";
        case gpu::Failure::sticky: return "sticky";
        case gpu::Failure::unavailable: break;
    }
    return "unavailable";
}

}  // namespace

// gpu::Error with its fields: args == (message, kind, call, code, name, where).
void bind_errors(nb::module_& m) {
    static nb::handle
        gpu_error;  // owned by the module; a C++ owner would release it after Python has ended
    const std::string name = nb::cast<std::string>(m.attr("__name__")) + ".GpuError";
    const nb::object made =
        nb::steal(PyErr_NewException(name.c_str(), PyExc_RuntimeError, nullptr));
    m.attr("GpuError") = made;
    gpu_error = nb::object(made).release();
    nb::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const gpu::Error& e) {
            const std::string where =
                std::string(e.where().file_name()) + ":" + std::to_string(e.where().line());
            const nb::object fields =
                nb::make_tuple(e.what(), text(e.kind()), e.call(), e.code(), e.name(), where);
            PyErr_SetObject(gpu_error.ptr(), fields.ptr());
        }
    });
    nb::exception<host::NodeFull>(m, "NodeFull", PyExc_MemoryError);
    nb::exception<NotSupported>(m, "NotSupported", PyExc_RuntimeError);
    nb::exception<WrongBytes>(m, "WrongBytes", PyExc_RuntimeError);
    nb::exception<BlocksBehindGate>(m, "BlocksBehindGate", PyExc_RuntimeError);
    nb::exception<nccl::Error>(m, "NcclError", PyExc_RuntimeError);
    nb::exception<OtherRankFailed>(m, "OtherRankFailed", PyExc_RuntimeError);
}

}  // namespace waywiser
