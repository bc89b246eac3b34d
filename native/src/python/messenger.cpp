// Bindings of messages between ranks, of bytes of Python and of buffers of any kind of memory.
#include "ranks/messenger.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "python/bindings.hpp"
#include "ranks/bridge_messenger.hpp"
#include "ranks/nccl_connection.hpp"
#include "ranks/nccl_messenger.hpp"
#include "waywiser/memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

using ranks::Bridge;
using ranks::Messenger;
using ranks::NcclConnection;
using ranks::Parts;

// A buffer of a kind of memory at its place.
class PlacedMemory {
public:
    PlacedMemory(const Memory& memory, std::size_t bytes, const Machine& machine)
        : kind_(Memories::instance().find(memory.kind)),
          gpu_(memory.on_gpu() ? memory.place.index : 0),
          bytes_(bytes) {
        if (kind_ == nullptr) throw NotSupported("there is no memory '" + memory.kind + "'");
        if (const auto reason = kind_->unsupported_reason(memory, machine)) {
            throw NotSupported(*reason);
        }
        buffer_ = kind_->allocate(memory, bytes, machine);
    }
    [[nodiscard]] std::byte* data() const { return buffer_->data(); }
    // As requested: kinds may allocate more.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    void write(const void* from, std::size_t bytes) { copy(data(), from, bytes); }
    void read(void* to) const { copy(to, data(), bytes()); }

private:
    void copy(void* to, const void* from, std::size_t bytes) const {
        if (bytes == 0) return;
        if (kind_->cpu_accessible()) {
            std::memcpy(to, from, bytes);
        } else {
            gpu::copy_sync(to, from, bytes, gpu_);
        }
    }

    const MemoryKind* kind_;
    int gpu_;
    std::size_t bytes_;
    std::unique_ptr<Buffer> buffer_;
};

// The bytes of an argument: those of a PlacedMemory, or of an object with the buffer protocol.
class Argument {
public:
    Argument(const nb::handle& object, bool writable) {
        PlacedMemory* placed = nullptr;
        if (nb::try_cast(object, placed) && placed != nullptr) {
            data_ = placed->data();
            bytes_ = placed->bytes();
            return;
        }
        if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE)) {
            throw nb::python_error();
        }
        held_ = true;
        data_ = static_cast<std::byte*>(view_.buf);
        bytes_ = static_cast<std::size_t>(view_.len);
    }
    ~Argument() {
        if (held_) PyBuffer_Release(&view_);
    }
    Argument(const Argument&) = delete;
    Argument& operator=(const Argument&) = delete;
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    Py_buffer view_{};
    bool held_ = false;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

Parts parts_within(const Argument& buffer, const std::vector<std::size_t>& bytes, int size) {
    Parts parts = Parts::in_order(bytes);
    const std::size_t all = parts.bytes.empty() ? 0 : parts.offsets.back() + parts.bytes.back();
    if (parts.bytes.size() != static_cast<std::size_t>(size) || all > buffer.bytes()) {
        throw nb::value_error("one number of bytes for each rank, together at most the buffer");
    }
    return parts;
}

void alltoallv(Messenger& self, const nb::handle& source, const std::vector<std::size_t>& bytes,
               const nb::handle& destination, const std::vector<std::size_t>& received) {
    const Argument from(source, false), to(destination, true);
    const Parts parts = parts_within(from, bytes, self.size());
    const Parts received_parts = parts_within(to, received, self.size());
    const nb::gil_scoped_release exchanging;
    self.alltoallv(from.data(), parts, to.data(), received_parts);
}

nb::bytes read(const PlacedMemory& self) {
    std::string copy(self.bytes(), '\0');
    {
        const nb::gil_scoped_release copying;
        self.read(copy.data());
    }
    return nb::bytes(copy.data(), copy.size());
}

void write(PlacedMemory& self, const nb::bytes& data) {
    if (data.size() > self.bytes()) throw nb::value_error("more bytes than the buffer has");
    const void* from = data.data();
    const std::size_t bytes = data.size();
    const nb::gil_scoped_release copying;
    self.write(from, bytes);
}

