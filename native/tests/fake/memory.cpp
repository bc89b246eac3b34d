// Memory of the fake: host memory, registered as ranges.
#include <algorithm>
#include <memory>
#include <new>

#include "context.hpp"
#include "foreign.hpp"
#include "handles.hpp"
#include "managed.hpp"
#include "many_bytes.hpp"
#include "ranges.hpp"

namespace waywiser::gpu {
namespace {

using fake::Context;
using fake::Point;
using fake::Ranges;
using fake::Side;

constexpr std::align_val_t kAlignment{512};

// More than any test needs; allocators of sanitizers abort for sizes that others reject.
constexpr std::size_t kMostBytes = std::size_t{1} << 38;

// New memory contains old data: nobody may rely on zeros. Only the start of larger buffers is
// filled, since filling all would take longer than the tests.
constexpr std::size_t kSoiledBytes = std::size_t{1} << 20;

[[noreturn]] void out_of_memory(const char* call) {
    constexpr int kOutOfMemory = 2;
    throw Error(Failure::out_of_memory, call, kOutOfMemory, "cudaErrorMemoryAllocation");
}

void pass_allocation(const char* call) {
    Context& context = Context::instance();
    const fake::Effects effects = context.pass(Point::alloc, call);
    context.hang(effects);
    if (effects.lost) context.lose();
}

struct Free {
    void operator()(std::byte* data) const noexcept { ::operator delete(data, kAlignment); }
};

std::byte* allocate(std::size_t bytes, Side side, const char* call) {
    pass_allocation(call);
    if (bytes > kMostBytes) out_of_memory(call);
    std::unique_ptr<std::byte, Free> data(static_cast<std::byte*>(
        ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow)));
    if (!data) out_of_memory(call);
    test::fill_bytes(data.get(), 0xA5, std::min(bytes, kSoiledBytes));
    Ranges::instance().add(data.get(), bytes, side, call);
    return data.release();
}

std::byte* allocate_foreign(int device, std::size_t bytes, const char* call) {
    pass_allocation(call);
    std::byte* const data = fake::make_foreign(bytes, device);
    if (data == nullptr) out_of_memory(call);
    test::fill_bytes(data, 0xA5, std::min(bytes, kSoiledBytes));
    return data;
}

void release_foreign(std::byte* data, int device) noexcept {
    fake::wait_device(device);
    fake::free_foreign(data);
}

// Freeing and unpinning wait for all running work, so they hang behind a closed gate.
void release(std::byte* data, int device) noexcept {
    fake::wait_device(device);
    Ranges::instance().remove(data);
    Free{}(data);
}

struct UseOfDevice {
    const char* call;
    const char* missing;  // its name in the setting `without`
    std::atomic<std::size_t>& living;
};

UseOfDevice use_of_device(DeviceUse use) {
    fake::Living& now = fake::living();
    switch (use) {
        case DeviceUse::plain: break;
        case DeviceUse::pool: return {"cudaMallocAsync", "pool", now.pool_buffers};
        case DeviceUse::mapped: return {"cuMemCreate", "vmm", now.mapped_buffers};
        case DeviceUse::foreign: return {"cudaIpcOpenMemHandle", "ipc", now.foreign_buffers};
    }
    return {"cudaMalloc", "", now.device_buffers};
}

std::byte* allocate_device(int device, std::size_t bytes, DeviceUse use) {
    constexpr int kNotSupported = 801;
    const auto [call, missing, living] = use_of_device(use);
    if (Context::instance().options()->without.contains(missing)) {
        throw Error(Failure::other, call, kNotSupported, "cudaErrorNotSupported");
    }
    if (bytes > free_bytes(device)) out_of_memory(call);
    if (use == DeviceUse::foreign) return allocate_foreign(device, bytes, call);
    return allocate(bytes, {fake::MemoryType::device, device}, call);
}

}  // namespace

void detail::DeviceDeleter::operator()(std::byte* data) const noexcept {
    Context::current() = device;  // like cudaSetDevice() before cudaFree()
    use == DeviceUse::foreign ? release_foreign(data, device) : release(data, device);
    --use_of_device(use).living;
}

void detail::ManagedDeleter::operator()(std::byte* data) const noexcept {
    fake::Managed::instance().remove(data);
    release(data, -1);
    --fake::living().managed_buffers;
}

void detail::HostDeleter::operator()(std::byte* data) const noexcept {
    release(data, -1);
    --fake::living().host_buffers;
}

void detail::RegistrationDeleter::operator()(std::byte* data) const noexcept {
    fake::wait_device(-1);
    Ranges::instance().remove(data);
    --fake::living().registrations;
}

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes, DeviceUse use)
    : bytes_(bytes), data_(nullptr, {.device = device, .use = use, .bytes = bytes}) {
    data_.reset(allocate_device(device, bytes, use));
    ++use_of_device(use).living;
}

ManagedBuffer::ManagedBuffer(std::size_t bytes, int device) : bytes_(bytes) {
    Context::instance().enter("cudaMallocManaged", device);
    data_.reset(allocate(bytes, {fake::MemoryType::managed}, "cudaMallocManaged"));
    fake::Managed::instance().add(data_.get(), bytes);
    ++fake::living().managed_buffers;
}

std::byte* allocate_async(std::size_t bytes, const Stream& stream) {
    std::byte* const data = allocate_device(stream.device(), bytes, DeviceUse::pool);
    ++fake::living().async_allocations;
    return data;
}

void free_async(std::byte* data, const Stream& stream) {
    constexpr const char* kCall = "cudaFreeAsync";
    Context::instance().check(kCall);
    Context::instance().count(Point::call, kCall);
    if (!Ranges::instance().side(data, 1, kCall).on_device()) {
        fake::reject_value(kCall);
    }
    fake::thread_of(stream).enqueue([data] {
        Ranges::instance().remove(data);
        Free{}(data);
        --fake::living().async_allocations;
    });
}

HostBuffer::HostBuffer(std::size_t bytes, HostUse, int device) : bytes_(bytes) {
    constexpr std::size_t kPage = 4096;
    Context::instance().enter("cudaHostAlloc", device);
    data_.reset(allocate(bytes, {fake::MemoryType::page_locked}, "cudaHostAlloc"));
    ++fake::living().host_buffers;
    // Locked pages exist, and are on the node of the allocating thread.
    for (std::size_t at = kSoiledBytes; at < bytes; at += kPage) data_.get()[at] = std::byte{0xA5};
}

Registration::Registration(std::byte* data, std::size_t bytes, int device) {
    Context::instance().enter("cudaHostRegister", device);
    pass_allocation("cudaHostRegister");
    Ranges::instance().add(data, bytes, {fake::MemoryType::page_locked}, "cudaHostRegister");
    data_.reset(data);
    ++fake::living().registrations;
}

std::byte* device_address(std::byte* host, int device) {
    constexpr const char* kCall = "cudaHostGetDevicePointer";
    Context::instance().enter(kCall, device);
    if (Ranges::instance().side(host, 1, kCall).type != fake::MemoryType::page_locked) {
        fake::reject_value(kCall);
    }
    return host;
}

}  // namespace waywiser::gpu
