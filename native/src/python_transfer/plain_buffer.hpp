// Contiguous host memory of a usual operand, for calls that take less time than to read an operand
// in general: see operand.hpp.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace waywiser::python {

// The buffer of a numpy array, bytearray, bytes or memoryview, held until the end of this. Never
// raises: what it cannot take is left to read_operand(). Needs the GIL, its end too.
class PlainBuffer {
public:
    // What stands for the type of the elements: dtypes are looked up faster than formats.
    enum class TypeBy { format, dtype };

    PlainBuffer(nanobind::handle object, TypeBy by);
    ~PlainBuffer();
    PlainBuffer(const PlainBuffer&) = delete;
    PlainBuffer& operator=(const PlainBuffer&) = delete;

    // Whether it has a buffer that is contiguous in C order and holds no Python objects.
    explicit operator bool() const { return usable_; }
    [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(buffer_.buf); }
    [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(buffer_.len); }
    [[nodiscard]] bool is_read_only() const { return buffer_.readonly != 0; }
    // Whether both certainly have one type and one shape. Both are usable, by the same.
    [[nodiscard]] bool is_like(const PlainBuffer& other) const;

private:
    bool take(nanobind::handle object, TypeBy by);

    Py_buffer buffer_{};
    nanobind::object view_;   // of a memoryview, which the program may release meanwhile
    nanobind::object dtype_;  // of a numpy array
    bool usable_;
};

// Operands of which a PlainBuffer takes the type by its dtype.
PlainBuffer::TypeBy type_by(nanobind::handle object);

}  // namespace waywiser::python
