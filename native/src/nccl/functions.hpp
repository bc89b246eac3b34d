// The few functions of NCCL that are used, as its documentation states them: its header is not
// needed to build, and the library is loaded when it is used.
#pragma once

#include <array>
#include <climits>
#include <cstddef>

namespace waywiser::nccl {

extern "C" {
struct ncclComm;
}
using Communicator = ncclComm*;
using Result = int;
constexpr Result kSuccess = 0, kRemoteError = 6, kInProgress = 7;

// Values of ncclDataType_t and ncclRedOp_t.
enum class Type : int { int8 = 0, int32 = 2, float32 = 7 };
enum class Reduction : int { sum = 0 };

// ncclUniqueId.
using UniqueId = std::array<char, 128>;
// How ncclConfig_t begins; the library fills in what follows.
struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 0;  // that of the library
    int blocking = 0;
    int cga_cluster_size = INT_MIN;  // as the library chooses
};

struct Functions {
    Result (*get_version)(int*);
    const char* (*get_error_string)(Result);
    Result (*comm_init_all)(Communicator*, int, const int*);
    Result (*comm_abort)(Communicator);
    Result (*comm_destroy)(Communicator);
    Result (*group_start)();
    Result (*group_end)();
    Result (*send)(const void*, std::size_t, Type, int, Communicator, void*);
    Result (*recv)(void*, std::size_t, Type, int, Communicator, void*);
    Result (*all_reduce)(const void*, void*, std::size_t, Type, Reduction, Communicator, void*);
    Result (*all_gather)(const void*, void*, std::size_t, Type, Communicator, void*);
    Result (*reduce_scatter)(const void*, void*, std::size_t, Type, Reduction, Communicator, void*);
    Result (*broadcast)(const void*, void*, std::size_t, Type, int, Communicator, void*);
    // Since 2.14; nullptr before. The id is passed by value.
    Result (*get_unique_id)(UniqueId*);
    Result (*comm_init_rank_config)(Communicator*, int, UniqueId, int, const Config*);
    Result (*comm_get_async_error)(Communicator, Result*);
    Result (*comm_finalize)(Communicator);
    // Since 2.28; nullptr before.
    Result (*all_to_all)(const void*, void*, std::size_t, Type, Communicator, void*);
};

}  // namespace waywiser::nccl
