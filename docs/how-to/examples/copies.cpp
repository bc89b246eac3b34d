// Copies with libwaywiser_transfer. `stream` is a cudaStream_t; no CUDA header is needed.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <system_error>
#include <vector>

#include "waywiser/transfer.hpp"

// As cudaMemcpyAsync: ordered in the stream, and the host memory may be reused on return.
void upload(waywiser::Context& context, void* device, const std::vector<float>& host,
            void* stream) {
    context.copy(device, host.data(), host.size() * sizeof(float), stream);
}

// Returns at once. The copy starts after what is in the stream now.
waywiser::TransferHandle download(waywiser::Context& context, std::vector<float>& host,
                                  const void* device, void* stream) {
    return context.copy_async(host.data(), device, host.size() * sizeof(float), stream);
}

// Reads a file into any memory: of the host, pinned or not, or of a GPU.
std::size_t load(waywiser::Context& context, const char* path, void* to, std::size_t bytes,
                 void* stream) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) throw std::system_error(errno, std::generic_category(), path);
    std::size_t arrived = 0;
    try {
        arrived = context.read(file, 0, to, bytes, stream);
    } catch (const waywiser::TransferError& error) {
        std::fprintf(stderr, "%s (%zu bytes had arrived)\n", error.what(), error.moved());
        close(file);
        throw;
    }
    close(file);
    return arrived;
}
