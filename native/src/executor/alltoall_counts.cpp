#include "executor/alltoall_counts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>

#include "host/files.hpp"
#include "waywiser/words.hpp"

namespace waywiser::alltoall {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kBetween = " \t\r,";  // numbers

// What is wrong with the contents of a file, without its name.
NotSupported wrong(const std::string& what) { return NotSupported("has " + what); }

// All of the text is a number of decimal digits, which may have a fraction and an exponent.
double number_in(std::string_view text) {
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    double number = 0;
    const std::string copy(digits);
    const char* const last = copy.c_str() + copy.size();
    const auto [end, error] = std::from_chars(copy.c_str(), last, number);
    const bool is_decimal =
        digits.find_first_not_of("0123456789.eE+-") == std::string_view::npos && end == last;
    if (!is_decimal || error == std::errc::invalid_argument) {
        throw wrong("'" + host::printable(std::string(text)) + "', which is not a number");
    }
    if (error != std::errc{} || !std::isfinite(number)) {
        throw wrong("the number " + host::printable(std::string(text)) + ", which is out of range");
    }
    if (number < 0) throw wrong("a negative number");
    return number;
}

void skip_blanks(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
}

// Numbers with blanks or a comma after each.
std::vector<double> row_in(std::string_view line, std::size_t memories) {
    std::vector<double> row;
    for (skip_blanks(line); !line.empty(); skip_blanks(line)) {
        if (row.size() == memories) {
            throw wrong("more than " + std::to_string(memories) + " numbers in a row");
        }
        const std::string_view cell = line.substr(0, line.find_first_of(kBetween));
        if (cell.empty()) throw wrong("a row with an empty cell");
        row.push_back(number_in(cell));
        line.remove_prefix(cell.size());
        skip_blanks(line);
        if (line.starts_with(',')) line.remove_prefix(1);
    }
    if (row.size() == memories) return row;
    throw wrong("a row of " + std::to_string(row.size()) + " numbers, of " +
                std::to_string(memories) + " needed");
}

// Of all messages of the memory that sends most.
double most_sent(const Weights& weights) {
    double most = 0;
    for (const std::vector<double>& row : weights) {
        most = std::max(most, std::accumulate(row.begin(), row.end(), 0.0));
    }
    return most;
}

Weights weights_in_text(std::string_view text, std::size_t memories) {
    Weights weights;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.find_first_not_of(kBlank) == std::string_view::npos) continue;
        if (weights.size() == memories) {
            throw wrong("more than " + std::to_string(memories) + " rows");
        }
        weights.push_back(row_in(line, memories));
    }
    if (weights.size() < memories) {
        throw wrong(std::to_string(weights.size()) + " rows, of " + std::to_string(memories) +
                    " needed");
    }
    const double most = most_sent(weights);
    if (!std::isfinite(most)) {
        throw wrong("a row whose sum is out of range: divide all numbers, which are proportions");
    }
    if (most == 0) throw wrong("no number above 0: it sends nothing");
    return weights;
}

}  // namespace

Weights equal_weights(std::size_t memories) { return {memories, std::vector<double>(memories, 1)}; }

Weights weights_of_neighbours(std::size_t memories, std::size_t neighbours) {
    Weights weights(memories, std::vector<double>(memories, 0));
    for (std::size_t from = 0; from < memories; ++from) {
        for (std::size_t n = 1; n <= neighbours; ++n) weights[from][(from + n) % memories] = 1;
    }
    return weights;
}

Weights skewed_weights(std::size_t memories) {
    std::vector<double> row;
    for (std::size_t to = 0; to < memories; ++to) row.push_back(1 / static_cast<double>(to + 1));
    return {memories, row};
}

Weights weights_in_file(const std::filesystem::path& file, std::size_t memories) {
    // Far more than a number with its separator takes.
    constexpr std::size_t kMostOfNumber = 256;
    constexpr std::size_t kMostBesides = std::size_t{64} << 10;
    const std::string name = "the traffic matrix " + host::printable(file.string());
    try {
        const host::Descriptor opened = host::regular_file(file.string());
        const std::size_t most = memories * memories * kMostOfNumber + kMostBesides;
        return weights_in_text(host::text_of(opened, most), memories);
    } catch (const host::UnreadableFile& why) {
        throw NotSupported(name + ": " + why.what());
    } catch (const NotSupported& why) {
        throw NotSupported(name + " " + why.what());
    }
}

Counts counts_of(const Weights& weights, std::size_t bytes) {
    const double most = most_sent(weights);
    // Products with the bytes must not be out of range. To scale by a power of two is exact.
    const int exponent = std::ilogb(most);
    const double scaled_most = std::ldexp(most, -exponent);
    Counts counts;
    for (const std::vector<double>& row : weights) {
        // Ends of messages, not sizes, are rounded: so their sum is right.
        double before = 0;
        std::size_t end = 0;
        std::vector<std::size_t>& sizes = counts.emplace_back();
        for (const double weight : row) {
            before += weight;
            const std::size_t start = end;
            end = before >= most
                      ? bytes
                      : static_cast<std::size_t>(static_cast<double>(bytes) *
                                                 std::ldexp(before, -exponent) / scaled_most);
            sizes.push_back(end - start);
        }
    }
    return counts;
}

Counts equal_counts(std::size_t memories, std::size_t bytes) {
    const std::size_t each = (bytes + memories - 1) / memories;
    return {memories, std::vector<std::size_t>(memories, each)};
}

}  // namespace waywiser::alltoall
