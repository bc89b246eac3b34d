#include "block_index.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "errors.hpp"

namespace nb = nanobind;

namespace waywiser::python {
namespace {

constexpr const char* kCall = "copy_blocks";
constexpr const char* kPassNumbers =
    "pass the numbers of the blocks, as a list or an integer array on the host";

[[noreturn]] void reject(Failure kind, const std::string& what, const std::string& remedy) {
    raise(kind, {.what = what, .where = kCall, .remedy = remedy});
}

template <class Integer>
BlockIndex read_entries(const Operand& operand) {
    BlockIndex index;
    const auto count = static_cast<std::size_t>(operand.shape[0]);
    const bool aligned = reinterpret_cast<std::uintptr_t>(operand.data) % alignof(Integer) == 0;
    if (std::is_same_v<Integer, std::int64_t> && operand.contiguous && aligned) {
        index.entries = {reinterpret_cast<const std::int64_t*>(operand.data), count};
        return index;
    }
    index.own.reserve(count);
    const std::byte* at = operand.data;
    for (std::size_t i = 0; i < count; ++i) {
        Integer value{};
        std::memcpy(&value, at, sizeof value);
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): an index of 8 bits is a number.
        index.own.push_back(static_cast<std::int64_t>(value));
        at += operand.strides[0];
    }
    index.entries = index.own;
    return index;
}

BlockIndex read_array(const Operand& operand, const char* name) {
    if (operand.gpu != kHost) {
        reject(Failure::unsupported, std::string(name) + " is on a GPU", "pass it on the host");
    }
    if (operand.dimensions != 1) {
        reject(Failure::invalid_transfer,
               std::string(name) + " has " + std::to_string(operand.dimensions) +
                   " dimensions, not one",
               "pass a list of block numbers, or an array of one dimension");
    }
    const bool is_signed = operand.type.code == TypeCode::integer;
    const bool is_integer = is_signed || operand.type.code == TypeCode::unsigned_integer;
    if (is_integer && operand.type.lanes == 1) {
        switch (operand.item) {
            case 1:
                return is_signed ? read_entries<std::int8_t>(operand)
                                 : read_entries<std::uint8_t>(operand);
            case 2:
                return is_signed ? read_entries<std::int16_t>(operand)
                                 : read_entries<std::uint16_t>(operand);
            case 4:
                return is_signed ? read_entries<std::int32_t>(operand)
                                 : read_entries<std::uint32_t>(operand);
            case 8: return read_entries<std::int64_t>(operand);
            default: break;
        }
    }
    reject(Failure::invalid_operand,
           std::string(name) + " holds " + text(operand.type) +
               ", not integers of 8, 16, 32 or 64 bits",
           kPassNumbers);
}

bool is_sequence(nb::handle object) {
    return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) ||
           Py_TYPE(object.ptr()) == &PyRange_Type;
}

void require_numbers(nb::handle object, const char* name) {
    if (PyIndex_Check(object.ptr()) && !PyObject_HasAttrString(object.ptr(), "shape")) {
        reject(Failure::invalid_operand,
               std::string(name) + " is one number, not a list or an array of integers",
               "pass [n] for one block");
    }
    if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || object.is_none()) {
        reject(Failure::invalid_operand,
               std::string(name) + " is " + given(object) + ", not a list or an array of integers",
               kPassNumbers);
    }
}

BlockIndex index_of(nb::handle object, const char* name) {
    require_numbers(object, name);
    BlockIndex index;
    if (!is_sequence(object)) {
        Operand operand;
        Held held;
        read_operand(object, Role::source, std::nullopt, operand, held);
        index = read_array(operand, name);
        index.held = std::move(held);
        return index;
    }
    for (const nb::handle entry : object) {
        const nb::object number = nb::steal(PyNumber_Index(entry.ptr()));
        if (!number.is_valid() || PyBool_Check(entry.ptr())) {
            PyErr_Clear();
            reject(Failure::invalid_operand,
                   std::string(name) + "[" + std::to_string(index.own.size()) + "] is " +
                       given(entry) + ", not an integer",
                   kPassNumbers);
        }
        const long long value = PyLong_AsLongLong(number.ptr());
        if (value == -1 && PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            reject(Failure::invalid_transfer,
                   std::string(name) + "[" + std::to_string(index.own.size()) +
                       "] is a number that is no index of any array",
                   kPassNumbers);
        }
        index.own.push_back(value);
    }
    index.entries = index.own;
    return index;
}

