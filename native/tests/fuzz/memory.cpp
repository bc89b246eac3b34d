#include "fuzz/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "many_bytes.hpp"

namespace waywiser::fuzz {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::array<const char*, 6> kNames = {"pageable", "pinned", "mixed",
                                               "managed",  "device", "file"};

[[noreturn]] void fail_file(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int file_without_name(const std::string& folder, bool in_memory) {
    const int file = in_memory ? memfd_create("transfer_fuzzer", MFD_CLOEXEC)
                               : open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) fail_file("a file without a name");
    return file;
}

void write_all(int file, const std::vector<std::byte>& content) {
    for (std::size_t at = 0; at < content.size();) {
        const ssize_t written =
            pwrite(file, content.data() + at, content.size() - at, static_cast<off_t>(at));
        if (written <= 0) fail_file("pwrite");
        at += static_cast<std::size_t>(written);
    }
}

std::optional<std::size_t> first_difference(const std::byte* one, const std::byte* other,
                                            std::size_t bytes) {
    if (bytes == 0 || test::same_bytes(one, other, bytes)) return std::nullopt;
    for (std::size_t at = 0; at < bytes; ++at) {
        if (one[at] != other[at]) return at;
    }
    return std::nullopt;  // another thread is writing it
}

}  // namespace

Memory::Memory(int gpus, std::size_t bytes, const std::string& folder, Draw draw) : most_(bytes) {
    const auto size = [&] { return bytes - draw.below(kPage); };
    // One byte more than needed, so that copies are not aligned.
    for (int i = 0; i < 2; ++i) {
        pageable_.push_back(std::make_unique<std::byte[]>(bytes + kPage));
    }
    add(RegionKind::pageable, -1, pageable_[0].get() + draw.below(64), size(), draw);
    add(RegionKind::mixed, -1, pageable_[1].get(), bytes, draw);
    pinned_.emplace_back(bytes, gpu::HostUse::portable, 0);
    add(RegionKind::pinned, -1, pinned_.back().data(), size(), draw);
    managed_.emplace_back(bytes, 0);
    add(RegionKind::managed, -1, managed_.back().data(), size(), draw);
    constexpr std::array kUses = {gpu::DeviceUse::plain, gpu::DeviceUse::pool,
                                  gpu::DeviceUse::mapped};
    for (int gpu = 0; gpu < gpus; ++gpu) {
        device_.emplace_back(gpu, bytes, draw.of(kUses));
        add(RegionKind::device, gpu, device_.back().data(), size(), draw);
    }
    add_file(folder, draw.below(bytes), draw);
    register_again(draw);
}

Memory::~Memory() {
    for (const Region& region : regions_) {
        if (region.file >= 0) close(region.file);
    }
}

void Memory::add(RegionKind kind, int gpu, std::byte* data, std::size_t bytes, Draw& draw) {
    Region& added = regions_.emplace_back();
    added.kind = kind;
    added.gpu = gpu;
    added.data = data;
    added.expected.resize(bytes);
    write({regions_.size() - 1, 0, bytes}, draw);
}

void Memory::add_file(const std::string& folder, std::size_t bytes, Draw& draw) {
    const int file = file_without_name(folder, draw.one_in(2));
    Region& added = regions_.emplace_back();
    added.kind = RegionKind::file;
    added.file = file;
    added.expected = test::sequence(bytes, static_cast<unsigned>(draw.below(std::size_t{1} << 31)));
    write_all(file, added.expected);
}

std::string Memory::text(const Span& span) const {
    const Region& region = regions_[span.region];
    std::string text = kNames.at(static_cast<std::size_t>(region.kind));
    if (region.gpu >= 0) text += " of GPU " + std::to_string(region.gpu);
    return text + "[" + std::to_string(span.offset) + ", +" + std::to_string(span.bytes) + "]";
}

std::vector<std::size_t> Memory::regions_of(std::vector<RegionKind> kinds) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        if (std::ranges::find(kinds, regions_[i].kind) != kinds.end()) found.push_back(i);
    }
    return found;
}

bool Memory::on_host(std::size_t region) const {
    const RegionKind kind = regions_[region].kind;
    return kind == RegionKind::pageable || kind == RegionKind::pinned || kind == RegionKind::mixed;
}

void Memory::expect(const Move& move) {
    if (move.to.bytes == 0) return;
    const test::NotRecorded own;
    std::memcpy(regions_[move.to.region].expected.data() + move.to.offset,
                regions_[move.from.region].expected.data() + move.from.offset, move.to.bytes);
}

