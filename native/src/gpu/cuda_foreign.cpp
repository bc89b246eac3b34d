#include "cuda_foreign.hpp"

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cuda_call.hpp"
#include "host/child.hpp"
#include "owner.hpp"

namespace waywiser::gpu::cuda {
namespace {

constexpr const char* kCall = "cudaIpcOpenMemHandle";
// A runtime that starts on a machine with many GPUs takes seconds.
constexpr std::chrono::seconds kPatience{60};

struct Owners {
    std::mutex mutex;
    std::map<std::byte*, std::unique_ptr<host::Child>> of;
};

// Never destroyed: memory may outlive main(). Owners leave when the process does.
Owners& owners() {
    static Owners& all = *new Owners();
    return all;
}

[[noreturn]] void fail(const std::string& why) { throw Error(Failure::other, kCall, 0, why); }

std::unique_ptr<host::Child> start(int device, std::size_t bytes) {
    const auto program = host::program_beside(kOwnerProgram);
    if (!program) {
        fail(std::string(kOwnerProgram) + " is missing beside the library: install waywiser again");
    }
    try {
        return std::make_unique<host::Child>(
            *program, std::vector<std::string>{gpu::device(device).uuid, std::to_string(bytes)});
    } catch (const std::runtime_error& error) {
        fail(error.what());
    }
}

OwnerAnswer answer_of(host::Child& owner) {
    OwnerAnswer answer;
    try {
        const std::string bytes = owner.read(sizeof answer, kPatience);
        std::memcpy(&answer, bytes.data(), sizeof answer);
    } catch (const std::runtime_error& error) {
        fail(error.what());
    }
    if (answer.code != 0) {
        check(static_cast<cudaError_t>(answer.code),
              (std::string(answer.call.data()) + " in " + kOwnerProgram).c_str());
    }
    return answer;
}

}  // namespace

std::byte* open_foreign(int device, std::size_t bytes) {
    auto owner = start(device, bytes);
    const OwnerAnswer answer = answer_of(*owner);
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, answer.handle.data(), sizeof handle);
    void* opened = nullptr;
    check(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess), kCall);
    auto* const data = static_cast<std::byte*>(opened);
    const std::lock_guard lock(owners().mutex);
    owners().of.emplace(data, std::move(owner));
    return data;
}

void close_foreign(std::byte* data) noexcept {
    forget(cudaIpcCloseMemHandle(data));
    std::unique_ptr<host::Child> owner;
    const std::lock_guard lock(owners().mutex);
    if (const auto found = owners().of.find(data); found != owners().of.end()) {
        owner = std::move(found->second);
        owners().of.erase(found);
    }
}

}  // namespace waywiser::gpu::cuda