// The bytes of a block, which must be contiguous.
std::size_t block_bytes(const Operand& operand, Role role) {
    if (operand.dimensions == 0) {
        reject(Failure::invalid_transfer,
               "the " + std::string(text(role)) + " has no dimension of blocks",
               "pass an array whose first dimension counts blocks");
    }
    if (operand.bytes == 0) return 0;
    auto expected = static_cast<std::int64_t>(operand.item);
    for (int i = operand.dimensions - 1; i > 0; --i) {
        const auto at = static_cast<std::size_t>(i);
        if (operand.shape[at] != 1 && operand.strides[at] != expected) {
            reject(Failure::unsupported,
                   "blocks of the " + std::string(text(role)) + " do not lie together",
                   "pass an array whose first dimension counts blocks that are contiguous");
        }
        expected *= operand.shape[at];
    }
    return static_cast<std::size_t>(expected);
}

void check_blocks(const Operand& destination, const Operand& source) {
    const auto same = [&] {
        if (destination.dimensions != source.dimensions) return false;
        for (int i = 1; i < source.dimensions; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (destination.shape[at] != source.shape[at]) return false;
        }
        return true;
    };
    if (destination.type != source.type || destination.item != source.item) {
        reject(Failure::invalid_operand,
               "the dtypes differ: " + text(source.type) + " to " + text(destination.type),
               remedy_for(source.type, source.item, destination.type, destination.item));
    }
    if (!same()) {
        reject(Failure::invalid_transfer,
               "the blocks differ: " + text(source) + " to " + text(destination),
               "all dimensions but the first have to be equal");
    }
}

void check_index(std::span<const std::int64_t> index, std::size_t blocks, const char* name) {
    const auto outside = [&](std::int64_t entry) {
        return static_cast<std::uint64_t>(entry) >= blocks;
    };
    const auto found = std::ranges::find_if(index, outside);
    if (found == index.end()) return;
    reject(Failure::invalid_transfer,
           std::string(name) + "[" + std::to_string(found - index.begin()) + "] is " +
               std::to_string(*found) + ", out of range for " + std::to_string(blocks) + " blocks",
           "blocks are counted from 0");
}

}  // namespace

BlockList blocks_of(const Operand& destination, const Operand& source, nb::handle to_index,
                    nb::handle from_index) {
    BlockList blocks{.to = destination.data, .from = source.data};
    blocks.block = block_bytes(destination, Role::destination);
    block_bytes(source, Role::source);
    check_blocks(destination, source);
    blocks.to_stride = destination.strides[0];
    blocks.from_stride = source.strides[0];
    blocks.to_blocks = static_cast<std::size_t>(destination.shape[0]);
    blocks.from_blocks = static_cast<std::size_t>(source.shape[0]);
    blocks.to_index = index_of(to_index, "dst_index");
    blocks.from_index = index_of(from_index, "src_index");
    const std::size_t count = blocks.count();
    if (count != blocks.from_index.entries.size()) {
        reject(Failure::invalid_transfer,
               "dst_index has " + std::to_string(count) + " entries, src_index " +
                   std::to_string(blocks.from_index.entries.size()),
               "give each destination block its source block");
    }
    if (blocks.block > 0 && count > kMostPieces) {
        reject(Failure::unsupported,
               std::to_string(count) + " blocks are more than " + std::to_string(kMostPieces),
               "split the call");
    }
    return blocks;
}

void check_indexes(const BlockList& blocks) {
    check_index(blocks.to_index.entries, blocks.to_blocks, "dst_index");
    check_index(blocks.from_index.entries, blocks.from_blocks, "src_index");
}

PieceList pieces_of(const BlockList& blocks) {
    check_indexes(blocks);
    PieceList pieces;
    if (blocks.block == 0) return pieces;
    pieces.make_room(blocks.count());
    for (std::size_t i = 0; i < blocks.count(); ++i) {
        const PieceView one = blocks.at(i);
        pieces.add(static_cast<std::byte*>(one.to), static_cast<const std::byte*>(one.from),
                   one.bytes);
    }
    return pieces;
}

}  // namespace waywiser::python
