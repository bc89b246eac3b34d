// waywiser_fake._testing: parts of the fake GPU that Python tests need to imitate a GPU library.
// Thin, over gpu.hpp and fake.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "fake/fake.hpp"
#include "gpu/gpu.hpp"
#include "ranks/messenger_checks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser::testing {
namespace {

// Owns what waits for the GPU when it ends. The GIL is free meanwhile: the GPU may wait for another
// thread of Python, such as one that opens a gate.
template <typename T>
class EndsUnlocked {
public:
    template <typename... Arguments>
        requires std::constructible_from<T, Arguments...>
    explicit EndsUnlocked(Arguments&&... arguments)
        : owned_(std::make_unique<T>(std::forward<Arguments>(arguments)...)) {}
    ~EndsUnlocked() {
        const nb::gil_scoped_release release;
        owned_.reset();
    }
    EndsUnlocked(const EndsUnlocked&) = delete;
    EndsUnlocked& operator=(const EndsUnlocked&) = delete;
    T& operator*() const { return *owned_; }
    T* operator->() const { return owned_.get(); }

private:
    std::unique_ptr<T> owned_;
};

// A stream of the fake: a new one or a default one.
struct Stream {
    EndsUnlocked<gpu::Stream> stream;

    explicit Stream(int device) : stream(device) {}
    Stream(int device, void* handle) : stream(device, handle) {}
    [[nodiscard]] std::uintptr_t handle() const {
        return reinterpret_cast<std::uintptr_t>(stream->handle());
    }
};

struct DeviceBuffer {
    EndsUnlocked<gpu::DeviceBuffer> memory;
    int device;

    DeviceBuffer(int gpu, std::size_t bytes) : memory(gpu, bytes), device(gpu) {}
    // The fake's device memory is host memory: accessed without any stream.
    [[nodiscard]] nb::bytes read() const { return nb::bytes(memory->data(), memory->bytes()); }
    void write(const nb::bytes& bytes) {
        if (bytes.size() > memory->bytes()) throw nb::value_error("more bytes than memory");
        std::memcpy(memory->data(), bytes.data(), bytes.size());
    }
};

// Pins memory that it does not own.
struct Registration {
    EndsUnlocked<gpu::Registration> pinned;

    Registration(std::uintptr_t data, std::size_t bytes)
        : pinned(reinterpret_cast<std::byte*>(data), bytes, 0) {}
};

// Blocks streams until it is opened.
struct Gate {
    EndsUnlocked<gpu::Gate> gate;

    explicit Gate(int device) : gate(device) {}
};

struct Graph {
    gpu::Graph graph;
    gpu::ExecutableGraph executable;

    Graph(const Stream& stream, const nb::callable& enqueue)
        : graph(*stream.stream, [&] { enqueue(); }), executable(graph) {}
};

void* pointer(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

nb::dict live() {
    const fake::Live now = fake::live();
    nb::dict all;
    all["streams"] = now.streams;
    all["events"] = now.events;
    all["device_buffers"] = now.device_buffers;
    all["host_buffers"] = now.host_buffers;
    all["registrations"] = now.registrations;
    return all;
}

}  // namespace
}  // namespace waywiser::testing

NB_MODULE(_testing, m) {
    using namespace waywiser::testing;
    nb::set_leak_warnings(false);
    m.def("check_messenger", &waywiser::test::check_messenger, "messenger"_a, "largest"_a,
          "knows_sizes"_a = true, nb::call_guard<nb::gil_scoped_release>());
    m.def("configure", [](const std::string& text) { waywiser::fake::configure(text); });
    m.def("live", &live);
    m.def("copies", [] { return waywiser::fake::counts().copies; });
    m.def("launches", [] { return waywiser::fake::counts().launches; });
    m.def("current_gpu", &waywiser::fake::current_device);
    m.def("set_current_gpu", [](int gpu) { waywiser::fake::set_current_device(gpu); });
    nb::class_<DeviceBuffer>(m, "DeviceBuffer", nb::is_weak_referenceable())
        .def(nb::init<int, std::size_t>(), "gpu"_a, "nbytes"_a)
        .def_prop_ro("address",
                     [](const DeviceBuffer& self) {
                         return reinterpret_cast<std::uintptr_t>(self.memory->data());
                     })
        .def_prop_ro("nbytes", [](const DeviceBuffer& self) { return self.memory->bytes(); })
        .def_ro("gpu", &DeviceBuffer::device)
        .def("read", &DeviceBuffer::read)
        .def("write", &DeviceBuffer::write);
    nb::class_<Stream>(m, "Stream")
        .def(nb::init<int>(), "gpu"_a)
        .def_prop_ro("handle", &Stream::handle)
        .def("synchronize",
             [](const Stream& self) {
                 const nb::gil_scoped_release release;
                 self.stream->synchronize();
             })
        .def("done", [](const Stream& self) { return self.stream->done(); })
        .def("fill", [](const Stream& self, std::uintptr_t address, std::size_t bytes,
                        unsigned char value) {
            waywiser::gpu::fill_async(pointer(address), value, bytes, *self.stream);
        });
    m.def("default_stream", [](int gpu) { return std::make_unique<Stream>(gpu, nullptr); });
    nb::class_<Registration>(m, "Registration")
        .def(nb::init<std::uintptr_t, std::size_t>(), "address"_a, "nbytes"_a);
    nb::class_<Gate>(m, "Gate")
        .def(nb::init<int>(), "gpu"_a)
        .def("close", [](Gate& self, const Stream& stream) { self.gate->close(*stream.stream); })
        .def("open", [](Gate& self) { self.gate->open(); });
    nb::class_<Graph>(m, "Graph")
        .def(nb::init<const Stream&, const nb::callable&>(), "stream"_a, "enqueue"_a)
        .def("launch", [](const Graph& self, const Stream& stream) {
            self.executable.launch(*stream.stream);
        });
}
