// The type of an array's elements, as in DLPack. Two types are equal if kind and bits are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace waywiser::python {

// The codes of DLPack, and one for types without a code.
enum class TypeCode : std::uint8_t {
    integer = 0,
    unsigned_integer = 1,
    floating = 2,
    brain = 4,
    complex = 5,
    boolean = 6,
    float8_e3m4 = 7,
    float8_e4m3 = 8,
    float8_e4m3b11fnuz = 9,
    float8_e4m3fn = 10,
    float8_e4m3fnuz = 11,
    float8_e5m2 = 12,
    float8_e5m2fnuz = 13,
    float8_e8m0fnu = 14,
    other = 255,
};

struct ElementType {
    TypeCode code = TypeCode::other;
    std::uint16_t bits = 0;
    std::uint16_t lanes = 1;
    std::string name;  // the format, for other types

    bool operator==(const ElementType&) const = default;
    // Bytes of one element; 0 if that is not an integer.
    [[nodiscard]] std::size_t bytes() const {
        const std::size_t all = std::size_t{bits} * lanes;
        return all % 8 == 0 ? all / 8 : 0;
    }
};

// "float32", "bfloat16"; the format for other types.
std::string text(const ElementType& type);
// The remedy if two types differ, for elements of `bytes` bytes.
std::string remedy_for(const ElementType& one, std::size_t one_bytes, const ElementType& other,
                       std::size_t other_bytes);
// From a format of the struct module, as in the buffer protocol, with the bytes of one element.
ElementType type_of_format(const char* format, std::size_t bytes);
// From a typestr of the array interfaces ("<f4"); `name` is the dtype's name, for ml_dtypes say, or
// "".
ElementType type_of_typestr(const std::string& typestr, const std::string& name = "");
// From a name that DLPack knows, such as "bfloat16"; else `other` without bits.
ElementType type_of_name(const std::string& name);

}  // namespace waywiser::python
