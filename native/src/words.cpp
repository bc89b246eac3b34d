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

int parse_index(const std::string& digits, const std::string& whole) {
    int index = 0;
    const char* end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, index);
    if (error != std::errc() || stopped != end || index < 0) {
        throw NotSupported("'" + whole + "' is not a place: write numa:N, gpu:N or file:PATH");
    }
    return index;
}

}  // namespace

std::string Place::text() const {
    switch (kind) {
        case Kind::numa: return "numa:" + std::to_string(index);
        case Kind::gpu: return "gpu:" + std::to_string(index);
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
    if (kind == "gpu") return {Kind::gpu, parse_index(rest, text), {}};
    throw NotSupported("'" + text + "' is not a place: write numa:N, gpu:N or file:PATH");
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

const GpuPlace* Machine::gpu(int index) const {
    const auto it = std::ranges::find(gpus, index, &GpuPlace::index);
    return it == gpus.end() ? nullptr : &*it;
}

}  // namespace waywiser
