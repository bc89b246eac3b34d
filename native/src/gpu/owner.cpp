// waywiser-owner GPU-UUID: allocates GPU memory for another process. It keeps the memory until a
// request frees it, or its input ends, which also happens when the other process dies.
#include "owner.hpp"

#include <cuda_runtime.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "cuda_uuid.hpp"

namespace {

using waywiser::gpu::OwnerAnswer;
using waywiser::gpu::OwnerRequest;
using waywiser::gpu::cuda::uuid_text;

class Failed : public std::runtime_error {
public:
    Failed(cudaError_t code, const char* call) : std::runtime_error(call), code_(code) {}
    [[nodiscard]] cudaError_t code() const { return code_; }

private:
    cudaError_t code_;
};

void check(cudaError_t code, const char* call) {
    if (code != cudaSuccess) throw Failed(code, call);
}

// Indices may differ between processes; UUIDs do not. A runtime that sees one GPU starts faster.
// UUIDs of GPU slices (MIG) are used as they are.
int device_named(const std::string& uuid) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible == nullptr || std::string(visible).find("MIG-") == std::string::npos) {
        setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
    }
    int count = 0;
    check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    for (int device = 0; device < count; ++device) {
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        if (uuid_text(properties.uuid) == uuid) return device;
    }
    throw Failed(cudaErrorInvalidDevice, "cudaGetDeviceProperties");
}

void start(const std::string& uuid) {
    static bool started = false;
    if (!started) check(cudaSetDevice(device_named(uuid)), "cudaSetDevice");
    started = true;
}

void allocate(std::size_t bytes, OwnerAnswer& answer) {
    // Small allocations share a block, and a handle opens the whole block.
    constexpr std::size_t kBlock = std::size_t{2} << 20;
    void* data = nullptr;
    check(cudaMalloc(&data, (bytes + kBlock - 1) / kBlock * kBlock), "cudaMalloc");
    cudaIpcMemHandle_t handle{};
    const cudaError_t code = cudaIpcGetMemHandle(&handle, data);
    if (code != cudaSuccess) cudaFree(data);
    check(code, "cudaIpcGetMemHandle");
    static_assert(sizeof handle == sizeof answer.handle);
    std::memcpy(answer.handle.data(), &handle, sizeof handle);
    answer.address = reinterpret_cast<std::uintptr_t>(data);
}

OwnerAnswer answer_to(const OwnerRequest& request, const std::string& uuid) {
    OwnerAnswer answer;
    try {
        start(uuid);
        if (request.free != 0) {
            check(cudaFree(reinterpret_cast<void*>(request.free)), "cudaFree");
        }
        if (request.allocate != 0) allocate(request.allocate, answer);
    } catch (const Failed& failed) {
        answer.code = failed.code();
        std::strncpy(answer.call.data(), failed.what(), answer.call.size() - 1);
    }
    return answer;
}

// Exits even while a runtime call hangs. A parent-death signal would already come when the thread
// ends that started this process.
void leave_at_end_of_input() {
    pollfd input{STDIN_FILENO, 0, 0};
    while (poll(&input, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
}

bool read_request(OwnerRequest& request) {
    auto* to = reinterpret_cast<char*>(&request);
    for (std::size_t got = 0; got < sizeof request;) {
        const ssize_t more = read(STDIN_FILENO, to + got, sizeof request - got);
        if (more <= 0) return false;
        got += static_cast<std::size_t>(more);
    }
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fputs("waywiser-owner is started by waywiser: GPU-UUID\n", stderr);
        return 2;
    }
    std::signal(SIGINT, SIG_IGN);  // from the terminal: it is for the parent process
    try {
        std::thread(leave_at_end_of_input).detach();
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "waywiser-owner: a thread cannot be started: %s\n", error.what());
        return 1;
    }
    for (OwnerRequest request; read_request(request);) {
        const OwnerAnswer answer = answer_to(request, arguments[1]);
        if (write(STDOUT_FILENO, &answer, sizeof answer) != sizeof answer) break;
    }
    _exit(0);
}
