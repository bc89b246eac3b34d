// The gpu seam: the only door to a GPU runtime. cuda_* implements it on the CUDA runtime,
// none.cpp on nothing, and the tests' fake on host memory with threads of its own.
// Handles are RAII and move-only; every failure is a gpu::Error that says call, code and place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace waywiser::gpu {

enum class Failure {
    other,          // refused, but the context lives on
    out_of_memory,  // of the device, or of memory that can be pinned
    sticky,         // the context is lost: only a fresh process can go on
    unavailable,    // no driver, no device, or a driver too old
};

class Error : public std::runtime_error {
public:
    Error(Failure kind, const std::string& call, int code, const std::string& name,
          std::source_location where = std::source_location::current())
        : std::runtime_error(call + " failed: " + name + " (" + std::to_string(code) + ")"),
          kind_(kind),
          call_(call),
          code_(code),
          name_(name),
          where_(where) {}
    [[nodiscard]] Failure kind() const { return kind_; }
    [[nodiscard]] const std::string& call() const { return call_; }
    [[nodiscard]] int code() const { return code_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const std::source_location& where() const { return where_; }

private:
    Failure kind_;
    std::string call_;
    int code_;
    std::string name_;
    std::source_location where_;
};

// --- devices -------------------------------------------------------------------------------

struct Device {
    int index = 0;
    std::string name;
    std::string uuid;  // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", as NVML writes it
    std::string pci;   // "0000:1b:00.0"
    int compute_major = 0;
    int compute_minor = 0;
    int multiprocessors = 0;
    std::size_t memory_bytes = 0;
    std::size_t l2_bytes = 0;
    bool pageable_access = false;
    bool concurrent_managed = false;
    bool memory_pools = false;  // allocate_async, DeviceUse::pool
    bool vmm = false;           // DeviceUse::mapped
    bool ipc = false;           // DeviceUse::foreign
    bool host_native_atomics =
        false;  // its system-scope atomics into host memory are the link's own
};

std::string backend();             // "cuda", "none" or "fake"
std::string runtime_version();     // of the runtime this was built with: "13.0"; "" for none
std::string driver_version();      // what the installed driver supports: "13.0"; "" for none
std::string unavailable_reason();  // "" when devices can be used; else one line with the remedy
int device_count();                // 0 where unavailable; never throws
Device device(int index);
bool can_access_peer(int from, int to);
std::size_t free_bytes(int device);
void synchronize_device(int device);

// --- streams and events --------------------------------------------------------------------

namespace detail {
struct StreamDeleter {
    bool owned = true;
    void operator()(void* handle) const noexcept;
};
struct EventDeleter {
    void operator()(void* handle) const noexcept;
};
}  // namespace detail

// A stream that does not synchronise with the default stream, or a caller's.
class Stream {
public:
    explicit Stream(int device);
    // A stream that somebody else owns: the runtime's handle, nullptr for the legacy default
    // stream of the device.
    Stream(int device, void* callers)
        : device_(device), handle_(callers, detail::StreamDeleter{.owned = false}) {}
    void synchronize() const;
    [[nodiscard]] bool done() const;
    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] void* handle() const { return handle_.get(); }

private:
    int device_;
    std::unique_ptr<void, detail::StreamDeleter> handle_;
};

enum class EventUse { timing, ordering };

class Event {
public:
    explicit Event(int device, EventUse use = EventUse::timing);
    void record(const Stream& stream);
    void synchronize() const;
    [[nodiscard]] bool done() const;
    [[nodiscard]] void* handle() const { return handle_.get(); }

private:
    std::unique_ptr<void, detail::EventDeleter> handle_;
};

void wait(const Stream& stream, const Event& event);
// Seconds between two recorded, completed timing events of one device.
double seconds_between(const Event& start, const Event& stop);

// --- what belongs to a caller ----------------------------------------------------------------

enum class PointerKind { pageable, pinned, device, managed };

