// waywiser-owner GPU-UUID BYTES: allocates memory of a GPU for somebody else. It writes an
// OwnerAnswer and keeps the memory until its input ends, which it does when the one who asked lets
// go or dies, however that happens.
#include "owner.hpp"

#include <cuda_runtime.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "cuda_uuid.hpp"

namespace {

using waywiser::gpu::OwnerAnswer;
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

// Indices may differ between processes; names do not. A runtime that sees one GPU starts fast;
// slices of a GPU have names of another kind and stay as they are.
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

OwnerAnswer allocate(const std::string& uuid, std::size_t bytes) {
    OwnerAnswer answer;
    try {
        check(cudaSetDevice(device_named(uuid)), "cudaSetDevice");
        // Small allocations share a block, and a handle opens the block.
        constexpr std::size_t kBlock = std::size_t{2} << 20;
        void* data = nullptr;
        check(cudaMalloc(&data, (bytes + kBlock - 1) / kBlock * kBlock), "cudaMalloc");
        cudaIpcMemHandle_t handle{};
        check(cudaIpcGetMemHandle(&handle, data), "cudaIpcGetMemHandle");
        static_assert(sizeof handle == sizeof answer.handle);
        std::memcpy(answer.handle.data(), &handle, sizeof handle);
    } catch (const Failed& failed) {
        answer.code = failed.code();
        std::strncpy(answer.call.data(), failed.what(), answer.call.size() - 1);
    }
    return answer;
}

// A signal upon the parent's death would come when only the thread ended that started us.
void leave_at_end_of_input() {
    char ignored = 0;
    while (read(STDIN_FILENO, &ignored, 1) > 0) {
    }
    _exit(0);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fputs("waywiser-owner is started by waywiser: GPU-UUID BYTES\n", stderr);
        return 2;
    }
    std::signal(SIGINT, SIG_IGN);  // of the terminal: it is for those who asked
    std::thread watch(leave_at_end_of_input);
    const OwnerAnswer answer = allocate(arguments[1], std::strtoull(arguments[2], nullptr, 10));
    if (write(STDOUT_FILENO, &answer, sizeof answer) != sizeof answer) _exit(1);
    watch.join();
}
