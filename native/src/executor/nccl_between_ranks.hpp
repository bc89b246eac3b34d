// Messages and collectives of NCCL between ranks: processes that have one GPU each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/nccl_collective.hpp"
#include "ranks/messenger.hpp"
#include "waywiser/executor.hpp"

namespace waywiser::nccl {

// For a transfer with ranks at its ends. Null if the ranks of the machine can do it.
std::optional<std::string> ranks_unsupported_reason(const Transfer& transfer,
                                                    const Machine& machine, bool sums_floats);

// A message: half a round trip, or messages in one direction and an answer.
enum class MessageTest { round_trip, one_direction };
std::unique_ptr<Execution> prepare_message(MessageTest test, std::size_t bytes, Side side,
                                           gpu::Stream& lane, ranks::Messenger& pair);

// The share of a rank in a collective of all ranks of its connection.
std::unique_ptr<Execution> prepare_share(Collective collective, Type type, std::size_t bytes,
                                         gpu::Stream& lane, ranks::Messenger& group);

}  // namespace waywiser::nccl
