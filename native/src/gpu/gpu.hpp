// The gpu seam: the only interface to a GPU runtime. cuda_* implements it with the CUDA runtime,
// none.cpp without any, and the tests' fake with host memory and threads. Handles are RAII and
// move-only. Every failure is a gpu::Error with call, code and place.
#pragma once

#include <array>
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
    other,          // the call failed, but the context can still be used
    out_of_memory,  // of the device, or of memory that can be pinned
    sticky,         // the context is lost: only a new process can continue
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
    bool memory_pools = false;         // allocate_async, DeviceUse::pool
    bool vmm = false;                  // DeviceUse::mapped
    bool ipc = false;                  // DeviceUse::foreign
    bool host_native_atomics = false;  // the link supports its system-scope atomics to host memory
};

std::string backend();             // "cuda", "none" or "fake"
std::string runtime_version();     // of the runtime in this build: "13.0"; "" for none
std::string driver_version();      // supported by the installed driver: "13.0"; "" for none
std::string architectures();       // of GPUs that this build has code for: "75-real 90-virtual"
std::string unavailable_reason();  // "" if devices can be used; else one line with the remedy
int device_count();                // 0 if unavailable; never throws
Device device(int index);
bool can_access_peer(int from, int to);
std::size_t free_bytes(int device);
void synchronize_device(int device);

// The unavailable_reason() of a child of a process that has used a GPU.
inline constexpr const char* kForkedReason =
    "CUDA does not start in a process that was forked from one that has used it: start the process "
    "with the spawn method";

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

// non_blocking: not ordered with the legacy default stream. prioritized: the same, and its kernels
// start before those that wait in other streams. blocking: the legacy stream starts its work after
// the work in it, and it starts its own after the work in the legacy stream (cudaStreamCreate).
enum class StreamUse { non_blocking, prioritized, blocking };

