// The name of a GPU, which is the same in all processes.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace waywiser::gpu::cuda {

inline std::string uuid_text(const cudaUUID_t& uuid) {
    static constexpr const char* kHex = "0123456789abcdef";
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += kHex[byte >> 4];
        text += kHex[byte & 15];
    }
    return text;
}

}  // namespace waywiser::gpu::cuda
