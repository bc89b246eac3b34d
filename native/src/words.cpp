#include "waywiser/words.hpp"

#include <algorithm>
#include <charconv>

namespace waywiser {
namespace {

std::string bracketed(const Settings& settings) {
    if (settings.empty()) return {};
    std::string text;
    for (const auto& [key, value] : settings) {
        text += (text.empty() ? "[" : ",") + key + "=" + value;
    }
    return text + "]";
}

constexpr std::size_t kMostDigits = 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// A visible ASCII character that does not end a setting.
bool is_in_setting(char c) { return c > ' ' && c <= '~' && c != ',' && c != '[' && c != ']'; }

NotSupported no_place(const std::string& text) {
    return NotSupported("'" + text + "' is not a place: write numa:N, gpu:N, rank:N or file:PATH");
}

int parse_index(const std::string& digits, const std::string& whole) {
    const auto index = whole_number(digits, kMostIndex);
    if (!index) {
        throw no_place(whole);
    }
    return static_cast<int>(*index);
}

std::string range(const Place& place) {
    std::string text = std::to_string(place.index);
    if (place.several()) text.append("-").append(std::to_string(place.last));
    return text;
}

// "3", or "0-7": the first and the last of several.
Place parse_several(Place::Kind kind, const std::string& range, const std::string& whole) {
    const auto dash = range.find('-');
    const int first = parse_index(range.substr(0, dash), whole);
    if (dash == std::string::npos) return {kind, first, {}};
    const int last = parse_index(range.substr(dash + 1), whole);
    if (last <= first || last - first >= kMostTogether) {
        throw NotSupported("'" + whole + "' is not a range of places: write gpu:0-7 or rank:0-7");
    }
    return {kind, first, {}, last};
}

}  // namespace

std::optional<std::size_t> whole_number(const std::string& text, std::size_t most) {
    if (text.empty() || text.size() > kMostDigits || !std::ranges::all_of(text, is_digit)) {
        return std::nullopt;
    }
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number > most) return std::nullopt;
    return number;
}

void require_name(const std::string& name) {
    const auto fits = [](char c) { return is_lower(c) || is_digit(c) || c == '-'; };
    if (name.empty() || !is_lower(name.front()) || !std::ranges::all_of(name, fits)) {
        throw NotSupported("'" + name + "' is not a name: write small letters, digits and '-'");
    }
}

void require_settings(const Settings& settings) {
    for (const auto& [key, value] : settings) {
        const bool valid = !key.empty() && !value.empty() && key.find('=') == std::string::npos &&
                           std::ranges::all_of(key, is_in_setting) &&
                           std::ranges::all_of(value, is_in_setting);
        if (!valid) {
            throw NotSupported("'" + key + "=" + value + "' is not a setting: write KEY=VALUE");
        }
    }
}

void require_layout_settings(const Settings& settings) {
    require_settings(settings);
    for (const auto& [key, value] : settings) {
        if (is_digit(value.front()) && !whole_number(value)) {
            throw NotSupported("'" + key + "=" + value + "' is not a number of bytes");
        }
    }
}

void require_bytes(std::size_t bytes) {
    if (bytes > kMostBytes) {
        throw NotSupported(std::to_string(bytes) + " bytes are more than any machine has");
    }
}

std::string Place::text() const {
    switch (kind) {
        case Kind::numa: return "numa:" + std::to_string(index);
        case Kind::gpu: return "gpu:" + range(*this);
        case Kind::rank: return "rank:" + range(*this);
        case Kind::file: break;
    }
    return "file:" + file;
}

Place Place::parse(const std::string& text) {
    const auto colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (kind == "file" && !rest.empty()) return {Kind::file, 0, rest};
    if (kind == "numa") return {Kind::numa, parse_index(rest, text), {}};
    if (kind == "gpu") return parse_several(Kind::gpu, rest, text);
    if (kind == "rank") return parse_several(Kind::rank, rest, text);
    throw no_place(text);
}

std::vector<Place> Place::each() const {
    if (!several()) return {*this};
    std::vector<Place> places;
    for (int n = index; n <= last; ++n) places.push_back({kind, n, {}});
    return places;
}

std::vector<Memory> Memory::each() const {
    std::vector<Memory> memories;
    for (Place& single : place.each()) memories.push_back({kind, std::move(single), variant});
    return memories;
}

std::string Memory::text() const { return kind + bracketed(variant) + "@" + place.text(); }

std::string Path::text() const {
    return source.text() + " -> " + destination.text() + " by " + executor;
}

std::string Transfer::text() const {
    const std::string as =
        layout.kind == Layout::Kind::contiguous ? std::string() : " as " + layout.text();
    return path.text() + bracketed(parameters) + as + " of " + std::to_string(bytes);
}

std::string Layout::text() const {
    switch (kind) {
        case Kind::contiguous: return "contiguous";
        case Kind::box: return "box" + bracketed(settings);
        case Kind::list: break;
    }
    return "list" + bracketed(settings);
}

Layout::Kind Layout::parse_kind(const std::string& text) {
    if (text == "contiguous") return Kind::contiguous;
    if (text == "box") return Kind::box;
    if (text == "list") return Kind::list;
    throw NotSupported("there is no layout '" + text + "': write contiguous, box or list");
}

std::string OperationCall::text() const {
    return name + bracketed(parameters) + "@" + place.text();
}

const NumaNode* Machine::node(int index) const {
    const auto it = std::ranges::find(numa, index, &NumaNode::index);
    return it == numa.end() ? nullptr : &*it;
}

std::vector<int> Machine::cpus(const Place& place) const {
    const NumaNode* found = place.kind == Place::Kind::numa ? node(place.index) : nullptr;
    return found == nullptr ? std::vector<int>{} : found->cpus;
}

const FilePlace* Machine::file(const std::string& name) const {
    const auto it = std::ranges::find(files, name, &FilePlace::name);
    return it == files.end() ? nullptr : &*it;
}

const RankPlace* Machine::rank(int index) const {
    const auto it = std::ranges::find(ranks, index, &RankPlace::index);
    return it == ranks.end() ? nullptr : &*it;
}

const GpuPlace* Machine::gpu(int index) const {
    const auto it = std::ranges::find(gpus, index, &GpuPlace::index);
    return it == gpus.end() ? nullptr : &*it;
}

}  // namespace waywiser
