#include "rules/direction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace joulediff::rules {
namespace {

constexpr std::array<std::string_view, 31> kHigher{
    "accuracy",  "top1",      "top1accuracy", "top5",  "top5accuracy", "balancedaccuracy",
    "precision", "recall",    "f1",           "map",   "miou",         "iou",
    "dice",      "auc",       "rocauc",       "auroc", "rouge1",       "rouge2",
    "rougel",    "rougelsum", "bleu",         "chrf",  "meteor",       "exactmatch",
    "pass@1",    "ndcg",      "psnr",         "ssim",  "clipscore",    "winrate",
    "meandice"};
constexpr std::array<std::string_view, 19> kLower{"perplexity",
                                                  "ppl",
                                                  "wer",
                                                  "cer",
                                                  "fid",
                                                  "mae",
                                                  "mse",
                                                  "rmse",
                                                  "loss",
                                                  "crossentropy",
                                                  "nll",
                                                  "error",
                                                  "errorrate",
                                                  "top1error",
                                                  "top5error",
                                                  "bitsperbyte",
                                                  "bpb",
                                                  "worderrorrate",
                                                  "characterrorrate"};

std::string plain(std::string_view metric) {
  std::string name;
  for (const char c : metric)
    if (c != ' ' && c != '-' && c != '_')
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

std::optional<Better> known_direction(std::string_view metric) {
  const std::string name = plain(metric);
  if (std::ranges::find(kHigher, name) != kHigher.end()) return Better::higher;
  if (std::ranges::find(kLower, name) != kLower.end()) return Better::lower;
  return {};
}

bool is_share(std::string_view metric) {
  constexpr std::array<std::string_view, 2> kNone{"psnr", "clipscore"};
  const std::string name = plain(metric);
  return std::ranges::find(kHigher, name) != kHigher.end() &&
         std::ranges::find(kNone, name) == kNone.end();
}

std::optional<Better> direction_of(const run::Point& point) {
  const std::optional<Better> known = known_direction(point.quality.metric);
  if (!point.quality.higher_is_better) return known;
  const Better said = *point.quality.higher_is_better ? Better::higher : Better::lower;
  if (known && *known != said) return {};
  return said;
}

}  // namespace joulediff::rules
