#!/usr/bin/env python3
"""Scores of image files as one writes it with torchvision: a DataLoader of Pillow images, resized to 224,
DenseNet-121 channels-last in inference mode, a CSV.
usage: predict_peers.py fp32|bf16 FOLDER OUT.csv BATCH THREADS"""
import csv
import os
import sys

import torch
import torchvision
from PIL import Image
from torchvision import transforms


class Files(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(entry.path for entry in os.scandir(folder))
        self.transform = transforms.Compose([
            transforms.Resize(224), transforms.CenterCrop(224), transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert('RGB')), index


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    mode, folder, out = sys.argv[1:4]
    batch, threads = map(int, sys.argv[4:])
    torch.set_num_threads(threads)
    files = Files(folder)
    loader = torch.utils.data.DataLoader(files, batch_size=batch, num_workers=threads)
    network = torchvision.models.densenet121(num_classes=14).eval().to(memory_format=torch.channels_last)
    with open(out, 'w', newline='') as table, torch.inference_mode():
        rows = csv.writer(table)
        rows.writerow(['image'] + [f'finding{k}' for k in range(14)])
        for images, indices in loader:
            with torch.autocast('cpu', torch.bfloat16, enabled=mode == 'bf16'):
                scores = network(images.contiguous(memory_format=torch.channels_last)).float().sigmoid()
            for index, row in zip(indices.tolist(), scores.tolist()):
                rows.writerow([os.path.basename(files.paths[index])] + row)


if __name__ == '__main__':
    main()
