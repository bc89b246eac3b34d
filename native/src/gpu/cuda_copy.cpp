// Copies of all shapes, and fills.
#include <algorithm>

#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::raw;
using cuda::use;

void copy_async(void* destination, const void* source, std::size_t bytes, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, raw(stream)));
}

void copy_peer_async(void* destination, int destination_device, const void* source,
                     int source_device, std::size_t bytes, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemcpyPeerAsync(destination, destination_device, source, source_device, bytes,
                                      raw(stream)));
}

void copy_sync(void* destination, const void* source, std::size_t bytes, int device) {
    use(device);
    WAYWISER_CUDA(cudaMemcpy(destination, source, bytes, cudaMemcpyDefault));
    // The call may return while a DMA from pageable memory, or between devices, is still in
    // progress.
    WAYWISER_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
}

namespace {

cudaPitchedPtr pitched(const Pitched& side, const Box& box) {
    // With one plane the number of rows between two planes may be unset.
    const std::size_t rows = box.depth > 1 ? side.rows : std::max(side.rows, box.height);
    return make_cudaPitchedPtr(side.data, side.pitch, box.width, rows);
}

}  // namespace

void copy_box_async(Pitched destination, Pitched source, Box box, const Stream& stream) {
    use(stream.device());
    cudaMemcpy3DParms copy{};
    copy.srcPtr = pitched(source, box);
    copy.dstPtr = pitched(destination, box);
    copy.extent = make_cudaExtent(box.width, box.height, box.depth);
    copy.kind = cudaMemcpyDefault;
    WAYWISER_CUDA(cudaMemcpy3DAsync(&copy, raw(stream)));
}

void copy_box_peer_async(Pitched destination, int destination_device, Pitched source,
                         int source_device, Box box, const Stream& stream) {
    use(stream.device());
    cudaMemcpy3DPeerParms copy{};
    copy.srcPtr = pitched(source, box);
    copy.srcDevice = source_device;
    copy.dstPtr = pitched(destination, box);
    copy.dstDevice = destination_device;
    copy.extent = make_cudaExtent(box.width, box.height, box.depth);
    WAYWISER_CUDA(cudaMemcpy3DPeerAsync(&copy, raw(stream)));
}

void copy_rows_async(Pitched destination, Pitched source, std::size_t width, std::size_t height,
                     const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemcpy2DAsync(destination.data, destination.pitch, source.data, source.pitch,
                                    width, height, cudaMemcpyDefault, raw(stream)));
}

void fill_async(void* destination, unsigned char value, std::size_t bytes, const Stream& stream) {
    use(stream.device());
    WAYWISER_CUDA(cudaMemsetAsync(destination, value, bytes, raw(stream)));
}

}  // namespace waywiser::gpu
