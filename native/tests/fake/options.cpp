#include "options.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>

namespace waywiser::fake {
namespace {

[[noreturn]] void malformed(const std::string& value, const char* expected) {
    throw std::invalid_argument("'" + value + "' is not " + expected);
}

double number(const std::string& text) {
    std::size_t used = 0;
    double value = -1;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        malformed(text, "a number");
    }
    if (used != text.size() || !(value >= 0)) malformed(text, "a number of zero or more");
    return value;
}

std::size_t whole(const std::string& text) {
    if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) ||
        text.size() > 18) {
        malformed(text, "a whole number");
    }
    return std::stoull(text);
}

double rate(const std::string& text) {
    const double value = number(text);
    if (value == 0) malformed(text, "a rate above zero");
    return value;
}

When when(const std::string& text) {
    When parsed;
    std::string digits = text;
    if (digits.starts_with('/')) {
        parsed.kind = When::Kind::every;
        digits.erase(0, 1);
    } else if (digits.ends_with('+')) {
        parsed.kind = When::Kind::from;
        digits.pop_back();
    }
    parsed.number = whole(digits);
    if (parsed.number == 0) malformed(text, "a count: write 3, 3+ or /3");
    return parsed;
}

Point point(const std::string& text) {
    static const std::map<std::string, Point> points = {
        {"copy", Point::copy},   {"fill", Point::fill},   {"launch", Point::launch},
        {"event", Point::event}, {"alloc", Point::alloc}, {"sync", Point::sync},
        {"call", Point::call},   {"query", Point::query}};
    const auto found = points.find(text);
    if (found == points.end())
        malformed(text, "copy, fill, launch, event, alloc, sync, call or query");
    return found->second;
}

Strike strike(const std::string& text) {
    const auto at = text.find('@');
    Strike parsed{point(text.substr(0, at)), {}};
    if (at != std::string::npos) parsed.when = when(text.substr(at + 1));
    return parsed;
}

Strike copy_strike(const std::string& text) {
    const Strike parsed = strike(text);
    if (parsed.point != Point::copy) malformed(text, "copy@WHEN");
    return parsed;
}

void parse_delay(Options& options, const std::string& text) {
    const auto at = text.find('@');
    options.delay_seconds = number(text.substr(0, at));
    options.delay = Strike{Point::copy, at == std::string::npos ? When{When::Kind::from, 1}
                                                                : when(text.substr(at + 1))};
}

void parse_remote(Options& options, const std::string& text) {
    const auto at = text.find('@');
    options.remote_seconds = number(text.substr(0, at)) * 1e-6;
    if (at != std::string::npos) options.remote_seed = whole(text.substr(at + 1));
}

void parse_pairs(Options& options, const std::string& text) {
    if (text == "all") {
        options.no_peers = true;
        return;
    }
    std::istringstream stream(text);
    for (std::string pair; std::getline(stream, pair, ',');) {
        const auto dash = pair.find('-');
        if (dash == std::string::npos) malformed(pair, "a pair of GPUs like 0-1");
        options.apart.emplace_back(static_cast<int>(whole(pair.substr(0, dash))),
                                   static_cast<int>(whole(pair.substr(dash + 1))));
    }
}

// Names of a list that are among the known ones, which `expected` names.
std::set<std::string> names(const std::string& text, const std::set<std::string>& known,
                            const char* expected) {
    std::set<std::string> found;
    std::istringstream stream(text);
    for (std::string name; std::getline(stream, name, ',');) {
        if (!known.contains(name)) malformed(name, expected);
        found.insert(name);
    }
    return found;
}

void parse_without(Options& options, const std::string& text) {
    options.without = names(text, {"batch", "pool", "vmm", "ipc"}, "batch, pool, vmm or ipc");
}

void parse_multiprocessors(Options& options, const std::string& text) {
    options.by_multiprocessors =
        names(text, {"h2d", "d2h", "local", "peer", "fill"}, "h2d, d2h, local, peer or fill");
}

GateFault gate_fault(const std::string& text) {
    if (text == "lost") return GateFault::first_open_lost;
    if (text == "stuck") return GateFault::stuck;
    malformed(text, "lost or stuck");
}

