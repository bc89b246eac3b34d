#include "trace/gpu_facts.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace waywiser::trace {
namespace {

// GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
std::string uuid_text(const std::array<unsigned char, 16>& bytes) {
    std::string text = "GPU-";
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::array<char, 4> two{};
        std::snprintf(two.data(), two.size(), "%02x", static_cast<unsigned>(bytes[i]));
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += two.data();
    }
    return text;
}

}  // namespace

GpuFacts describe_gpu(int number) {
    GpuFacts facts;
    void* const driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (driver == nullptr) return facts;
    const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
    const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
    const auto uuid = reinterpret_cast<int (*)(void*, int)>(dlsym(driver, "cuDeviceGetUuid"));
    const auto pci =
        reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetPCIBusId"));
    int device = 0;
    if (get == nullptr || get(&device, number) != 0) return facts;
    std::array<char, 256> text{};
    const int size = static_cast<int>(text.size());
    if (name != nullptr && name(text.data(), size, device) == 0) facts.name = text.data();
    if (pci != nullptr && pci(text.data(), size, device) == 0) facts.pci = text.data();
    std::array<unsigned char, 16> bytes{};
    if (uuid != nullptr && uuid(bytes.data(), device) == 0) facts.uuid = uuid_text(bytes);
    return facts;
}

}  // namespace waywiser::trace
