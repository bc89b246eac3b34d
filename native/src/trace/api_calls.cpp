#include "trace/api_calls.hpp"

#include <array>

namespace waywiser::trace {
namespace {

using Host = ApiCall::Host;

constexpr ApiCall kDriverCalls[] = {
    {17, CallKind::Wait},                      // cuCtxSynchronize
    {38, CallKind::PinFree},                   // cuMemFreeHost
    {39, CallKind::PinAllocate},               // cuMemHostAlloc
    {121, CallKind::Wait},                     // cuEventSynchronize
    {126, CallKind::Wait},                     // cuStreamSynchronize
    {216, CallKind::Copy, true},               // cuMemsetD8Async
    {218, CallKind::Copy, true},               // cuMemsetD16Async
    {220, CallKind::Copy, true},               // cuMemsetD32Async
    {222, CallKind::Copy, true},               // cuMemsetD2D8Async
    {224, CallKind::Copy, true},               // cuMemsetD2D16Async
    {226, CallKind::Copy, true},               // cuMemsetD2D32Async
    {248, CallKind::Copy},                     // cuMemcpy_v2
    {249, CallKind::Copy},                     // cuMemsetD8_v2
    {250, CallKind::Copy},                     // cuMemsetD16_v2
    {251, CallKind::Copy},                     // cuMemsetD32_v2
    {252, CallKind::Copy},                     // cuMemsetD2D8_v2
    {253, CallKind::Copy},                     // cuMemsetD2D16_v2
    {254, CallKind::Copy},                     // cuMemsetD2D32_v2
    {271, CallKind::PinAllocate},              // cuMemHostAlloc_v2
    {276, CallKind::Copy, false, Host::From},  // cuMemcpyHtoD_v2
    {277, CallKind::Copy, true, Host::From},   // cuMemcpyHtoDAsync_v2
    {278, CallKind::Copy, false, Host::To},    // cuMemcpyDtoH_v2
    {279, CallKind::Copy, true, Host::To},     // cuMemcpyDtoHAsync_v2
    {280, CallKind::Copy, false, Host::None},  // cuMemcpyDtoD_v2
    {281, CallKind::Copy, true, Host::None},   // cuMemcpyDtoDAsync_v2
    {282, CallKind::Copy},                     // cuMemcpyAtoH_v2
    {283, CallKind::Copy, true},               // cuMemcpyAtoHAsync_v2
    {284, CallKind::Copy},                     // cuMemcpyAtoD_v2
    {285, CallKind::Copy},                     // cuMemcpyDtoA_v2
    {286, CallKind::Copy},                     // cuMemcpyAtoA_v2
    {287, CallKind::Copy},                     // cuMemcpy2D_v2
    {288, CallKind::Copy},                     // cuMemcpy2DUnaligned_v2
    {289, CallKind::Copy, true},               // cuMemcpy2DAsync_v2
    {290, CallKind::Copy},                     // cuMemcpy3D_v2
    {291, CallKind::Copy, true},               // cuMemcpy3DAsync_v2
    {292, CallKind::Copy},                     // cuMemcpyHtoA_v2
    {293, CallKind::Copy, true},               // cuMemcpyHtoAAsync_v2
    {294, CallKind::PinAllocate},              // cuMemAllocHost_v2
    {301, CallKind::PinRegister},              // cuMemHostRegister
    {302, CallKind::Unregister},               // cuMemHostUnregister
    {305, CallKind::Copy, false, Host::None},  // cuMemcpy
    {306, CallKind::Copy, true, Host::None},   // cuMemcpyAsync
    {318, CallKind::Copy},                     // cuMemcpyPeer
    {319, CallKind::Copy, true},               // cuMemcpyPeerAsync
    {320, CallKind::Copy},                     // cuMemcpy3DPeer
    {321, CallKind::Copy, true},               // cuMemcpy3DPeerAsync
    {379, CallKind::PinRegister},              // cuMemHostRegister_v2
    {397, CallKind::Copy, false, Host::From},  // cuMemcpyHtoD_v2_ptds
    {398, CallKind::Copy, false, Host::To},    // cuMemcpyDtoH_v2_ptds
    {399, CallKind::Copy, false, Host::None},  // cuMemcpyDtoD_v2_ptds
    {400, CallKind::Copy},                     // cuMemcpyDtoA_v2_ptds
    {401, CallKind::Copy},                     // cuMemcpyAtoD_v2_ptds
    {402, CallKind::Copy},                     // cuMemcpyHtoA_v2_ptds
    {403, CallKind::Copy},                     // cuMemcpyAtoH_v2_ptds
    {404, CallKind::Copy},                     // cuMemcpyAtoA_v2_ptds
    {405, CallKind::Copy},                     // cuMemcpy2D_v2_ptds
    {406, CallKind::Copy},                     // cuMemcpy2DUnaligned_v2_ptds
    {407, CallKind::Copy},                     // cuMemcpy3D_v2_ptds
    {408, CallKind::Copy, false, Host::None},  // cuMemcpy_ptds
    {409, CallKind::Copy},                     // cuMemcpyPeer_ptds
    {410, CallKind::Copy},                     // cuMemcpy3DPeer_ptds
    {411, CallKind::Copy},                     // cuMemsetD8_v2_ptds
    {412, CallKind::Copy},                     // cuMemsetD16_v2_ptds
    {413, CallKind::Copy},                     // cuMemsetD32_v2_ptds
    {414, CallKind::Copy},                     // cuMemsetD2D8_v2_ptds
    {415, CallKind::Copy},                     // cuMemsetD2D16_v2_ptds
    {416, CallKind::Copy},                     // cuMemsetD2D32_v2_ptds
    {418, CallKind::Copy, true, Host::None},   // cuMemcpyAsync_ptsz
    {419, CallKind::Copy, true},               // cuMemcpyHtoAAsync_v2_ptsz
    {420, CallKind::Copy, true},               // cuMemcpyAtoHAsync_v2_ptsz
    {421, CallKind::Copy, true, Host::From},   // cuMemcpyHtoDAsync_v2_ptsz
    {422, CallKind::Copy, true, Host::To},     // cuMemcpyDtoHAsync_v2_ptsz
    {423, CallKind::Copy, true, Host::None},   // cuMemcpyDtoDAsync_v2_ptsz
    {424, CallKind::Copy, true},               // cuMemcpy2DAsync_v2_ptsz
    {425, CallKind::Copy, true},               // cuMemcpy3DAsync_v2_ptsz
    {426, CallKind::Copy, true},               // cuMemcpyPeerAsync_ptsz
    {427, CallKind::Copy, true},               // cuMemcpy3DPeerAsync_ptsz
    {428, CallKind::Copy, true},               // cuMemsetD8Async_ptsz
    {429, CallKind::Copy, true},               // cuMemsetD16Async_ptsz
    {430, CallKind::Copy, true},               // cuMemsetD32Async_ptsz
    {431, CallKind::Copy, true},               // cuMemsetD2D8Async_ptsz
    {432, CallKind::Copy, true},               // cuMemsetD2D16Async_ptsz
    {433, CallKind::Copy, true},               // cuMemsetD2D32Async_ptsz
    {440, CallKind::Wait},                     // cuStreamSynchronize_ptsz
    {514, CallKind::Copy, true},               // cuGraphLaunch
    {515, CallKind::Copy, true},               // cuGraphLaunch_ptsz
    {776, CallKind::Copy, true},               // cuMemcpyBatchAsync
    {777, CallKind::Copy, true},               // cuMemcpyBatchAsync_ptsz
    {778, CallKind::Copy, true},               // cuMemcpy3DBatchAsync
    {779, CallKind::Copy, true},               // cuMemcpy3DBatchAsync_ptsz
    {796, CallKind::Copy, true},               // cuMemcpyBatchAsync_v2
    {797, CallKind::Copy, true},               // cuMemcpyBatchAsync_v2_ptsz
    {798, CallKind::Copy, true},               // cuMemcpy3DBatchAsync_v2
    {799, CallKind::Copy, true},               // cuMemcpy3DBatchAsync_v2_ptsz
    {800, CallKind::Wait},                     // cuCtxSynchronize_v2
    {837, CallKind::Copy, true},               // cuMemcpyWithAttributesAsync
    {838, CallKind::Copy, true},               // cuMemcpyWithAttributesAsync_ptsz
    {839, CallKind::Copy, true},               // cuMemcpy3DWithAttributesAsync
    {840, CallKind::Copy, true},               // cuMemcpy3DWithAttributesAsync_ptsz
};

constexpr ApiCall kRuntimeCalls[] = {
    {25, CallKind::PinAllocate},                 // cudaMallocHost_v3020
    {26, CallKind::PinFree},                     // cudaFreeHost_v3020
    {27, CallKind::PinAllocate},                 // cudaHostAlloc_v3020
    {31, CallKind::Copy, false, Host::ByKind},   // cudaMemcpy_v3020
    {32, CallKind::Copy},                        // cudaMemcpy2D_v3020
    {33, CallKind::Copy},                        // cudaMemcpyToArray_v3020
    {34, CallKind::Copy},                        // cudaMemcpy2DToArray_v3020
    {35, CallKind::Copy},                        // cudaMemcpyFromArray_v3020
    {36, CallKind::Copy},                        // cudaMemcpy2DFromArray_v3020
    {37, CallKind::Copy},                        // cudaMemcpyArrayToArray_v3020
    {38, CallKind::Copy},                        // cudaMemcpy2DArrayToArray_v3020
    {39, CallKind::Copy},                        // cudaMemcpyToSymbol_v3020
    {40, CallKind::Copy},                        // cudaMemcpyFromSymbol_v3020
    {41, CallKind::Copy, true, Host::ByKind},    // cudaMemcpyAsync_v3020
    {42, CallKind::Copy, true},                  // cudaMemcpyToArrayAsync_v3020
    {43, CallKind::Copy, true},                  // cudaMemcpyFromArrayAsync_v3020
    {44, CallKind::Copy, true},                  // cudaMemcpy2DAsync_v3020
    {45, CallKind::Copy, true},                  // cudaMemcpy2DToArrayAsync_v3020
    {46, CallKind::Copy, true},                  // cudaMemcpy2DFromArrayAsync_v3020
    {47, CallKind::Copy, true},                  // cudaMemcpyToSymbolAsync_v3020
    {48, CallKind::Copy, true},                  // cudaMemcpyFromSymbolAsync_v3020
    {49, CallKind::Copy},                        // cudaMemset_v3020
    {50, CallKind::Copy},                        // cudaMemset2D_v3020
    {51, CallKind::Copy, true},                  // cudaMemsetAsync_v3020
    {52, CallKind::Copy, true},                  // cudaMemset2DAsync_v3020
    {126, CallKind::Wait},                       // cudaThreadSynchronize_v3020
    {131, CallKind::Wait},                       // cudaStreamSynchronize_v3020
    {137, CallKind::Wait},                       // cudaEventSynchronize_v3020
    {142, CallKind::Copy},                       // cudaMemset3D_v3020
    {143, CallKind::Copy, true},                 // cudaMemset3DAsync_v3020
    {144, CallKind::Copy},                       // cudaMemcpy3D_v3020
    {145, CallKind::Copy, true},                 // cudaMemcpy3DAsync_v3020
    {152, CallKind::PinRegister},                // cudaHostRegister_v4000
    {153, CallKind::Unregister},                 // cudaHostUnregister_v4000
    {160, CallKind::Copy},                       // cudaMemcpyPeer_v4000
    {161, CallKind::Copy, true},                 // cudaMemcpyPeerAsync_v4000
    {162, CallKind::Copy},                       // cudaMemcpy3DPeer_v4000
    {163, CallKind::Copy, true},                 // cudaMemcpy3DPeerAsync_v4000
    {165, CallKind::Wait},                       // cudaDeviceSynchronize_v3020
    {215, CallKind::Copy, false, Host::ByKind},  // cudaMemcpy_ptds_v7000
    {216, CallKind::Copy},                       // cudaMemcpy2D_ptds_v7000
    {217, CallKind::Copy},                       // cudaMemcpyToArray_ptds_v7000
    {218, CallKind::Copy},                       // cudaMemcpy2DToArray_ptds_v7000
    {219, CallKind::Copy},                       // cudaMemcpyFromArray_ptds_v7000
    {220, CallKind::Copy},                       // cudaMemcpy2DFromArray_ptds_v7000
    {221, CallKind::Copy},                       // cudaMemcpyArrayToArray_ptds_v7000
    {222, CallKind::Copy},                       // cudaMemcpy2DArrayToArray_ptds_v7000
    {223, CallKind::Copy},                       // cudaMemcpyToSymbol_ptds_v7000
    {224, CallKind::Copy},                       // cudaMemcpyFromSymbol_ptds_v7000
    {225, CallKind::Copy, true, Host::ByKind},   // cudaMemcpyAsync_ptsz_v7000
    {226, CallKind::Copy, true},                 // cudaMemcpyToArrayAsync_ptsz_v7000
    {227, CallKind::Copy, true},                 // cudaMemcpyFromArrayAsync_ptsz_v7000
    {228, CallKind::Copy, true},                 // cudaMemcpy2DAsync_ptsz_v7000
    {229, CallKind::Copy, true},                 // cudaMemcpy2DToArrayAsync_ptsz_v7000
    {230, CallKind::Copy, true},                 // cudaMemcpy2DFromArrayAsync_ptsz_v7000
    {231, CallKind::Copy, true},                 // cudaMemcpyToSymbolAsync_ptsz_v7000
    {232, CallKind::Copy, true},                 // cudaMemcpyFromSymbolAsync_ptsz_v7000
    {233, CallKind::Copy},                       // cudaMemset_ptds_v7000
    {234, CallKind::Copy},                       // cudaMemset2D_ptds_v7000
    {235, CallKind::Copy, true},                 // cudaMemsetAsync_ptsz_v7000
    {236, CallKind::Copy, true},                 // cudaMemset2DAsync_ptsz_v7000
    {239, CallKind::Wait},                       // cudaStreamSynchronize_ptsz_v7000
    {243, CallKind::Copy},                       // cudaMemset3D_ptds_v7000
    {244, CallKind::Copy, true},                 // cudaMemset3DAsync_ptsz_v7000
    {245, CallKind::Copy},                       // cudaMemcpy3D_ptds_v7000
    {246, CallKind::Copy, true},                 // cudaMemcpy3DAsync_ptsz_v7000
    {249, CallKind::Copy},                       // cudaMemcpy3DPeer_ptds_v7000
    {250, CallKind::Copy, true},                 // cudaMemcpy3DPeerAsync_ptsz_v7000
    {311, CallKind::Copy, true},                 // cudaGraphLaunch_v10000
    {312, CallKind::Copy, true},                 // cudaGraphLaunch_ptsz_v10000
    {482, CallKind::Copy, true},                 // cudaMemcpyBatchAsync_v12080
    {483, CallKind::Copy, true},                 // cudaMemcpyBatchAsync_ptsz_v12080
    {484, CallKind::Copy, true},                 // cudaMemcpy3DBatchAsync_v12080
    {485, CallKind::Copy, true},                 // cudaMemcpy3DBatchAsync_ptsz_v12080
    {509, CallKind::Copy, true},                 // cudaMemcpyBatchAsync_v13000
    {510, CallKind::Copy, true},                 // cudaMemcpyBatchAsync_ptsz_v13000
    {511, CallKind::Copy, true},                 // cudaMemcpy3DBatchAsync_v13000
    {512, CallKind::Copy, true},                 // cudaMemcpy3DBatchAsync_ptsz_v13000
    {534, CallKind::Wait},                       // cudaExecutionCtxSynchronize_v13010
    {554, CallKind::Copy, true},                 // cudaMemcpyWithAttributesAsync_v13020
    {555, CallKind::Copy, true},                 // cudaMemcpyWithAttributesAsync_ptsz_v13020
    {556, CallKind::Copy, true},                 // cudaMemcpy3DWithAttributesAsync_v13020
    {557, CallKind::Copy, true},                 // cudaMemcpy3DWithAttributesAsync_ptsz_v13020
};

// Number of a call -> its place in the table, from 1.
using Index = std::array<std::uint8_t, 1024>;
static_assert(std::size(kDriverCalls) < 255 && std::size(kRuntimeCalls) < 255);

constexpr Index make_index(std::span<const ApiCall> calls) {
    Index index{};
    for (std::size_t i = 0; i < calls.size(); ++i)
        index[calls[i].id] = static_cast<std::uint8_t>(i + 1);
    return index;
}

constexpr Index kDriverIndex = make_index(kDriverCalls);
constexpr Index kRuntimeIndex = make_index(kRuntimeCalls);

struct LinearParameters {
    const void* to;
    const void* from;
    std::uint64_t bytes;
    std::int32_t kind;  // of the runtime's calls
};

}  // namespace

std::span<const ApiCall> driver_calls() { return kDriverCalls; }
std::span<const ApiCall> runtime_calls() { return kRuntimeCalls; }

const ApiCall* find_call(std::uint32_t domain, std::uint32_t id) {
    if (id >= kDriverIndex.size()) return nullptr;
    const bool driver = domain == cupti::kDriverApi;
    if (!driver && domain != cupti::kRuntimeApi) return nullptr;
    const std::uint8_t place = driver ? kDriverIndex[id] : kRuntimeIndex[id];
    if (place == 0) return nullptr;
    return driver ? &kDriverCalls[place - 1] : &kRuntimeCalls[place - 1];
}

HostRange host_range(const ApiCall& call, const void* parameters) {
    if (call.host == Host::Unknown || call.host == Host::None || parameters == nullptr) return {};
    const auto* const linear = static_cast<const LinearParameters*>(parameters);
    constexpr std::int32_t kToDevice = 1, kToHost = 2;
    Host host = call.host;
    if (host == Host::ByKind) {
        if (linear->kind != kToDevice && linear->kind != kToHost) return {};
        host = linear->kind == kToDevice ? Host::From : Host::To;
    }
    return {host == Host::From ? linear->from : linear->to, linear->bytes};
}

CopyAddresses copy_addresses(const ApiCall& call, const void* parameters) {
    if (call.host == Host::Unknown || parameters == nullptr) return {};
    const auto* const linear = static_cast<const LinearParameters*>(parameters);
    return {linear->to, linear->from};
}

std::uint64_t pinned_bytes(const void* parameters) {
    struct Parameters {
        const void* address;
        std::uint64_t bytes;
    };
    return parameters == nullptr ? 0 : static_cast<const Parameters*>(parameters)->bytes;
}

}  // namespace waywiser::trace
