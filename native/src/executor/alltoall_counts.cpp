#include "executor/alltoall_counts.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

#include "waywiser/words.hpp"

namespace waywiser::alltoall {
namespace {

NotSupported no_matrix(const std::filesystem::path& file, const std::string& why) {
    return NotSupported("the traffic matrix " + file.string() + " " + why);
}

std::vector<double> row_in(std::string line, const std::filesystem::path& file,
                           std::size_t memories) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream cells(line);
    std::vector<double> row;
    for (double cell = 0; row.size() < memories && cells >> cell;) {
        if (!std::isfinite(cell) || cell < 0) throw no_matrix(file, "has a negative number");
        row.push_back(cell);
    }
    double more = 0;
    if (cells >> more)
        throw no_matrix(file, "has more than " + std::to_string(memories) + " numbers in a row");
    if (row.size() == memories) return row;
    throw no_matrix(file, "has a row of " + std::to_string(row.size()) + " numbers, of " +
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
    std::ifstream text(file);
    if (!text) throw no_matrix(file, "cannot be read");
    Weights weights;
    for (std::string line; std::getline(text, line);) {
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        if (weights.size() == memories) {
            throw no_matrix(file, "has more than " + std::to_string(memories) + " rows");
        }
        weights.push_back(row_in(line, file, memories));
    }
    if (weights.size() < memories) {
        throw no_matrix(file, "has " + std::to_string(weights.size()) + " rows, of " +
                                  std::to_string(memories) + " needed");
    }
    if (most_sent(weights) == 0) throw no_matrix(file, "sends nothing");
    return weights;
}

Counts counts_of(const Weights& weights, std::size_t bytes) {
    const double most = most_sent(weights);
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
                      : static_cast<std::size_t>(static_cast<double>(bytes) * before / most);
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
