// What names of findings mean, whichever data set they come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chexnet {

// Two names of one finding: equal but for case and '_' or '-' for a blank, or
// an entry of the one table of synonyms in the .cpp.
bool same_finding(const std::string& a, const std::string& b);

// Where `wanted` stands in `names`: the equal name, else another name of the
// same finding.
std::optional<size_t> find_finding(const std::vector<std::string>& names,
                                   const std::string& wanted);

// "No Finding": the complement of the others, so no class of a mean.
bool is_no_finding(const std::string& name);
// Whether a 1 says that the image shows a disease: neither "No Finding" nor
// "Support Devices".
bool is_disease(const std::string& name);

// "A, B, C"; of long lists the first `shown` and how many more.
std::string listed(const std::vector<std::string>& names, size_t shown = 14);

// "'Pleural Effusion' appears twice, also as 'Effusion'"; empty where no two
// names are of one finding.
std::string doubled_finding(const std::vector<std::string>& names);
// The same as a ConfigError naming `key`.
void refuse_doubled(const std::vector<std::string>& names,
                    const std::string& key);

}  // namespace chexnet
