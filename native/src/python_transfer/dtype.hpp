// The type of an array's elements, as DLPack writes it: two types are equal when kind and bits are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace waywiser::python {

// The codes of DLPack, and one for types that it has no code for.
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
    std::string name;  // of other types: their format

    bool operator==(const ElementType&) const = default;
    // Bytes of one element; 0 where an element is no whole number of bytes.
    [[nodiscard]] std::size_t bytes() const {
        const std::size_t all = std::size_t{bits} * lanes;
        return all % 8 == 0 ? all / 8 : 0;
    }
};

// "float32", "bfloat16"; of other types their format.
std::string text(const ElementType& type);
// What to do about two types that differ, of elements of so many bytes.
std::string remedy_for(const ElementType& one, std::size_t one_bytes, const ElementType& other,
                       std::size_t other_bytes);
// Of a format of the struct module, as the buffer protocol gives it; `bytes` of one element.
ElementType type_of_format(const char* format, std::size_t bytes);
// Of a typestr of the array interfaces ("<f4"); `name` is the dtype's, of ml_dtypes say ("").
ElementType type_of_typestr(const std::string& typestr, const std::string& name = "");
// Of a name such as "bfloat16" that DLPack knows; `other` without bits if it does not.
ElementType type_of_name(const std::string& name);

}  // namespace waywiser::python
