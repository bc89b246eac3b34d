// The gpu seam for builds without CUDA: no device, and a clear reason why.
#include "gpu.hpp"
#include "launch.hpp"

namespace waywiser::gpu {
namespace {

constexpr const char* kReason =
    "this build of Waywiser is for the host alone: 'make WAYWISER_CUDA=ON survey' builds it for "
    "GPUs, on a machine without one too";

[[noreturn]] void throw_unavailable(const char* call) {
    throw Error(Failure::unavailable, call, 0, kReason);
}

}  // namespace

std::string backend() { return "none"; }
std::string runtime_version() { return {}; }
std::string driver_version() { return {}; }
std::string architectures() { return {}; }
std::string unavailable_reason() { return kReason; }
int device_count() { return 0; }
Device device(int) { throw_unavailable("device"); }
bool can_access_peer(int, int) { return false; }
std::size_t free_bytes(int) { throw_unavailable("free_bytes"); }
void synchronize_device(int) { throw_unavailable("synchronize_device"); }

void detail::StreamDeleter::operator()(void*) const noexcept {}
void detail::EventDeleter::operator()(void*) const noexcept {}
void detail::DeviceDeleter::operator()(std::byte*) const noexcept {}
void detail::OpenedDeleter::operator()(std::byte*) const noexcept {}
void detail::ManagedDeleter::operator()(std::byte*) const noexcept {}
void detail::GraphDeleter::operator()(void*) const noexcept {}
void detail::ExecutableGraphDeleter::operator()(void*) const noexcept {}
void detail::HostDeleter::operator()(std::byte*) const noexcept {}
void detail::RegistrationDeleter::operator()(std::byte*) const noexcept {}

Stream::Stream(int device, StreamUse) : device_(device) { throw_unavailable("Stream"); }
void Stream::synchronize() const { throw_unavailable("Stream::synchronize"); }
bool Stream::done() const { throw_unavailable("Stream::done"); }

Event::Event(int, EventUse) { throw_unavailable("Event"); }
void Event::record(const Stream&) { throw_unavailable("Event::record"); }
void Event::synchronize() const { throw_unavailable("Event::synchronize"); }
bool Event::done() const { throw_unavailable("Event::done"); }
void wait(const Stream&, const Event&) { throw_unavailable("wait"); }
double seconds_between(const Event&, const Event&) { throw_unavailable("seconds_between"); }

PointerInfo pointer_info(const void*) { return {}; }
StreamInfo stream_info(void*, int) { throw_unavailable("stream_info"); }
bool capturing(void*) noexcept { return false; }
bool is_blocking(void*) noexcept { return true; }
std::vector<int> active_devices() { return {}; }
bool has_context() noexcept { return false; }
bool has_context_of(int) noexcept { return false; }
bool is_idle(void*) { throw_unavailable("is_idle"); }
bool try_copy_on(void*, const void*, std::size_t, void*) { throw_unavailable("try_copy_on"); }
CallerState::CallerState() = default;
// Not defaulted: with CUDA it restores a context.
CallerState::~CallerState() { saved_ = false; }
void relax_capture() {}

DeviceBuffer::DeviceBuffer(int, std::size_t bytes, DeviceUse) : bytes_(bytes) {
    throw_unavailable("DeviceBuffer");
}
ForeignHandle foreign_handle(const std::byte*) { throw_unavailable("foreign_handle"); }
OpenedBuffer::OpenedBuffer(int, const ForeignHandle&) { throw_unavailable("OpenedBuffer"); }
HostBuffer::HostBuffer(std::size_t bytes, HostUse, int) : bytes_(bytes) {
    throw_unavailable("HostBuffer");
}
ManagedBuffer::ManagedBuffer(std::size_t bytes, int) : bytes_(bytes) {
    throw_unavailable("ManagedBuffer");
}
void advise(std::byte*, std::size_t, Advice, Location) { throw_unavailable("advise"); }
void prefetch_async(std::byte*, std::size_t, Location, const Stream&) {
    throw_unavailable("prefetch_async");
}
std::byte* allocate_async(std::size_t, const Stream&) { throw_unavailable("allocate_async"); }
void free_async(std::byte*, const Stream&) { throw_unavailable("free_async"); }
Registration::Registration(std::byte*, std::size_t, int) { throw_unavailable("Registration"); }
std::byte* device_address(std::byte*, int) { throw_unavailable("device_address"); }
void enable_peer_access(int, int) { throw_unavailable("enable_peer_access"); }

void copy_async(void*, const void*, std::size_t, const Stream&) { throw_unavailable("copy_async"); }
void copy_peer_async(void*, int, const void*, int, std::size_t, const Stream&) {
    throw_unavailable("copy_peer_async");
}
void copy_sync(void*, const void*, std::size_t, int) { throw_unavailable("copy_sync"); }
void copy_box_async(Pitched, Pitched, Box, const Stream&) { throw_unavailable("copy_box_async"); }
void copy_box_peer_async(Pitched, int, Pitched, int, Box, const Stream&) {
    throw_unavailable("copy_box_peer_async");
}
void copy_rows_async(Pitched, Pitched, std::size_t, std::size_t, const Stream&) {
    throw_unavailable("copy_rows_async");
}
bool has_batch() { return false; }
void copy_batch_async(const std::vector<void*>&, const std::vector<const void*>&, std::size_t, bool,
                      const Stream&) {
    throw_unavailable("copy_batch_async");
}
void copy_batch_async(const std::vector<void*>&, const std::vector<const void*>&,
                      const std::vector<std::size_t>&, bool, const Stream&) {
    throw_unavailable("copy_batch_async");
}
void fill_async(void*, unsigned char, std::size_t, const Stream&) {
    throw_unavailable("fill_async");
}

Graph::Graph(const Stream&, const std::function<void()>&) { throw_unavailable("Graph"); }
ExecutableGraph::ExecutableGraph(const Graph&) { throw_unavailable("ExecutableGraph"); }
void ExecutableGraph::launch(const Stream&) const { throw_unavailable("ExecutableGraph::launch"); }

struct Gate::State {};
Gate::Gate(int) { throw_unavailable("Gate"); }
Gate::~Gate() = default;
void Gate::close(const Stream&) {}
void Gate::open() noexcept {}
std::string Gate::kind() const { return {}; }

struct Occupation::State {};
Occupation::Occupation(int) { throw_unavailable("Occupation"); }
Occupation::~Occupation() = default;
void Occupation::start(double) {}
void Occupation::release() noexcept {}
bool Occupation::complete() const { return false; }

// By value as the seam has it. NOLINTNEXTLINE(performance-unnecessary-value-param)
void detail::run_on_host(const Stream&, std::function<void()>) { throw_unavailable("launch"); }

}  // namespace waywiser::gpu