void Memory::expect_file_end(std::size_t region, std::size_t bytes) {
    regions_[region].expected.resize(bytes);
}

std::vector<std::byte> Memory::expect_new(const Span& span, Draw& draw) {
    auto content =
        test::sequence(span.bytes, static_cast<unsigned>(draw.below(std::size_t{1} << 31)));
    if (span.bytes != 0) {
        const test::NotRecorded own;
        std::memcpy(regions_[span.region].expected.data() + span.offset, content.data(),
                    span.bytes);
    }
    return content;
}

void Memory::write(const Span& span, Draw& draw) {
    const auto content = expect_new(span, draw);
    if (span.bytes != 0) test::copy_bytes(data(span), content.data(), span.bytes);
}

std::optional<Difference> Memory::difference(const Span& span) const {
    const Region& region = regions_[span.region];
    const std::byte* const expected = region.expected.data() + span.offset;
    if (region.kind == RegionKind::file) return difference(span.region);
    const auto at = first_difference(data(span), expected, span.bytes);
    if (!at) return std::nullopt;
    return Difference{{span.region, span.offset + *at, 1},
                      static_cast<int>(data(span)[*at]),
                      static_cast<int>(expected[*at])};
}

std::optional<Difference> Memory::difference(std::size_t region) const {
    const Region& checked = regions_[region];
    if (checked.kind != RegionKind::file) return difference({region, 0, checked.expected.size()});
    const auto content = file_content(checked);
    const std::size_t both = std::min(content.size(), checked.expected.size());
    const auto at = first_difference(content.data(), checked.expected.data(), both);
    if (at) {
        return Difference{{region, *at, 1},
                          static_cast<int>(content[*at]),
                          static_cast<int>(checked.expected[*at])};
    }
    if (content.size() == checked.expected.size()) return std::nullopt;
    return Difference{{region, both, 0},
                      static_cast<int>(content.size()),
                      static_cast<int>(checked.expected.size())};
}

void Memory::accept(const Span& span) {
    Region& region = regions_[span.region];
    if (region.kind == RegionKind::file) {
        region.expected = file_content(region);
    } else if (span.bytes != 0) {
        test::copy_bytes(region.expected.data() + span.offset, data(span), span.bytes);
    }
}

std::vector<std::byte> Memory::file_content(const Region& region) const {
    struct stat info{};
    if (fstat(region.file, &info) != 0) fail_file("fstat");
    std::vector<std::byte> content(static_cast<std::size_t>(info.st_size));
    for (std::size_t at = 0; at < content.size();) {
        const ssize_t got =
            pread(region.file, content.data() + at, content.size() - at, static_cast<off_t>(at));
        if (got <= 0) fail_file("pread");
        at += static_cast<std::size_t>(got);
    }
    return content;
}

std::uint64_t Memory::hash(std::size_t region) const {
    const Region& hashed = regions_[region];
    std::vector<std::byte> content;
    if (hashed.kind == RegionKind::file) content = file_content(hashed);
    const std::byte* const first = content.empty() ? hashed.data : content.data();
    const std::size_t bytes = content.empty() ? hashed.expected.size() : content.size();
    const test::NotRecorded own;
    std::uint64_t all = bytes;
    for (std::size_t at = 0; first != nullptr && at + sizeof all <= bytes; at += sizeof all) {
        std::uint64_t word = 0;
        std::memcpy(&word, first + at, sizeof word);
        all = (all ^ word) * 0x9E3779B97F4A7C15ULL;
        all ^= all >> 29U;
    }
    return all;
}

void Memory::register_again(Draw& draw) {
    registrations_.clear();
    const std::size_t mixed = regions_of({RegionKind::mixed}).front();
    std::byte* const first = regions_[mixed].data;
    const std::size_t bytes = regions_[mixed].expected.size();
    // Pageable memory, then two or three registrations without a gap. The library looks at some
    // pages of pageable memory alone, so that it may not see a small registration in the middle.
    std::size_t at = draw.below(bytes / 4 / kPage) * kPage;
    while (at < bytes) {
        const std::size_t part = bytes / 4 + draw.below(bytes / 4);
        const std::size_t end = std::min(bytes, (at + part) / kPage * kPage + kPage);
        registrations_.emplace_back(first + at, end - at, 0);
        at = end;
    }
}

}  // namespace waywiser::fuzz