// What the runtime knows of an address: `start` and `bytes` are the allocation or the registration
// that it lies in; nothing of pageable memory.
struct PointerInfo {
    PointerKind kind = PointerKind::pageable;
    int device = -1;  // of device memory
    std::byte* start = nullptr;
    std::size_t bytes = 0;
};
// Makes no context. Throws Error.
PointerInfo pointer_info(const void* data);

struct StreamInfo {
    int device = -1;
    bool primary = true;  // of the device's primary context, the only one that this seam uses
    bool capturing = false;
};
// A default stream belongs to the device that is current in the calling thread; where none is, to
// `otherwise`. Throws Error where the handle is not a stream.
StreamInfo stream_info(void* stream, int otherwise);
// Whether the stream is being captured, or cannot be asked because another one is.
bool capturing(void* stream) noexcept;

// The devices that have a primary context in this process. Makes none.
std::vector<int> active_devices();

// Whether the calling thread has a current context, or that of a device.
bool has_context() noexcept;
bool has_context_of(int device) noexcept;
// Whether all that is in a caller's stream is done. Throws Error.
bool is_idle(void* stream);
// cudaMemcpyAsync on a caller's stream, in the context that is current: no device is selected.
// False where the runtime refuses it as invalid, as it does across two registrations. Throws Error.
bool try_copy_on(void* destination, const void* source, std::size_t bytes, void* stream);

// Keeps what the calling thread has: its current context is restored at the end of the scope, and
// until then its calls do not disturb streams that other threads capture.
class CallerState {
public:
    CallerState();
    ~CallerState();
    CallerState(const CallerState&) = delete;
    CallerState& operator=(const CallerState&) = delete;

private:
    // Every implementation keeps what it needs of these.
    [[maybe_unused]] void* context_ = nullptr;
    [[maybe_unused]] int capture_mode_ = 0;
    [[maybe_unused]] bool saved_ = false;
};
// The second half of it for a thread of the library, for good.
void relax_capture();

// --- memory --------------------------------------------------------------------------------

// plain: cudaMalloc. pool: cudaMallocAsync from the device's default pool. mapped: cuMemCreate,
// an address range and a mapping ("virtual memory management"). foreign: another process allocated
// it and this one opened its handle (cudaIpcOpenMemHandle). Where the process has peer access
// enabled between devices, or enables it later, it holds for all of them.
enum class DeviceUse { plain, pool, mapped, foreign };

namespace detail {
struct DeviceDeleter {
    int device = 0;
    DeviceUse use = DeviceUse::plain;
    std::size_t bytes = 0;
    void operator()(std::byte* data) const noexcept;
};
struct ManagedDeleter {
    void operator()(std::byte* data) const noexcept;
};
struct HostDeleter {
    void operator()(std::byte* data) const noexcept;
};
struct RegistrationDeleter {
    void operator()(std::byte* data) const noexcept;
};
}  // namespace detail

class DeviceBuffer {
public:
    explicit DeviceBuffer(int device, std::size_t bytes, DeviceUse use = DeviceUse::plain);
    [[nodiscard]] std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_;
    std::unique_ptr<std::byte, detail::DeviceDeleter> data_;
};

enum class HostUse { portable, write_combined };

// What belongs to no device in particular is still got in the context of one. It is named, since a
// runtime that is not told makes a context on its first device, which may not be ours to use.
class HostBuffer {  // cudaHostAlloc, portable and mapped into every device
public:
    HostBuffer(std::size_t bytes, HostUse use, int device);
    [[nodiscard]] std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_;
    std::unique_ptr<std::byte, detail::HostDeleter> data_;
};

// Where managed memory can be: on a device, or on the host's NUMA node (-1: on any).
struct Location {
    int device = -1;  // -1: on the host
    int node = -1;
    bool operator==(const Location&) const = default;
};

class ManagedBuffer {  // cudaMallocManaged, attached to all devices
public:
    ManagedBuffer(std::size_t bytes, int device);
    [[nodiscard]] std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_;
    std::unique_ptr<std::byte, detail::ManagedDeleter> data_;
};

