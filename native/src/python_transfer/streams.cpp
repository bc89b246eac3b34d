#include "streams.hpp"

#include <cstdint>
#include <string>

#include "errors.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

constexpr std::uintptr_t kLargestDefault = 2;  // 0 and 1: legacy, 2: per thread

bool is_default(void* stream) {
    return reinterpret_cast<std::uintptr_t>(stream) <= kLargestDefault;
}

// The GPU of device memory; -1 if the runtime does not report it.
int gpu_of(const Operand& operand) {
    if (operand.gpu != kSomeGpu) return operand.gpu;
    if (operand.bytes == 0) return kHost;
    return gpu_at(operand.data);
}

std::optional<void*> own_stream(const Operand& operand) {
    if (operand.gpu == kHost || !operand.stream) return std::nullopt;
    return is_default(*operand.stream) ? with_gpu(*operand.stream, gpu_of(operand))
                                       : *operand.stream;
}

void* number_of(nb::handle number) {
    return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(number));
}

// An integer by its value, anything else by its type.
std::string shown(nb::handle stream) {
    return PyLong_CheckExact(stream.ptr()) ? printed(stream) : given(stream);
}

// Streams of torch and cupy may be the default stream of a GPU that is not current.
void* with_device(nb::handle stream, void* number) {
    if (!is_default(number)) return number;
    const nb::object index = attribute(stream, "device_index");
    return index.is_valid() && nb::isinstance<nb::int_>(index)
               ? with_gpu(number, nb::cast<int>(index))
               : number;
}

}  // namespace

std::uintptr_t number_for_others(void* stream) {
    constexpr std::uintptr_t kKind = 0xff;
    constexpr std::uintptr_t kMostGpus = 256;
    const auto number = reinterpret_cast<std::uintptr_t>(stream);
    if (number == 0) return 1;
    const std::uintptr_t kind = number & kKind;
    const std::uintptr_t gpu = number >> 8;
    const bool names_gpu = (kind == 1 || kind == 2) && gpu >= 1 && gpu <= kMostGpus;
    return names_gpu ? kind : number;
}

std::optional<void*> stream_of(nb::handle stream) {
    if (stream.is_none()) return std::nullopt;
    try {
        if (PyLong_Check(stream.ptr()) && !PyBool_Check(stream.ptr())) return number_of(stream);
        nb::object number = attribute(stream, "cuda_stream");  // torch
        if (!number.is_valid()) {
            nb::object pair = attribute(stream, "__cuda_stream__");
            if (pair.is_valid()) {
                if (PyCallable_Check(pair.ptr()) != 0) pair = pair();
                number = nb::cast<nb::tuple>(pair)[1];
            }
        }
        if (!number.is_valid()) number = attribute(stream, "ptr");  // cupy
        if (number.is_valid()) return with_device(stream, number_of(number));
    } catch (const nb::cast_error&) {  // not a number: rejected below
        PyErr_Clear();
    }
    raise(Failure::invalid_operand,
          {.what = "the stream is " + shown(stream) + ", not a CUDA stream",
           .remedy = "pass a stream of torch or cupy, an object with __cuda_stream__, or the "
                     "number of a cudaStream_t"});
}

void* with_gpu(void* stream, int gpu) {
    if (!is_default(stream) || gpu < 0) return stream;
    return reinterpret_cast<std::uintptr_t>(stream) == kLargestDefault
               ? WAYWISER_PER_THREAD_STREAM_OF(gpu)
               : WAYWISER_LEGACY_STREAM_OF(gpu);
}

int gpu_at(const void* memory) {
    waywiser_description found{};
    found.size = sizeof found;
    check(waywiser_describe(memory, 1, &found));
    return found.gpu;
}

int known_gpu(const Operand& operand) {
    const int gpu = gpu_of(operand);
    return gpu == kHost && operand.gpu != kHost ? kSomeGpu : gpu;
}

Streams choose_streams(const std::optional<void*>& requested, const Operand& destination,
                       const Operand& source) {
    const Operand& operand = destination.gpu != kHost ? destination : source;
    if (requested) {
        if (!is_default(*requested)) return {*requested, std::nullopt, operand.gpu};
        const int gpu = gpu_of(operand);
        return {with_gpu(*requested, gpu), std::nullopt, gpu};
    }
    std::optional<void*> to = own_stream(destination);
    std::optional<void*> from = own_stream(source);
    if (destination.gpu != kHost && source.gpu != kHost && !(to && from)) {
        // An array without a stream uses the other array's, or the default stream of its own GPU.
        const int to_gpu = gpu_of(destination);
        const int from_gpu = gpu_of(source);
        if (!to && (!from || to_gpu != from_gpu)) to = with_gpu(nullptr, to_gpu);
        if (!from && to_gpu != from_gpu) from = with_gpu(nullptr, from_gpu);
    }
    if (from && to && *from != *to) return {*from, to, operand.gpu};
    if (from || to) return {from ? *from : *to, std::nullopt, operand.gpu};
    if (operand.gpu == kHost) return {};
    const Operand& first = source.gpu != kHost ? source : destination;
    return {with_gpu(nullptr, gpu_of(first)), std::nullopt, operand.gpu};
}

}  // namespace waywiser::python
