// A KV-cache connector: blocks of 64 layers are offloaded to pinned memory in one transfer.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "waywiser/transfer.hpp"

constexpr std::size_t kLayers = 64, kBlocks = 128, kBlock = std::size_t{16} << 10;

// The same blocks of all layers. `stream` is that of the engine, whose kernels fill the cache.
waywiser::TransferHandle offload(waywiser::Context& context, void* host,
                                 const std::vector<void*>& layers,
                                 const std::vector<std::int64_t>& blocks,
                                 waywiser::StreamRef stream) {
    std::vector<std::int64_t> slots(blocks.size());
    std::iota(slots.begin(), slots.end(), 0);
    std::vector<waywiser::TransferOperation> operations;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        std::byte* const to = static_cast<std::byte*>(host) + i * blocks.size() * kBlock;
        operations.push_back(waywiser::TransferOperation::blocks(
            {to, kBlock, blocks.size()}, {layers[i], kBlock, kBlocks}, kBlock, slots, blocks));
    }
    return context.submit(operations, stream);  // the arrays of indexes may go now
}

int main() {
    waywiser::Context context;
    // An engine has its layers on a GPU. Host memory lets this program run anywhere.
    std::vector<std::vector<char>> cache(kLayers, std::vector<char>(kBlocks * kBlock));
    std::vector<void*> layers;
    for (std::size_t i = 0; i < kLayers; ++i) {
        std::memset(cache[i].data(), static_cast<int>(i), cache[i].size());
        layers.push_back(cache[i].data());
    }
    const std::vector<std::int64_t> blocks{7, 3, 100, 42};
    waywiser::PinnedBuffer host(kLayers * blocks.size() * kBlock);

    const auto transfer = offload(context, host.data(), layers, blocks, {});
    std::printf("offloaded %zu bytes\n", transfer.result());
    for (std::size_t i = 0; i < kLayers; ++i) {
        if (static_cast<std::size_t>(host.data()[i * blocks.size() * kBlock]) != i) std::abort();
    }

    // The request ended: what has not begun is not moved. The memory is in use until the end.
    const auto next = offload(context, host.data(), layers, blocks, {});
    next.cancel();
    const std::size_t ended = waywiser::wait_any({&next, 1});
    const waywiser_transfer_info info = next.query();
    std::printf("transfer %zu: %s after %zu of %zu bytes\n", ended,
                info.status == WAYWISER_CANCELLED ? "cancelled" : "complete", info.moved,
                info.bytes);
    return info.status == WAYWISER_OK || info.status == WAYWISER_CANCELLED ? 0 : 1;
}