// A stream of the library, or a caller's.
class Stream {
public:
    explicit Stream(int device, StreamUse use = StreamUse::non_blocking);
    // A stream that the caller owns: the runtime's handle, nullptr for the legacy default stream of
    // the device.
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

// --- the caller's objects -------------------------------------------------------------------

enum class PointerKind { pageable, pinned, device, managed };

// The runtime's knowledge of an address: `start` and `bytes` are its allocation or registration;
// unset for pageable memory.
struct PointerInfo {
    PointerKind kind = PointerKind::pageable;
    int device = -1;  // for device memory
    std::byte* start = nullptr;
    std::size_t bytes = 0;
};
// Creates no context. Throws Error.
PointerInfo pointer_info(const void* data);

struct StreamInfo {
    int device = -1;
    bool primary = true;  // of the device's primary context, the only one that this seam uses
    bool capturing = false;
};
// A default stream belongs to the device that is current in the calling thread, or to `otherwise`
// if none is. Throws Error if the handle is not a stream.
StreamInfo stream_info(void* stream, int otherwise);
// Whether the stream is being captured, or cannot be queried because another one is.
bool capturing(void* stream) noexcept;
// Whether the legacy default stream can hold back the stream, although it has no work of its own:
// true for default streams, for all streams but non-blocking ones, and if it is unknown.
bool is_blocking(void* stream) noexcept;

// The devices that have a primary context in this process. Creates none.
std::vector<int> active_devices();

// Whether the calling thread has a current context, or that of a device.
bool has_context() noexcept;
bool has_context_of(int device) noexcept;
// Whether all work in a caller's stream is done. Throws Error.
bool is_idle(void* stream);
// cudaMemcpyAsync on a caller's stream, in the current context: no device is selected. False if the
// runtime rejects it as invalid, as it does across two registrations. Throws Error.
bool try_copy_on(void* destination, const void* source, std::size_t bytes, void* stream);

// Protects the calling thread's state: restores its current context at the end of the scope, and
// until then its calls do not disturb streams that other threads capture.
class CallerState {
public:
    CallerState();
    ~CallerState();
    CallerState(const CallerState&) = delete;
    CallerState& operator=(const CallerState&) = delete;

private:
    // Each implementation uses what it needs of these.
    [[maybe_unused]] void* context_ = nullptr;
    [[maybe_unused]] int capture_mode_ = 0;
    [[maybe_unused]] bool saved_ = false;
};
// Permanently protects other threads' captures from the calls of a thread of the library.
void relax_capture();

// --- memory --------------------------------------------------------------------------------

// plain: cudaMalloc. pool: cudaMallocAsync from the device's default pool. mapped: cuMemCreate, an
// address range and a mapping ("virtual memory management"). foreign: another process allocated it
// and this one opened its handle (cudaIpcOpenMemHandle). Peer access between devices, enabled
// before or later, covers all of them.
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

// A handle with which other processes open memory of DeviceUse::foreign.
using ForeignHandle = std::array<std::byte, 64>;
// Returns the handle of such memory, by its first byte. Throws Error.
ForeignHandle foreign_handle(const std::byte* data);

namespace detail {
struct OpenedDeleter {
    void operator()(std::byte* data) const noexcept;
};
}  // namespace detail

// Foreign memory that another process has, which must have it as long as this one.
class OpenedBuffer {
public:
    OpenedBuffer(int device, const ForeignHandle& handle);
    [[nodiscard]] std::byte* data() const { return data_.get(); }

private:
    std::unique_ptr<std::byte, detail::OpenedDeleter> data_;
};

enum class HostUse { portable, write_combined };

// Memory that belongs to no device is still allocated in the context of one. It is named, since the
// runtime would otherwise create a context on its first device, which may not be ours to use.
class HostBuffer {  // cudaHostAlloc, portable and mapped into every device
public:
    HostBuffer(std::size_t bytes, HostUse use, int device);
    [[nodiscard]] std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_;
    std::unique_ptr<std::byte, detail::HostDeleter> data_;
};

// Places of managed memory: a device, or a NUMA node of the host (-1: any).
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
// Migrates managed memory, ordered in the stream, whose device is one of the two sides.
void prefetch_async(std::byte* data, std::size_t bytes, Location to, const Stream& stream);

// Stream-ordered memory of the stream's device, from the device's default pool.
std::byte* allocate_async(std::size_t bytes, const Stream& stream);
void free_async(std::byte* data, const Stream& stream);

class Registration {  // cudaHostRegister of memory that it does not own, portable and mapped
public:
    Registration(std::byte* data, std::size_t bytes, int device);

private:
    std::unique_ptr<std::byte, detail::RegistrationDeleter> data_;
};

// The address of page-locked host memory for kernels of the device: on most systems, but not all,
// the address that CPUs use.
std::byte* device_address(std::byte* host, int device);

// Direct access of `from` to the memory of `to`; permanent for the process.
void enable_peer_access(int from, int to);

// --- copies --------------------------------------------------------------------------------

// The runtime detects the kinds of the pointers. Asynchronous only if both sides allow it.
void copy_async(void* destination, const void* source, std::size_t bytes, const Stream& stream);
void copy_peer_async(void* destination, int destination_device, const void* source,
                     int source_device, std::size_t bytes, const Stream& stream);
// Returns when the bytes have arrived, as the synchronous runtime call does.
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
// One plane of a box: cudaMemcpy2DAsync.
void copy_rows_async(Pitched destination, Pitched source, std::size_t width, std::size_t height,
                     const Stream& stream);

// Whether runtime and driver support the batched copy (cudaMemcpyBatchAsync, since 12.8).
bool has_batch();
// `stream_order`: sources are read in stream order; else at any time after the call. Copies runs of
// `bytes` each, or of individual sizes, in one call. Not supported on a capturing stream or the
// legacy default stream.
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

// Records the work that `enqueue` puts on the stream, instead of running it.
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
    explicit Gate(int device);  // its own memory is in this device's context
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    void close(const Stream& stream);        // later work on the stream waits
    void open() noexcept;                    // from any thread, any number of times
    [[nodiscard]] std::string kind() const;  // "stream-wait-value" or "spin-kernel"

private:
    struct State;
    std::unique_ptr<State> state_;
};

// --- occupation ----------------------------------------------------------------------------

// A kernel that occupies all multiprocessors of a device: what ends meanwhile was done without
// them. No copy and no call is needed to end it, and it ends by itself.
class Occupation {
public:
    explicit Occupation(int device);  // on a stream of its own
    ~Occupation();                    // waits for the kernel
    Occupation(const Occupation&) = delete;
    Occupation& operator=(const Occupation&) = delete;

    // Starts the kernel, which ends when released, and after these seconds in any case. Waits for
    // the end of an earlier one.
    void start(double seconds);
    void release() noexcept;  // from any thread, any number of times
    // Whether the kernel runs on every multiprocessor and leaves no place for another one. From any
    // thread; it calls no function of the runtime.
    [[nodiscard]] bool complete() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waywiser::gpu
