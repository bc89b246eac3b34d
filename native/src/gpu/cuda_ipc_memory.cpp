#include "cuda_ipc_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cuda_call.hpp"
#include "host/child.hpp"
#include "owner.hpp"

namespace waywiser::gpu::cuda {
namespace {

constexpr const char* kCall = "cudaIpcOpenMemHandle";
// Starting a runtime takes seconds on a machine with many GPUs.
constexpr std::chrono::seconds kPatience{60};

[[noreturn]] void fail(const std::string& why) { throw Error(Failure::other, kCall, 0, why); }

// The processes that own memory for this one: one per device, started on demand and kept, since
// starting one is slow.
class Owners {
public:
    // Never destroyed: memory may outlive main(). At a normal exit it waits for the owner
    // processes.
    static Owners& instance() {
        static Owners& all = *new Owners();
        return all;
    }

    OwnerAnswer ask(int device, const OwnerRequest& request) {
        const std::lock_guard lock(mutex_);
        if (ended_) fail("the process is ending");
        auto& owner = running_[device];
        try {
            if (!owner) owner = start(device);
            owner->write({reinterpret_cast<const char*>(&request), sizeof request});
            const std::string bytes = owner->read(sizeof(OwnerAnswer), kPatience);
            OwnerAnswer answer;
            std::memcpy(&answer, bytes.data(), sizeof answer);
            return answer;
        } catch (const std::runtime_error& error) {
            owner.reset();  // the next request starts another
            fail(error.what());
        }
    }

private:
    Owners() {
        std::atexit([] { instance().end(); });
    }

    static std::unique_ptr<host::Child> start(int device) {
        const auto program = host::find_program(kOwnerProgram);
        if (!program) {
            throw std::runtime_error(std::string(kOwnerProgram) +
                                     " is missing next to the library: install waywiser again");
        }
        return std::make_unique<host::Child>(*program,
                                             std::vector<std::string>{gpu::device(device).uuid});
    }

    void end() {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        running_.clear();
    }

    std::mutex mutex_;
    bool ended_ = false;
    std::map<int, std::unique_ptr<host::Child>> running_;
};

// The owner of opened memory.
struct Foreign {
    int device = 0;
    std::uint64_t address = 0;  // in its owner
    ForeignHandle handle{};
};

struct Opened {
    std::mutex mutex;
    std::map<std::byte*, Foreign> memory;
};

Opened& opened() {
    static Opened& all = *new Opened();
    return all;
}

void give_back(const Foreign& memory) noexcept {
    try {
        Owners::instance().ask(memory.device, {.free = memory.address});
    } catch (const Error&) {  // the owner has died, and its memory is freed
    }
}

// On the current device.
cudaError_t open(const ForeignHandle& from, void*& data) {
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof handle == sizeof from);
    std::memcpy(&handle, from.data(), sizeof handle);
    return cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess);
}

}  // namespace

std::byte* open_foreign(int device, std::size_t bytes) {
    const OwnerAnswer answer = Owners::instance().ask(device, {.allocate = bytes});
    if (answer.code != 0) {
        const std::string call = std::string(answer.call.data()) + " in " + kOwnerProgram;
        check(static_cast<cudaError_t>(answer.code), call.c_str());
    }
    Foreign memory{device, answer.address};
    static_assert(sizeof memory.handle == sizeof answer.handle);
    std::memcpy(memory.handle.data(), answer.handle.data(), sizeof memory.handle);
    void* data = nullptr;
    const cudaError_t code = open(memory.handle, data);
    if (code != cudaSuccess) give_back(memory);
    check(code, kCall);
    const std::lock_guard lock(opened().mutex);
    opened().memory.emplace(static_cast<std::byte*>(data), memory);
    return static_cast<std::byte*>(data);
}

void close_foreign(std::byte* data) noexcept {
    forget(cudaIpcCloseMemHandle(data));
    Foreign memory;
    {
        const std::lock_guard lock(opened().mutex);
        const auto found = opened().memory.find(data);
        if (found == opened().memory.end()) return;
        memory = found->second;
        opened().memory.erase(found);
    }
    give_back(memory);
}

}  // namespace waywiser::gpu::cuda

namespace waywiser::gpu {

ForeignHandle foreign_handle(const std::byte* data) {
    const std::lock_guard lock(cuda::opened().mutex);
    const auto found = cuda::opened().memory.find(const_cast<std::byte*>(data));
    if (found == cuda::opened().memory.end()) cuda::fail("this process has not opened the memory");
    return found->second.handle;
}

OpenedBuffer::OpenedBuffer(int device, const ForeignHandle& handle) {
    cuda::use(device);
    void* data = nullptr;
    cuda::check(cuda::open(handle, data), cuda::kCall);
    data_.reset(static_cast<std::byte*>(data));
}

void detail::OpenedDeleter::operator()(std::byte* data) const noexcept {
    cuda::forget(cudaIpcCloseMemHandle(data));
}

}  // namespace waywiser::gpu
