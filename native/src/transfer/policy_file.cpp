#include "transfer/policy_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "host/files.hpp"
#include "transfer/json_reader.hpp"

namespace waywiser::transfer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 10000;  // of a folder that are looked at
constexpr std::size_t kMostFiles = 64;       // of a folder that are read
constexpr const char* kOff = "off";

// The value of an environment variable; empty if it is not set, or if the process has privileges
// that its user has not.
std::string variable(const char* name) {
    const char* const value = secure_getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

// A name for a message of one line of UTF-8, which Python decodes.
std::string printable(const std::string& name) {
    std::string text = name;
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
    for (std::size_t at = first_malformed(text); at < text.size(); at = first_malformed(text)) {
        text[at] = '?';
    }
    return text;
}

void check_trusted(int file) {
    struct stat status{};
    if (fstat(file, &status) != 0) {
        throw host::UnreadableFile(std::string("it cannot be read: ") + std::strerror(errno));
    }
    if (status.st_uid != geteuid() && status.st_uid != 0) {
        throw PolicyDamage("it belongs to user " + std::to_string(status.st_uid) +
                           ", not to this user or root");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        throw PolicyDamage("others may write it; run chmod go-w on it");
    }
}

std::string warning_of(const fs::path& file, const std::string& why) {
    return "the policy " + printable(file.string()) + " is not used: " + printable(why);
}

Policy policy_of(const fs::path& file) {
    const std::string text = read_trusted(file);
    try {
        return parse_policy(text);
    } catch (const PolicyDamage& damage) {
        throw PolicyDamage(std::string(damage.what()) +
                           "; make it again with 'waywiser export --for waywiser'");
    }
}

class Search {
public:
    explicit Search(const std::function<MachineIdentity()>& identity) : identity_(identity) {}

    // Whether the search is at its end. `named`: a user has named this file, and it should fit.
    bool look_at(const fs::path& file, bool named) {
        try {
            const auto policy = std::make_shared<const Policy>(policy_of(file));
            if (!here_) here_ = identity_();
            const std::string other = difference(policy->machine, here_->fingerprint, here_->links);
            if (other.empty()) {
                found_.policy = policy;
                found_.file = printable(file.string());
                return true;
            }
            if (named) {
                warn(file, "it is of another machine (" + other +
                               "); make one here with 'waywiser export --for waywiser'");
            }
        } catch (const PolicyDamage& damage) {
            warn(file, damage.what());
        }
        return false;
    }

    FoundPolicy result() {
        if (found_.warning.empty()) return std::move(found_);
        if (unused_ > 1)
            found_.warning +=
                "; nor " + std::to_string(unused_ - 1) + " other" + (unused_ > 2 ? "s" : "");
        if (found_.policy == nullptr) found_.warning += "; defaults are used";
        return std::move(found_);
    }

private:
    void warn(const fs::path& file, const std::string& why) {
        if (unused_++ == 0) found_.warning = warning_of(file, why);
    }

    const std::function<MachineIdentity()>& identity_;
    std::optional<MachineIdentity> here_;
    FoundPolicy found_;
    std::size_t unused_ = 0;
};

}  // namespace

PolicyPlaces PolicyPlaces::of_environment() {
    PolicyPlaces places;
    places.file = variable("WAYWISER_POLICY");
    const std::string config = variable("XDG_CONFIG_HOME");
    const std::string home = variable("HOME");
    if (fs::path(config).is_absolute()) {
        places.folders.push_back(fs::path(config) / "waywiser");
    } else if (fs::path(home).is_absolute()) {
        places.folders.push_back(fs::path(home) / ".config" / "waywiser");
    }
    places.folders.emplace_back("/etc/waywiser");
    return places;
}

// The checks are of what was opened, so that nothing can change in between.
std::string read_trusted(const fs::path& file) {
    try {
        const host::Descriptor opened = host::regular_file(file.string());
        check_trusted(opened.get());
        return host::text_of(opened, kMostPolicyBytes);
    } catch (const host::UnreadableFile& why) {
        throw PolicyDamage(why.what());
    }
}

std::vector<fs::path> policy_files(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    std::size_t entries = 0;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (++entries > kMostEntries) break;
        const std::string name = entry->path().filename().string();
        if (!name.starts_with('.') && name.ends_with(".json")) files.push_back(entry->path());
    }
    std::ranges::sort(files);
    if (files.size() > kMostFiles) files.resize(kMostFiles);
    return files;
}

FoundPolicy find_policy(const PolicyPlaces& places,
                        const std::function<MachineIdentity()>& identity) {
    Search search(identity);
    if (places.file == kOff) return {};
    if (!places.file.empty()) {
        search.look_at(places.file, true);
        return search.result();
    }
    for (const fs::path& folder : places.folders) {
        for (const fs::path& file : policy_files(folder)) {
            if (search.look_at(file, false)) return search.result();
        }
    }
    return search.result();
}

FoundPolicy policy_of_process(const std::string& option, const Machine& machine) {
    const auto identity = [&machine] { return identify(machine); };
    if (!option.empty()) return find_policy({.file = option, .folders = {}}, identity);
    // Without a lock, which a fork could leave locked in the child. Never destroyed.
    static std::atomic<const FoundPolicy*> of_process{nullptr};
    const FoundPolicy* known = of_process;
    if (known == nullptr) {
        auto made = std::make_unique<const FoundPolicy>(
            find_policy(PolicyPlaces::of_environment(), identity));
        if (of_process.compare_exchange_strong(known, made.get())) known = made.release();
    }
    return *known;
}

}  // namespace waywiser::transfer