void bind_messengers(nb::module_& m) {
    nb::class_<Messenger>(m, "Messenger")
        .def_prop_ro("rank", &Messenger::rank)
        .def_prop_ro("size", &Messenger::size)
        .def(
            "send",
            [](Messenger& self, const nb::handle& data, int to, int tag) {
                const Argument bytes(data, false);
                const nb::gil_scoped_release sending;
                self.send(bytes.data(), bytes.bytes(), to, tag);
            },
            "data"_a, "to"_a, "tag"_a = 0)
        .def(
            "receive",
            [](Messenger& self, const nb::handle& into, int from, int tag) {
                const Argument bytes(into, true);
                const nb::gil_scoped_release receiving;
                self.receive(bytes.data(), bytes.bytes(), from, tag);
            },
            "into"_a, "source"_a, "tag"_a = 0)
        .def("barrier", &Messenger::barrier, nb::call_guard<nb::gil_scoped_release>())
        .def("alltoallv", &alltoallv, "source"_a, "bytes"_a, "destination"_a, "received"_a)
        .def(
            "maximum",
            [](Messenger& self, std::vector<double> values) {
                self.maximum(values);
                return values;
            },
            "values"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "group",
            [](Messenger& self, const std::vector<int>& chosen) { return self.group(chosen); },
            "chosen"_a, nb::call_guard<nb::gil_scoped_release>(), nb::keep_alive<0, 1>());
}

nb::bytes new_id() {
    const nccl::UniqueId id = ranks::new_nccl_id();
    return nb::bytes(id.data(), id.size());
}

// The messenger shares the connection, and keeps it.
std::unique_ptr<Messenger> join(const std::shared_ptr<NcclConnection>& self, const nb::bytes& id,
                                int rank, int size) {
    nccl::UniqueId known{};
    if (id.size() != known.size()) throw nb::value_error("an id of NCCL has 128 bytes");
    std::memcpy(known.data(), id.data(), known.size());
    const nb::gil_scoped_release joining;
    self->join(known, rank, size);
    return std::make_unique<ranks::NcclMessenger>(self);
}

void bind_nccl(nb::module_& m) {
    m.def("nccl_unique_id", &new_id);
    nb::class_<NcclConnection>(m, "NcclConnection")
        .def(nb::new_([](int gpu, double seconds) {
                 return std::make_shared<NcclConnection>(gpu, seconds);
             }),
             "gpu"_a, "seconds"_a)
        .def("join", &join, "id"_a, "rank"_a, "size"_a)
        .def("leave", &NcclConnection::leave, nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &NcclConnection::stop)
        .def_prop_ro("ended", &NcclConnection::ended)
        .def_prop_ro("stage", [](NcclConnection& self) { return self.stage().text(); });
}

}  // namespace

void bind_ranks(nb::module_& m) {
    nb::exception<ranks::MessengerError>(m, "MessengerError", PyExc_RuntimeError);
    nb::class_<PlacedMemory>(m, "PlacedMemory")
        .def(nb::init<const Memory&, std::size_t, const Machine&>(), "memory"_a, "bytes"_a,
             "machine"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("bytes", &PlacedMemory::bytes)
        .def("read", &read)
        .def("write", &write, "data"_a);
    bind_messengers(m);
    bind_nccl(m);
    nb::class_<Bridge>(m, "Bridge")
        .def(
            "__init__", [](Bridge* self, const std::string& file) { new (self) Bridge(file); },
            "file"_a)
        .def_prop_ro("library", &Bridge::library)
        .def_prop_ro("cuda_stated", &Bridge::cuda_stated)
        .def_prop_ro("threads", &Bridge::threads)
        .def_prop_ro("stage", [](const Bridge& self) { return self.stage().text(); })
        .def("join", &Bridge::join, nb::call_guard<nb::gil_scoped_release>(),
             nb::keep_alive<0, 1>())
        .def("leave", &Bridge::leave, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace waywiser