bool yes(const std::string& text) {
    if (text != "0" && text != "1") malformed(text, "0 or 1");
    return text == "1";
}

using Setter = std::function<void(Options&, const std::string&)>;

const std::map<std::string, Setter>& setters() {
    using O = Options;
    using S = const std::string;
    static const std::map<std::string, Setter> all = {
        {"devices", [](O& o, S& v) { o.devices = static_cast<int>(whole(v)); }},
        {"memory", [](O& o, S& v) { o.memory_bytes = whole(v) << 20; }},
        {"unavailable", [](O& o, S& v) { o.unavailable = v; }},
        {"pageable_access", [](O& o, S& v) { o.pageable_access = yes(v); }},
        {"no_peers", parse_pairs},
        {"without", parse_without},
        {"multiprocessors", parse_multiprocessors},
        {"occupied", [](O& o, S& v) { o.occupied = yes(v); }},
        {"h2d", [](O& o, S& v) { o.h2d_gb_per_s = rate(v); }},
        {"d2h", [](O& o, S& v) { o.d2h_gb_per_s = rate(v); }},
        {"d2d", [](O& o, S& v) { o.d2d_gb_per_s = rate(v); }},
        {"peer", [](O& o, S& v) { o.peer_gb_per_s = rate(v); }},
        {"staged", [](O& o, S& v) { o.staged_gb_per_s = rate(v); }},
        {"latency", [](O& o, S& v) { o.latency_seconds = number(v) * 1e-6; }},
        {"remote", parse_remote},
        {"event", [](O& o, S& v) { o.event_seconds = number(v) * 1e-6; }},
        {"piece", [](O& o, S& v) { o.piece_seconds = number(v) * 1e-6; }},
        {"oom_at", [](O& o, S& v) { o.out_of_memory = Strike{Point::alloc, when(v)}; }},
        {"fail", [](O& o, S& v) { o.fail = strike(v); }},
        {"sticky", [](O& o, S& v) { o.sticky = strike(v); }},
        {"lost", [](O& o, S& v) { o.lost = strike(v); }},
        {"hang", [](O& o, S& v) { o.hang = strike(v); }},
        {"crash", [](O& o, S& v) { o.crash = strike(v); }},
        {"delay", parse_delay},
        {"flip", [](O& o, S& v) { o.flip = copy_strike(v); }},
        {"drop", [](O& o, S& v) { o.drop = copy_strike(v); }},
        {"block", [](O& o, S& v) { o.block = copy_strike(v); }},
        {"gate", [](O& o, S& v) { o.gate = gate_fault(v); }},
        {"only_bytes", [](O& o, S& v) { o.only_bytes = whole(v); }},
        {"once", [](O& o, S& v) { o.once_file = v; }},
    };
    return all;
}

}  // namespace

bool When::matches(std::size_t count) const {
    switch (kind) {
        case Kind::at: return count == number;
        case Kind::from: return count >= number;
        case Kind::every: break;
    }
    return count % number == 0;
}

bool Options::peers(int from, int to) const {
    if (no_peers || from == to) return false;
    return std::ranges::none_of(apart, [&](const auto& pair) {
        return pair == std::pair{from, to} || pair == std::pair{to, from};
    });
}

int Options::half_of_device(int device) const { return device < (devices + 1) / 2 ? 0 : 1; }

int Options::half_of_block(std::size_t n) const {
    std::seed_seq sequence{remote_seed, n};
    return static_cast<int>(std::mt19937_64(sequence)() & 1U);
}

Options parse_options(const std::string& text) {
    Options options;
    std::istringstream stream(text);
    for (std::string entry; std::getline(stream, entry, ';');) {
        if (entry.empty()) continue;
        const auto equals = entry.find('=');
        const std::string key = entry.substr(0, equals);
        const auto setter = setters().find(key);
        if (equals == std::string::npos || setter == setters().end()) {
            throw std::invalid_argument("WAYWISER_FAKE: '" + entry + "' is not a setting");
        }
        try {
            setter->second(options, entry.substr(equals + 1));
        } catch (const std::invalid_argument& error) {
            throw std::invalid_argument("WAYWISER_FAKE: " + key + ": " + error.what());
        }
    }
    return options;
}

}  // namespace waywiser::fake
