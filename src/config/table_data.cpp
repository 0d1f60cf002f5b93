#include "option_table.hpp"

namespace chexnet {
namespace {

// The data to learn from.
std::vector<ConfigOption> manifest_options() {
  return {
      {
          MEMBER(data.manifest.format),
          .help = "nih: ChestX-ray14's Data_Entry table (both releases, .gz "
                  "too); chexpert: train.csv/valid.csv; mimic-cxr, padchest, "
                  "vindr, brax: as downloaded (docs/labels.md); csv: any "
                  "table, see data.manifest.columns. One for all tables, or "
                  "one for each",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.manifest.path),
          .help =
              "the table of images and labels (required), or several: "
              "[train.csv, valid.csv]. Findings are aligned by name; what a "
              "table lacks is not labeled there",
          .is_path = true,
          .effect = Effect::kOtherResults,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.manifest.split),
          .help = "the split that all rows of a table belong to, one for each "
                  "table: [train, val]; empty = by lists and fractions",
      },
      {
          MEMBER(data.manifest.columns.image),
          .help = "csv: column with the image's file name",
      },
      {
          MEMBER(data.manifest.columns.patient),
          .help = "csv: column with the patient id; empty = every image is a "
                  "patient of its own",
      },
      {
          MEMBER(data.manifest.columns.findings),
          .help = "csv: columns with 1/0/-1/blank, one per finding; empty = "
                  "every column not named here",
      },
      {
          MEMBER(data.manifest.columns.age),
          .help = "csv: column with the age in years",
      },
      {
          MEMBER(data.manifest.columns.sex),
          .help = "csv: column with the sex",
      },
      {
          MEMBER(data.manifest.columns.view),
          .help = "csv: column with the view position",
      },
      {
          MEMBER(data.manifest.columns.study),
          .help = "csv: column with the study of the patient, for eval.by",
      },
      {
          MEMBER(data.images),
          .help = "where the images are, searched with sub-folders (required): "
                  "folders, tar or tar.gz archives, TFRecord shards, packs, or "
                  "s3://bucket/prefix of any of them",
          .is_path = true,
          .effect = Effect::kOtherResults,
          .tier = Tier::kCommon,
      },
  };
}

// Which split each image belongs to.
std::vector<ConfigOption> split_options() {
  return {
      {
          MEMBER(data.train_list),
          .help = "file with the names of the training images, one per line; "
                  "empty = "
                  "every image of no other list. NIH's train_val_list.txt is "
                  "cut by "
                  "patient into train and val when data.val_list is empty",
          .is_path = true,
          .effect = Effect::kOtherResults,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.val_list),
          .help = "file with the names of the validation images; empty = "
                  "data.val_fraction of the training patients",
          .is_path = true,
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(data.test_list),
          .help = "file with the names of the test images; empty = "
                  "data.test_fraction of the patients",
          .is_path = true,
          .effect = Effect::kOtherResults,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.test_fraction),
          .help =
              "fraction of the patients set aside for the test when no list "
              "or table names test images; 0 = no test split",
          .limits = {{0, 0.9}},
      },
      {
          MEMBER(data.val_fraction),
          .help = "fraction of the training patients set aside for validation "
                  "when no list or table names validation images",
          .limits = {{0, 0.9}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.fold),
          .help =
              "cross-validation: 1/5 takes the first of five folds of the "
              "training patients for validation instead of data.val_fraction, "
              "5/5 the last; off: no folds",
      },
      {
          MEMBER(data.stratify),
          .help =
              "draw data.test_fraction, data.val_fraction and folds so that "
              "each finding gets its share: patients are grouped by the "
              "rarest finding that they have",
      },
      {
          MEMBER(data.split_seed),
          .help =
              "seed of the random choice of patients for data.test_fraction, "
              "data.val_fraction and data.fold",
          .limits = {{0, kNoMaximum}},
      },
      {
          MEMBER(data.allow_patient_leak),
          .help = "accept lists that put one patient into two splits (their "
                  "number is reported)",
      },
  };
}

// Which rows of the tables take part.
std::vector<ConfigOption> choice_options() {
  return {
      {
          MEMBER(data.filter),
          .help = "conditions that each row must meet: [view=PA, age>=18, "
                  "sex!=M, Frontal/Lateral=Frontal], with =, !=, <, <=, >, >= "
                  "and | between values. A column by its name in the table, or "
                  "image, patient, age, sex, view in any. A table without the "
                  "column keeps its rows",
      },
      {
          MEMBER(data.sample_weight),
          .help = "column of the tables with what each row's loss counts in "
                  "training: 0 to 1,000,000, 1 in a table without the column; "
                  "empty = all rows alike. Scores do not know it",
      },
      {
          MEMBER(data.exclude),
          .help = "file with images or patients that take no part anywhere "
                  "(withdrawn.txt), one per line",
          .is_path = true,
          .effect = Effect::kOtherResults,
      },
  };
}

// Findings, and the value of labels that are neither 1 nor 0.
std::vector<ConfigOption> label_options() {
  return {
      {
          MEMBER(data.findings),
          .help = "findings to learn, by name and in "
                  "this order; empty = all of the "
                  "manifest",
          .tier = Tier::kCommon,
      },
      {
          MEMBER(data.finding_names),
          .help =
              "CSV file with the header name,finding: what columns of the "
              "tables are called here, e.g. Lung Lesion,Mass; several names "
              "may be of one finding",
          .is_path = true,
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(data.blank),
          .help = "what a blank label counts as in training: ignore (not "
                  "labeled, no loss), zero or one; auto: zero for chexpert, "
                  "mimic-cxr and brax, "
                  "whose authors count what a report does not mention as "
                  "absent, else ignore",
      },
      {
          MEMBER(data.uncertain),
          .help =
              "what an uncertain label (-1) counts as in training: ignore, "
              "zero, one or smooth (0.7, between unknown and positive); for "
              "single findings behind it: [ignore, Edema=one, Mass=zero]",
          .tier = Tier::kCommon,
      },
  };
}

}  // namespace

// The order of the topics is the order of docs/config.md.
std::vector<ConfigOption> data_table() {
  return joined({manifest_options(), split_options(), choice_options(),
                 label_options(), image_table()});
}

}  // namespace chexnet
