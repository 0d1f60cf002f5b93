"""The config of a phantom set, for scripts that pack it."""


def write(path, folder):
    with open(path, 'w') as f:
        f.write(f'''data:
  manifest: {{format: nih, path: "{folder}/Data_Entry_2017.csv"}}
  images: ["{folder}/images"]
  train_list: "{folder}/train_val_list.txt"
  test_list: "{folder}/test_list.txt"
  resize: 72
  crop: 64
''')
