// A caller's source or destination: its memory, shape and strides.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtype.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

constexpr int kMostDimensions = 64;
constexpr int kHost = -1;
constexpr int kSomeGpu = -2;  // device memory of a GPU that only the runtime knows

enum class Role { source, destination };

// Objects that own the memory of operands, kept until the host has seen the end of the transfer.
using Held = std::vector<nanobind::object>;

// Keeps objects for ever: a GPU that does not answer may use their memory.
void keep_for_ever(Held& held);
// The same if that is what a call has returned.
inline void keep_if_in_use(waywiser_status status, Held& held) {
    if (status == WAYWISER_IN_USE) keep_for_ever(held);
}

// The same for both sides of a copy.
struct HeldOperands {
    Held to;
    Held from;

    HeldOperands() {
        constexpr std::size_t kUsual = 2;  // an array and the export of its buffer
        to.reserve(kUsual);
        from.reserve(kUsual);
    }
    // Merges both.
    Held all() && {
        for (nanobind::object& object : from) to.push_back(std::move(object));
        from.clear();
        return std::move(to);
    }
};

struct Operand {
    std::byte* data = nullptr;
    int gpu = kHost;
    ElementType type;
    std::size_t item = 0;   // bytes of an element
    std::size_t bytes = 0;  // of all elements
    bool read_only = false;
    bool contiguous = true;  // in C order, without gaps
    bool is_torch = false;
    int dimensions = 0;
    std::array<std::int64_t, kMostDimensions> shape;  // only the first `dimensions` are valid
    std::array<std::int64_t, kMostDimensions>
        strides;  // in bytes; only the first `dimensions` are valid
    // The stream in which its library orders work on this memory, as in transfer.h; unset if the
    // library names none.
    std::optional<void*> stream;

    Operand() {}  // NOLINT: leaves shape and strides alone
};

// Reads `object`, and appends the owners of its memory to `held`. `stream` is the stream that the
// caller asked for. Raises InvalidOperand if it is no array, UnsupportedTransfer for tensors
// without plain memory, InvalidTransfer for a destination that cannot be written.
void read_operand(nanobind::handle object, Role role, const std::optional<void*>& stream,
                  Operand& operand, Held& held);

// Reports a change of the destination's elements to its library, if that counts changes (torch).
void note_write(nanobind::handle object, const Operand& operand);

// "float32[4, 5] on gpu:0", for messages.
std::string text(const Operand& operand);

inline const char* text(Role role) { return role == Role::source ? "source" : "destination"; }

// --- for the files that each implement one kind of operand

// Sets bytes and contiguous from item, shape and strides. Raises InvalidOperand for a negative
// length, and for sizes that exceed any memory.
void complete(Operand& operand, Role role);
// A stride in bytes. Raises InvalidOperand if it exceeds any memory.
std::int64_t stride_in_bytes(std::int64_t elements, std::size_t item, Role role);
// Sets strides of C order from item and shape. Call complete() afterwards.
void set_c_strides(Operand& operand);
// Raises unless there are at most kMostDimensions.
void check_dimensions(std::int64_t dimensions, Role role);

// The torch.Tensor type if the program has imported torch and the object is a tensor.
bool is_torch_tensor(nanobind::handle object);
void read_torch(nanobind::handle object, Role role, Operand& operand);
void note_torch_write(nanobind::handle object);
// The current stream of torch on a GPU; unset if torch is not loaded.
std::optional<void*> torch_stream(int gpu);

// False if the object does not have the protocol.
bool read_cuda_array(nanobind::handle object, Role role, Operand& operand);
bool read_buffer(nanobind::handle object, Role role, Operand& operand, Held& held);
bool read_dlpack(nanobind::handle object, Role role, const std::optional<void*>& stream,
                 Operand& operand, Held& held);

// Whether it is a numpy array, and of no subclass.
bool is_numpy_array(nanobind::handle object);

// The result of str().
std::string printed(nanobind::handle object);
// The attribute, or an empty object if there is none.
nanobind::object attribute(nanobind::handle object, const char* name);

}  // namespace waywiser::python
