#include "foreign.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "context.hpp"
#include "gpu/gpu.hpp"
#include "ranges.hpp"

namespace waywiser::fake {
namespace {

constexpr const char* kOpen = "cudaIpcOpenMemHandle";

// What a handle contains.
struct Named {
    pid_t process = 0;
    int file = -1;
    std::size_t bytes = 0;
    std::byte* data = nullptr;  // in that process
};

// Memory in this process: its own, or that of others which it has opened.
struct Mapped {
    Named named;
    int uses = 1;
};
struct Known {
    std::mutex mutex;
    std::map<const std::byte*, Mapped> memory;
};

Known& known() {
    static Known& all = *new Known();
    return all;
}

std::byte* map(int file, std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

void add(std::byte* data, const Named& named, int device) {
    {
        const std::scoped_lock lock(known().mutex);
        known().memory[data] = {named};
    }
    Ranges::instance().add(data, named.bytes, {MemoryType::device, device}, kOpen);
}

}  // namespace

std::byte* make_foreign(std::size_t bytes, int device) {
    bytes = std::max<std::size_t>(bytes, 1);
    const int file = memfd_create("waywiser-fake-gpu", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    std::byte* const data =
        ftruncate(file, static_cast<off_t>(bytes)) == 0 ? map(file, bytes) : nullptr;
    if (data == nullptr) {
        close(file);
        return nullptr;
    }
    add(data, {getpid(), file, bytes, data}, device);
    return data;
}

void free_foreign(std::byte* data) noexcept {
    const std::scoped_lock lock(known().mutex);
    const auto found = known().memory.find(data);
    if (--found->second.uses > 0) return;
    Ranges::instance().remove(data);
    munmap(data, found->second.named.bytes);
    if (found->second.named.process == getpid()) close(found->second.named.file);
    known().memory.erase(found);
}

}  // namespace waywiser::fake

namespace waywiser::gpu {

ForeignHandle foreign_handle(const std::byte* data) {
    const std::scoped_lock lock(fake::known().mutex);
    const auto found = fake::known().memory.find(data);
    if (found == fake::known().memory.end()) fake::reject_value("cudaIpcGetMemHandle");
    const fake::Named& named = found->second.named;
    ForeignHandle handle{};
    static_assert(sizeof named <= sizeof handle);
    std::memcpy(handle.data(), &named, sizeof named);
    return handle;
}

// The process that has the memory gets the address itself.
OpenedBuffer::OpenedBuffer(int device, const ForeignHandle& handle) {
    fake::Context::instance().enter(fake::kOpen, device);
    fake::Named named;
    std::memcpy(&named, handle.data(), sizeof named);
    if (named.process == getpid()) {
        const std::scoped_lock lock(fake::known().mutex);
        ++fake::known().memory.at(named.data).uses;
        ++fake::living().foreign_buffers;
        data_.reset(named.data);
        return;
    }
    const std::string path =
        "/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    std::byte* const data = file < 0 ? nullptr : fake::map(file, named.bytes);
    if (file >= 0) close(file);
    if (data == nullptr) fake::reject_value(fake::kOpen);
    fake::add(data, named, device);
    ++fake::living().foreign_buffers;
    data_.reset(data);
}

void detail::OpenedDeleter::operator()(std::byte* data) const noexcept {
    fake::free_foreign(data);
    --fake::living().foreign_buffers;
}

}  // namespace waywiser::gpu