enum class Advice { read_mostly, not_read_mostly, preferred_location, accessed_by };
void advise(std::byte* data, std::size_t bytes, Advice advice, Location location);
// Moves managed memory; ordered by the stream, whose device is one of the two sides.
void prefetch_async(std::byte* data, std::size_t bytes, Location to, const Stream& stream);

// Stream-ordered memory of the stream's device, from the device's default pool.
std::byte* allocate_async(std::size_t bytes, const Stream& stream);
void free_async(std::byte* data, const Stream& stream);

class Registration {  // cudaHostRegister of memory that somebody else owns, portable and mapped
public:
    Registration(std::byte* data, std::size_t bytes, int device);

private:
    std::unique_ptr<std::byte, detail::RegistrationDeleter> data_;
};

// Where a kernel of the device finds page-locked host memory: on most systems at the address that
// the CPU uses, but not on all.
std::byte* device_address(std::byte* host, int device);

// Direct access of `from` to the memory of `to`; a property of the process, on or off for good.
void enable_peer_access(int from, int to);

// --- copies --------------------------------------------------------------------------------

// The runtime finds out what the pointers are. Asynchronous only where both sides allow it.
void copy_async(void* destination, const void* source, std::size_t bytes, const Stream& stream);
void copy_peer_async(void* destination, int destination_device, const void* source,
                     int source_device, std::size_t bytes, const Stream& stream);
// Returns when the bytes have arrived, as the synchronous runtime call promises.
void copy_sync(void* destination, const void* source, std::size_t bytes, int device);
// A box of width bytes x height rows x depth planes; a side has `pitch` bytes from row to row and
// `rows` rows from plane to plane.
struct Box {
    std::size_t width = 0, height = 0, depth = 0;
};
struct Pitched {
    void* data = nullptr;
    std::size_t pitch = 0, rows = 0;
};
void copy_box_async(Pitched destination, Pitched source, Box box, const Stream& stream);
void copy_box_peer_async(Pitched destination, int destination_device, Pitched source,
                         int source_device, Box box, const Stream& stream);
// One plane of it: cudaMemcpy2DAsync.
void copy_rows_async(Pitched destination, Pitched source, std::size_t width, std::size_t height,
                     const Stream& stream);

// Whether runtime and driver have the batched copy (cudaMemcpyBatchAsync, since 12.8).
bool has_batch();
// `stream_order`: sources are read when the stream gets there; else at any time from the call on.
// Copies runs of `bytes` each, or each of its own size, in one call. Not on a stream that is
// capturing, and not on the legacy default stream.
void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources, std::size_t bytes, bool stream_order,
                      const Stream& stream);
void copy_batch_async(const std::vector<void*>& destinations,
                      const std::vector<const void*>& sources,
                      const std::vector<std::size_t>& sizes, bool stream_order,
                      const Stream& stream);

void fill_async(void* destination, unsigned char value, std::size_t bytes, const Stream& stream);

// --- graphs --------------------------------------------------------------------------------

namespace detail {
struct GraphDeleter {
    void operator()(void* handle) const noexcept;
};
struct ExecutableGraphDeleter {
    void operator()(void* handle) const noexcept;
};
}  // namespace detail

// What `enqueue` puts on the stream, recorded instead of run.
class Graph {
public:
    Graph(const Stream& stream, const std::function<void()>& enqueue);
    [[nodiscard]] void* handle() const { return handle_.get(); }

private:
    std::unique_ptr<void, detail::GraphDeleter> handle_;
};

class ExecutableGraph {
public:
    explicit ExecutableGraph(const Graph& graph);
    void launch(const Stream& stream) const;

private:
    std::unique_ptr<void, detail::ExecutableGraphDeleter> handle_;
};

// --- the gate ------------------------------------------------------------------------------

// Holds back streams of any devices until opened, so that work enqueued behind it starts together.
class Gate {
public:
    explicit Gate(int device);  // in whose context its own memory is
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    void close(const Stream& stream);        // everything enqueued on the stream from now on waits
    void open() noexcept;                    // from any thread, any number of times
    [[nodiscard]] std::string kind() const;  // "stream-wait-value" or "spin-kernel"

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waywiser::gpu
