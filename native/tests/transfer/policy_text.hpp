// The texts of policies, for tests.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "transfer/fingerprint.hpp"
#include "transfer/policy.hpp"

namespace waywiser::test {

inline std::string quoted(const std::string& text) { return '"' + text + '"'; }

struct RowText {
    std::size_t from_bytes = 0;
    std::string executor = "copy-engine";
    std::vector<std::pair<std::string, std::string>> settings;
    std::size_t count = 1;
    std::size_t threads = 1;

    [[nodiscard]] std::string text() const {
        std::string set;
        for (const auto& [name, value] : settings) {
            set += (set.empty() ? "" : ", ") + quoted(name) + ": " + quoted(value);
        }
        return "{\"from_bytes\": " + std::to_string(from_bytes) +
               ", \"bytes\": " + std::to_string(from_bytes + 4096) +
               ", \"count\": " + std::to_string(count) +
               ", \"threads\": " + std::to_string(threads) + ", \"executor\": " + quoted(executor) +
               ", \"settings\": {" + set +
               "}, \"seconds\": 0.000412, \"low\": 0.000405, \"high\": 0.000418, "
               "\"next\": null, \"costs\": {\"threads\": 10, \"small_copy\": 1.4, "
               "\"matrix_product\": null}}";
    }
};

struct ClassText {
    std::string from, to;
    std::vector<RowText> rows;
    std::string relation;
    bool peers_idle = false;
    std::vector<RowText> host_contiguous;

    [[nodiscard]] static std::string text_of(const std::vector<RowText>& rows) {
        std::string all;
        for (const RowText& row : rows) all += (all.empty() ? "" : ",\n") + row.text();
        return "[" + all + "]";
    }
    [[nodiscard]] std::string text() const {
        const std::string more =
            host_contiguous.empty() ? "" : ", \"host_contiguous\": " + text_of(host_contiguous);
        return "{\"from\": " + quoted(from) + ", \"to\": " + quoted(to) +
               ", \"relation\": " + quoted(relation) +
               ", \"peers_idle\": " + (peers_idle ? "true" : "false") +
               ", \"rows\": " + text_of(rows) + more + "}";
    }
};

inline const std::string kAnyMachine = "{}";

inline std::string policy_text(const std::vector<ClassText>& classes,
                               const std::string& machine = kAnyMachine) {
    std::string all;
    for (const ClassText& one : classes) all += (all.empty() ? "" : ",\n") + one.text();
    return "{\"format\": \"waywiser-policy\", \"version\": 1, \"program\": \"0.1.0\", "
           "\"measured\": \"2026-11-23\", \"machine\": " +
           machine + ", \"classes\": [" + all + "]}\n";
}

}  // namespace waywiser::test
