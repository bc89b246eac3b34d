#include "dtype.hpp"

#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>

namespace waywiser::python {
namespace {

struct Named {
    const char* name;
    TypeCode code;
    std::uint16_t bits;
};

// Types with special names; other names are a word and the number of bits.
constexpr std::array kNamed{
    Named{"bool", TypeCode::boolean, 8},
    Named{"bfloat16", TypeCode::brain, 16},
    Named{"float8_e3m4", TypeCode::float8_e3m4, 8},
    Named{"float8_e4m3", TypeCode::float8_e4m3, 8},
    Named{"float8_e4m3b11fnuz", TypeCode::float8_e4m3b11fnuz, 8},
    Named{"float8_e4m3fn", TypeCode::float8_e4m3fn, 8},
    Named{"float8_e4m3fnuz", TypeCode::float8_e4m3fnuz, 8},
    Named{"float8_e5m2", TypeCode::float8_e5m2, 8},
    Named{"float8_e5m2fnuz", TypeCode::float8_e5m2fnuz, 8},
    Named{"float8_e8m0fnu", TypeCode::float8_e8m0fnu, 8},
};

ElementType plain(TypeCode code, std::size_t bytes) {
    return {.code = code, .bits = static_cast<std::uint16_t>(bytes * 8)};
}

ElementType other(std::string name, std::size_t bytes) {
    return {.code = TypeCode::other,
            .bits = static_cast<std::uint16_t>(bytes * 8 > 0xffff ? 0 : bytes * 8),
            .name = std::move(name)};
}

// Whether a byte-order mark is that of this machine.
bool is_native(char order, std::size_t bytes) {
    constexpr char kForeign = std::endian::native == std::endian::little ? '>' : '<';
    return bytes <= 1 || (order != kForeign && (order != '!' || kForeign == '<'));
}

}  // namespace

std::string text(const ElementType& type) {
    const std::string lanes = type.lanes == 1 ? "" : "x" + std::to_string(type.lanes);
    const std::string bits = std::to_string(type.bits);
    switch (type.code) {
        case TypeCode::integer: return "int" + bits + lanes;
        case TypeCode::unsigned_integer: return "uint" + bits + lanes;
        case TypeCode::floating: return "float" + bits + lanes;
        case TypeCode::complex: return "complex" + bits + lanes;
        case TypeCode::other: return type.name;
        default: break;
    }
    for (const Named& known : kNamed) {
        if (known.code == type.code) return known.name + lanes;
    }
    return "type " + std::to_string(static_cast<int>(type.code)) + " of " + bits + " bits" + lanes;
}

ElementType type_of_format(const char* format, std::size_t bytes) {
    if (format == nullptr) return plain(TypeCode::unsigned_integer, 1);
    const char* at = format;
    char order = '@';
    if (std::strchr("@=<>!^", *at) != nullptr && *at != '\0') order = *at++;
    if (!is_native(order, bytes)) return other(format, bytes);
    const bool complex = *at == 'Z';
    if (complex) ++at;
    if (*at == '\0' || at[1] != '\0') return other(format, bytes);
    if (complex) {
        return std::strchr("fd", *at) != nullptr ? plain(TypeCode::complex, bytes)
                                                 : other(format, bytes);
    }
    if (std::strchr("bhilqn", *at) != nullptr) return plain(TypeCode::integer, bytes);
    if (std::strchr("cBHILQN", *at) != nullptr) return plain(TypeCode::unsigned_integer, bytes);
    if (*at == '?') return plain(TypeCode::boolean, bytes);
    if (std::strchr("efd", *at) != nullptr) return plain(TypeCode::floating, bytes);
    return other(format, bytes);
}

ElementType type_of_name(const std::string& name) {
    for (const Named& known : kNamed) {
        if (name == known.name) return {.code = known.code, .bits = known.bits};
    }
    return {};
}

ElementType type_of_typestr(const std::string& typestr, const std::string& name) {
    if (ElementType named = type_of_name(name); named.bits != 0) return named;
    std::size_t bytes = 0;
    std::size_t digits = 2;
    while (digits < typestr.size() && std::isdigit(static_cast<unsigned char>(typestr[digits]))) {
        ++digits;
    }
    if (typestr.size() < 3) return other(typestr, 0);
    std::from_chars(typestr.data() + 2, typestr.data() + digits, bytes);
    if (typestr[1] == 'U') bytes *= 4;
    if (digits != typestr.size() || !is_native(typestr[0], bytes)) return other(typestr, bytes);
    switch (typestr[1]) {
        case 'i': return plain(TypeCode::integer, bytes);
        case 'u': return plain(TypeCode::unsigned_integer, bytes);
        case 'b': return plain(TypeCode::boolean, bytes);
        case 'c':
            if (bytes <= 16) return plain(TypeCode::complex, bytes);
            break;
        case 'f':
            if (bytes <= 8) return plain(TypeCode::floating, bytes);
            break;
        default: break;
    }
    return other(typestr, bytes);
}

std::string remedy_for(const ElementType& one, std::size_t one_bytes, const ElementType& other,
                       std::size_t other_bytes) {
    const auto foreign = [](const ElementType& type) { return text(type).starts_with('>'); };
    if (foreign(one) != foreign(other)) {
        return "the byte orders differ: convert one side (numpy: astype)";
    }
    if (one_bytes != other_bytes) return "convert one side, or view both as bytes (uint8)";
    return "convert one side; to copy the bytes as they are, view one side as the dtype of the "
           "other";
}

}  // namespace waywiser::python
