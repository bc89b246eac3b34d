// Tensors of torch, if the program has imported it: this module never does.
//
// torch 2.10 and later describe a tensor in one call (the C exchange API of DLPack). Earlier
// versions need one query per attribute.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "dlpack.hpp"
#include "errors.hpp"
#include "operand.hpp"
#include "streams.hpp"

namespace nb = nanobind;

namespace waywiser::python {

void read_dlpack_tensor(const dlpack::Tensor& tensor, Role role, Operand& operand);

namespace {

// The required parts of the torch module. References are kept forever: torch cannot be unloaded.
struct Torch {
    PyTypeObject* tensor = nullptr;
    PyTypeObject* parameter = nullptr;
    PyObject* no_dispatch = nullptr;  // __torch_dispatch__ of tensors that have memory
    const dlpack::ExchangeApi* exchange = nullptr;
    PyObject* is_grad_enabled = nullptr;
    PyObject* increment_version =
        nullptr;  // of torch._C, takes a tuple; or torch's own; null before 2.1
    bool increments_tuples = true;
    PyObject* current_stream = nullptr;  // torch._C._cuda_getCurrentRawStream
    PyObject* strided = nullptr;
    std::unordered_map<PyObject*, ElementType> types;  // by dtype; each dtype is one object
};

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

struct Names {
    PyObject* is_neg = interned("is_neg");
    PyObject* is_conj = interned("is_conj");
    PyObject* requires_grad = interned("requires_grad");
    PyObject* dispatch = interned("__torch_dispatch__");
};

const Names& names() {
    static const Names& all = *new Names();
    return all;
}

const dlpack::ExchangeApi* exchange_of(nb::handle type) {
    const nb::object capsule = attribute(type, "__dlpack_c_exchange_api__");
    if (!capsule.is_valid() || PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") == 0) {
        return nullptr;
    }
    const auto* api = static_cast<const dlpack::ExchangeApi*>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    const bool usable = api->version.major == 1 && api->tensor_from_py_object != nullptr &&
                        api->current_work_stream != nullptr;
    return usable ? api : nullptr;
}

PyObject* kept(const nb::object& object) { return nb::object(object).release().ptr(); }

void fill_types(const nb::object& torch, Torch& found) {
    const auto add = [&](const char* name, ElementType type) {
        const nb::object dtype = attribute(torch, name);
        if (dtype.is_valid()) found.types.emplace(kept(dtype), std::move(type));
    };
    for (const std::uint16_t bits : {8, 16, 32, 64}) {
        add(("int" + std::to_string(bits)).c_str(), {.code = TypeCode::integer, .bits = bits});
        add(("uint" + std::to_string(bits)).c_str(),
            {.code = TypeCode::unsigned_integer, .bits = bits});
        if (bits > 8) {
            add(("float" + std::to_string(bits)).c_str(),
                {.code = TypeCode::floating, .bits = bits});
        }
    }
    for (const std::uint16_t bits : {32, 64, 128}) {
        add(("complex" + std::to_string(bits)).c_str(), {.code = TypeCode::complex, .bits = bits});
    }
    for (const char* name : {"bool", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
                             "float8_e5m2fnuz", "float8_e8m0fnu"}) {
        add(name, type_of_name(name));
    }
}

// Null until the import of torch has completed.
const Torch* torch() {
    static const Torch* known = nullptr;
    if (known != nullptr) return known;
    PyObject* const modules = PyImport_GetModuleDict();
    PyObject* const module = PyDict_GetItemString(modules, "torch");
    if (module == nullptr || module == Py_None) return nullptr;
    const nb::object torch = nb::borrow(module);
    const nb::object tensor = attribute(torch, "Tensor");
    const nb::object native = attribute(torch, "_C");
    const nb::object nn = attribute(torch, "nn");
    const nb::object autograd = attribute(torch, "autograd");
    if (!tensor.is_valid() || !native.is_valid() || !nn.is_valid() || !autograd.is_valid()) {
        return nullptr;  // its import is in progress
    }
    const nb::object parameter = attribute(nn, "Parameter");
    const nb::object graph = attribute(autograd, "graph");
    const nb::object is_grad_enabled = attribute(torch, "is_grad_enabled");
    const nb::object strided = attribute(torch, "strided");
    if (!parameter.is_valid() || !graph.is_valid() || !is_grad_enabled.is_valid() ||
        !strided.is_valid()) {
        return nullptr;
    }
    auto* const found = new Torch();
    found->tensor = reinterpret_cast<PyTypeObject*>(kept(tensor));
    found->parameter = reinterpret_cast<PyTypeObject*>(kept(parameter));
    const nb::object no_dispatch = attribute(tensor, "__torch_dispatch__");
    if (no_dispatch.is_valid()) found->no_dispatch = kept(no_dispatch);
    found->exchange = exchange_of(tensor);
    found->is_grad_enabled = kept(is_grad_enabled);
    nb::object increment = attribute(native, "_increment_version");
    if (!increment.is_valid()) {
        increment = attribute(graph, "increment_version");
        found->increments_tuples = false;
    }
    if (increment.is_valid()) found->increment_version = kept(increment);
    const nb::object stream = attribute(native, "_cuda_getCurrentRawStream");
    if (stream.is_valid()) found->current_stream = kept(stream);
    found->strided = kept(strided);
    fill_types(torch, *found);
    known = found;
    return known;
}

[[noreturn]] void reject(Role role, const std::string& what, const std::string& remedy) {
    raise(Failure::unsupported,
          {.what = "the " + std::string(text(role)) + " " + what, .remedy = remedy});
}

// A type that is neither Tensor nor Parameter: some have no memory of their own.
void check_subclass(nb::handle object, Role role, const Torch& torch) {
    PyTypeObject* const type = Py_TYPE(object.ptr());
    if (type == torch.tensor || type == torch.parameter || torch.no_dispatch == nullptr) return;
    const nb::object dispatch = attribute(reinterpret_cast<PyObject*>(type), "__torch_dispatch__");
    if (dispatch.is_valid() && dispatch.ptr() == torch.no_dispatch) return;
    reject(role, "is a " + name_of_type(object) + ", whose operations torch redirects",
           "copy the plain tensors that it is made of");
}

// With one argument, without a tuple: calls of the stable ABI.
PyObject* call(PyObject* function, PyObject* argument) {
    PyObject* const arguments[] = {argument};
    return PyObject_Vectorcall(function, arguments, 1, nullptr);
}
PyObject* call_method(PyObject* object, PyObject* name) {
    PyObject* const arguments[] = {object};
    return PyObject_VectorcallMethod(name, arguments, 1, nullptr);
}

bool asks(nb::handle object, PyObject* method) {
    const nb::object answer = nb::steal(call_method(object.ptr(), method));
    if (!answer.is_valid()) throw nb::python_error();
    return answer.ptr() == Py_True;
}

void check_bits(nb::handle object, Role role, const ElementType& type) {
    if (type.code == TypeCode::complex && asks(object, names().is_conj)) {
        reject(role, "is a conjugate view, whose memory holds other values",
               "call resolve_conj() first");
    }
    const bool negates = type.code == TypeCode::complex || type.code == TypeCode::floating ||
                         type.code == TypeCode::brain;
    if (negates && asks(object, names().is_neg)) {
        reject(role, "is a negated view, whose memory holds other values",
               "call resolve_neg() first");
    }
}

void check_grad(nb::handle object, const Torch& torch) {
    const nb::object requires_grad =
        nb::steal(PyObject_GetAttr(object.ptr(), names().requires_grad));
    if (!requires_grad.is_valid()) throw nb::python_error();
    if (requires_grad.ptr() != Py_True) return;
    const nb::object enabled = nb::steal(PyObject_CallNoArgs(torch.is_grad_enabled));
    if (!enabled.is_valid()) throw nb::python_error();
    if (enabled.ptr() != Py_True) return;
    raise(Failure::invalid_transfer,
          {.what = "the destination requires grad, and autograd does not record these copies",
           .remedy = "copy under torch.no_grad(), or into tensor.detach()"});
}

std::string first_line(nb::python_error& error) {
    const std::string all = printed(error.value());
    return all.substr(0, all.find('\n'));
}

void read_by_attributes(nb::handle object, Role role, const Torch& torch, Operand& operand) {
    if (object.attr("layout").ptr() != torch.strided) {
        reject(role, "is a sparse tensor", "copy its indices and values");
    }
    const auto device = nb::borrow<nb::object>(object.attr("device"));
    const std::string kind = printed(nb::object(device.attr("type")));
    if (kind == "cuda") {
        operand.gpu = nb::cast<int>(object.attr("get_device")());
    } else if (kind == "cpu") {
        operand.gpu = kHost;
    } else {
        reject(role, "is on the device '" + kind + "', which is neither cpu nor cuda",
               "move it to the device 'cpu' or 'cuda' first");
    }
    const auto type = torch.types.find(nb::object(object.attr("dtype")).ptr());
    if (type == torch.types.end()) {
        reject(role, "has the unsupported dtype " + printed(nb::object(object.attr("dtype"))),
               "copy a view of it as torch.uint8");
    }
    operand.type = type->second;
    operand.item = operand.type.bytes();
    operand.data =
        reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(object.attr("data_ptr")()));
    const auto shape = nb::cast<nb::tuple>(object.attr("shape"));
    const auto strides = nb::cast<nb::tuple>(object.attr("stride")());
    check_dimensions(static_cast<std::int64_t>(nb::len(shape)), role);
    operand.dimensions = static_cast<int>(nb::len(shape));
    for (std::size_t i = 0; i < nb::len(shape); ++i) {
        operand.shape[i] = nb::cast<std::int64_t>(shape[i]);
        operand.strides[i] =
            stride_in_bytes(nb::cast<std::int64_t>(strides[i]), operand.item, role);
    }
    complete(operand, role);
}

void read_by_exchange(nb::handle object, Role role, const Torch& torch, Operand& operand) {
    dlpack::Tensor tensor{};
    if (torch.exchange->tensor_from_py_object(object.ptr(), &tensor) != 0) {
        nb::python_error why;
        reject(role, "has no plain memory: " + first_line(why), "pass a plain, dense tensor");
    }
    read_dlpack_tensor(tensor, role, operand);
}

}  // namespace

bool is_torch_tensor(nb::handle object) {
    const Torch* const known = torch();
    if (known == nullptr) return false;
    PyTypeObject* const type = Py_TYPE(object.ptr());
    return type == known->tensor || PyType_IsSubtype(type, known->tensor) != 0;
}

void read_torch(nb::handle object, Role role, Operand& operand) {
    const Torch& known = *torch();
    if (known.increment_version == nullptr) {
        reject(role, "is a tensor of a PyTorch before 2.1, which cannot count a write for autograd",
               "python -m pip install 'torch>=2.1'");
    }
    check_subclass(object, role, known);
    if (known.exchange != nullptr) {
        read_by_exchange(object, role, known, operand);
    } else {
        try {
            read_by_attributes(object, role, known, operand);
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_RuntimeError) && !error.matches(PyExc_NotImplementedError)) {
                throw;
            }
            reject(role, "has no plain memory: " + first_line(error), "pass a plain, dense tensor");
        }
    }
    check_bits(object, role, operand.type);
    if (role == Role::destination) check_grad(object, known);
    if (operand.gpu >= 0) operand.stream = torch_stream(operand.gpu);
}

void note_torch_write(nb::handle object) {
    const Torch& known = *torch();
    nb::object done;
    if (known.increments_tuples) {
        const nb::object tensors = nb::make_tuple(object);
        done = nb::steal(call(known.increment_version, tensors.ptr()));
    }
    if (!done.is_valid()) {
        PyErr_Clear();  // before 2.4 it took the tensor itself
        done = nb::steal(call(known.increment_version, object.ptr()));
    }
    if (!done.is_valid()) throw nb::python_error();
}

std::optional<void*> torch_stream(int gpu) {
    const Torch* const known = torch();
    if (known == nullptr) return std::nullopt;
    void* stream = nullptr;
    if (known->exchange != nullptr) {
        if (known->exchange->current_work_stream(dlpack::kCuda, gpu, &stream) != 0) {
            throw nb::python_error();
        }
    } else if (known->current_stream != nullptr) {
        const nb::object number = nb::borrow(known->current_stream)(gpu);
        stream = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(number));
    }
    return stream;
}

}  // namespace waywiser::python
